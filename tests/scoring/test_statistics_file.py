"""Statistics in a file: what is written is read, and nothing else is."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest
from ladder_data import draw

from shiftcal.errors import FileError
from shiftcal.files import checksum_of
from shiftcal.scores import Scores
from shiftcal.scoring import statistics as statistics_file
from shiftcal.scoring.statistics import Part, ScoreStatistics, read_statistics

PART = Part(shard=2, of=3, first=200, stop=400, n_images=600, key="abc")


@pytest.fixture(scope="module")
def statistics():
    z, y = draw(200, 1.0, seed=6)
    return ScoreStatistics.of(Scores(z, labels=y, classes=tuple("abcdef")))


@pytest.fixture
def file(statistics, tmp_path):
    path = tmp_path / "part-2.json"
    statistics.write(path, part=PART)
    return path


def altered(file, change, *, sign=True):
    document = json.loads(file.read_text())
    change(document)
    if sign:
        document.pop("checksum", None)
        document["checksum"] = checksum_of(document)
    file.write_text(json.dumps(document))


def test_what_is_written_is_read(statistics, file, tmp_path):
    assert ScoreStatistics.read(file) == statistics
    assert read_statistics(file) == (statistics, PART)
    unlabelled = ScoreStatistics.of_rows(draw(30, 1.0, seed=1)[0])
    unlabelled.write(tmp_path / "target.json")
    assert read_statistics(tmp_path / "target.json") == (unlabelled, None)


def test_the_same_statistics_are_the_same_bytes(statistics, file, tmp_path):
    ScoreStatistics.read(file).write(tmp_path / "again.json", part=PART)
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


def test_a_file_stays_small_whatever_it_counts(tmp_path):
    rng = np.random.default_rng(3)
    rows = [rng.standard_normal((20_000, 2)) * 4, rng.integers(0, 2, 20_000)]
    one = ScoreStatistics.of_rows(*rows)
    total = one
    for _ in range(18):
        total = total + total
    assert total.n == 20_000 << 18
    assert total.accuracy() == one.accuracy()
    assert total.temperature == one.temperature
    assert total.ece() == pytest.approx(one.ece(), abs=1e-12)
    total.write(tmp_path / "much.json")
    assert (tmp_path / "much.json").stat().st_size < 500_000


def test_a_failed_write_leaves_what_was_there(statistics, file, tmp_path, monkeypatch):
    before = file.read_bytes()
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        statistics.write(file)
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_a_file_that_is_none_is_refused(tmp_path, monkeypatch, file):
    with pytest.raises(FileError, match=r"nowhere.json could not be read"):
        ScoreStatistics.read(tmp_path / "nowhere.json")
    for text in ("{", "[" * 100_000, "\udcff".encode("utf-8", "surrogatepass")):
        path = tmp_path / "odd.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(
            FileError, match=r"odd.json is not statistics of scores, or it is damaged: not JSON"
        ):
            ScoreStatistics.read(path)
    path.write_text('{"format": "shiftcal-estimator"}')
    with pytest.raises(FileError, match="has no format 'shiftcal-statistics'"):
        ScoreStatistics.read(path)
    monkeypatch.setattr(statistics_file, "_LARGEST", 1000)
    with pytest.raises(FileError, match="too large for statistics"):
        ScoreStatistics.read(file)


def test_a_newer_file_is_refused(file):
    altered(file, lambda d: d.update(version=3))
    with pytest.raises(FileError, match=r"has format version 3, written by shiftcal .* Upgrade"):
        ScoreStatistics.read(file)


def test_a_flipped_digit_is_noticed(file):
    altered(file, lambda d: d["sums"].update(correct=d["sums"]["correct"] - 1), sign=False)
    with pytest.raises(FileError, match="its checksum does not fit its content"):
        ScoreStatistics.read(file)


def bomb(document):
    packed = base64.b64encode(zlib.compress(bytes(50_000_000), 9)).decode()
    document["cells"]["count"] = packed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (bomb, "is damaged"),
        (lambda d: d["cells"].update(count="AAAA"), "is damaged"),
        (lambda d: d["cells"].update(count="?"), "is damaged"),
        (lambda d: d["cells"].update(count=7), "is damaged"),
        (lambda d: d["cells"].pop("most"), "it is damaged.*KeyError"),
        (lambda d: d.pop("ladder"), "it is damaged.*KeyError"),
        (lambda d: d.update(ladder=d["ladder"][:-1]), "the sums are not those of"),
        (lambda d: d["sums"].update(extra=1), "the sums are not those of"),
        (lambda d: d["sums"].update(regret=0.5), "where a whole number belongs"),
        (lambda d: d["sums"].update(confidence=True), "where a whole number belongs"),
        (lambda d: d["sums"].update(rows=0), "contradict one another"),
        (lambda d: d["sums"].update(correct=0), "contradict one another"),
        (lambda d: d["sums"].update(regret=-1), "contradict one another"),
        (lambda d: d.update(n_classes=1), "n_classes must be a whole number of at least 2"),
        (lambda d: d.update(classes=["a"]), "classes must name the 6 columns"),
        (lambda d: d.update(sums=None), "is damaged"),
        (lambda d: d["part"].update(shard="2"), "does not describe a part"),
        (lambda d: d["part"].update(shard=4), "does not describe a part"),
        (lambda d: d["part"].update(first=500), "does not describe a part"),
        (lambda d: d.update(part=[1]), "does not describe a part"),
    ],
)
def test_a_hostile_file_is_refused(file, change, words):
    altered(file, change)
    with pytest.raises(FileError, match=words):
        read_statistics(file)


def test_later_keys_of_a_part_are_passed_over(file):
    altered(file, lambda d: d["part"].update(host="node7"))
    assert read_statistics(file)[1] == PART
