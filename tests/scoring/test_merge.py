"""Parts of a job, merged to one scores file or to statistics."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from exact_model import part_note, write_parts
from ladder_data import draw

from shiftcal.errors import FileError, InputError
from shiftcal.scores import Scores, write_scores
from shiftcal.scoring import statistics as module
from shiftcal.scoring.statistics import (
    ScoreStatistics,
    find_parts,
    merge_scores,
    merge_statistics,
    statistics_of_npz,
)

CLASSES = np.array(list("abcdef"))


@pytest.fixture
def arrays():
    z, y = draw(103, 1.0, seed=5)
    ids = np.array([f"image {'x' * (i // 20)}{i}" for i in range(103)])
    return {
        "logits": z.astype(np.float32),
        "labels": y,
        "features": z[:, :4].astype(np.float16),
        "ids": ids,
        "classes": CLASSES,
    }


@pytest.fixture
def whole(arrays):
    return Scores(
        arrays["logits"],
        labels=arrays["labels"],
        features=arrays["features"],
        ids=arrays["ids"],
        classes=tuple(CLASSES),
    )


@pytest.mark.parametrize("cuts", [(), (50,), (1, 2, 40, 102), tuple(range(1, 103, 3))])
def test_a_merged_file_has_the_bytes_of_one_written_at_once(
    tmp_path, monkeypatch, arrays, whole, cuts
):
    monkeypatch.setattr(module, "_BLOCK", 6 * 7)  # seven rows of scores at a time
    paths = write_parts(tmp_path, cuts, **arrays)
    total = merge_scores(find_parts(paths[::-1]), tmp_path / "all.npz")
    write_scores(tmp_path / "once.npz", whole)
    assert (tmp_path / "all.npz").read_bytes() == (tmp_path / "once.npz").read_bytes()
    assert total == ScoreStatistics.of(whole) == merge_statistics(find_parts(paths))


def test_statistics_files_and_scores_files_merge_to_the_same(tmp_path, arrays, whole):
    paths = write_parts(tmp_path, (20, 90), **arrays)
    named = []
    for file in find_parts(paths):
        statistics_of_npz(file.path).write(tmp_path / f"{file.path.stem}.json", part=file.part)
        named.append(tmp_path / f"{file.path.stem}.json")
    total = ScoreStatistics.of(whole)
    assert merge_statistics(find_parts(named)) == total
    assert merge_statistics(find_parts([named[2], paths[0], named[1]])) == total
    with pytest.raises(FileError, match=r"part-2.json holds statistics and no rows"):
        merge_scores(find_parts([paths[0], named[1], paths[2]]), tmp_path / "all.npz")


def test_a_part_without_a_row_adds_nothing(tmp_path, arrays):
    z = arrays["logits"]
    one, two = tmp_path / "1.npz", tmp_path / "2.npz"
    np.savez(one, logits=np.empty((0, 0), np.float32), part=part_note(1, 2, 0, 50, 153))
    np.savez(two, logits=z, part=part_note(2, 2, 50, 153, 153))
    parts = find_parts([one, two])
    total = merge_scores(parts, tmp_path / "all.npz")
    assert total == merge_statistics(parts) == ScoreStatistics.of_rows(z)
    np.savez(two, logits=z[:0], part=part_note(2, 2, 50, 153, 153))
    for merge in (merge_statistics, lambda files: merge_scores(files, tmp_path / "none.npz")):
        with pytest.raises(FileError, match="none of the parts holds a row"):
            merge(parts)


def test_memory_does_not_grow_with_the_parts(tmp_path):
    z = np.random.default_rng(0).standard_normal((60_000, 250)).astype(np.float32)  # 60 MB
    paths = write_parts(tmp_path, (30_000,), logits=z)
    parts = find_parts(paths)
    del z
    tracemalloc.start()
    merge_scores(parts, tmp_path / "all.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 8 * module._BLOCK  # copies of a block in double precision


def test_parts_that_are_not_one_job_raise(tmp_path, arrays):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    a = write_parts(tmp_path / "a", (50,), **arrays)
    b = write_parts(tmp_path / "b", (50,), key="job-2", **arrays)
    c = write_parts(tmp_path / "c", range(10, 100, 10), **arrays)
    (tmp_path / "copy.npz").write_bytes(a[1].read_bytes())
    for files, words in (
        ([a[0], b[1]], r"a/part-1.npz and .*b/part-2.npz differ in the model"),
        ([a[0], *c[1:]], r"number of parts \(2 and 10\)"),
        ([*a, tmp_path / "copy.npz"], r"each once; there are \[1, 2, 2\]"),
        ([*c[:3], *c[4:6], *c[7:]], r"all 10 parts must be there.* --shard 4/10"),
    ):
        with pytest.raises(InputError, match=words):
            find_parts(files)


def test_files_that_are_no_parts_raise(tmp_path, arrays, whole):
    write_scores(tmp_path / "plain.npz", whole)
    ScoreStatistics.of(whole).write(tmp_path / "plain.json")
    write_scores(tmp_path / "plain.csv", whole)
    for name in ("plain.npz", "plain.json", "plain.csv"):
        with pytest.raises(FileError, match=rf"{name} does not say which part .* --shard i/n"):
            find_parts([tmp_path / name])
    np.savez(tmp_path / "odd.npz", logits=arrays["logits"], part=np.array('{"shard": 1}'))
    with pytest.raises(FileError, match=r"odd.npz could not be read as a part of a job"):
        find_parts([tmp_path / "odd.npz"])


def of_two(tmp_path, first, second):
    n, m = len(first["logits"]), len(second["logits"])
    np.savez(tmp_path / "1.npz", part=part_note(1, 2, 0, n, n + m), **first)
    np.savez(tmp_path / "2.npz", part=part_note(2, 2, n, n + m, n + m), **second)
    return find_parts([tmp_path / "1.npz", tmp_path / "2.npz"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop("labels"), r"2.npz: .*labels for all rows or for none"),
        (lambda a: a.update(logits=a["logits"][:, :5]), "2.npz"),
        (lambda a: a.update(labels=a["labels"][:3]), r"2.npz: labels must have one entry per"),
        (lambda a: a.update(classes=CLASSES[::-1]), r"2.npz: .*the same classes in the same order"),
        (lambda a: a.update(logits=a["logits"] * np.nan), r"2.npz: logits .* row 0 holds nan"),
        (lambda a: a.update(logits=a["logits"].astype(object)), "pickled Python objects"),
    ],
)
def test_parts_that_do_not_fit_raise_and_nothing_is_written(tmp_path, arrays, change, words):
    second = dict(arrays)
    change(second)
    with pytest.raises(FileError, match=words):
        merge_scores(of_two(tmp_path, arrays, second), tmp_path / "all.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.npz", "2.npz"]


def test_a_damaged_part_is_named(tmp_path, arrays):
    paths = write_parts(tmp_path, (50,), **arrays)
    parts = find_parts(paths)
    content = bytearray(paths[1].read_bytes())
    content[500] ^= 1  # inside the scores: only the archive's checksum tells
    paths[1].write_bytes(content)
    with pytest.raises(FileError, match=r"part-2.npz could not be read as an .npz archive"):
        merge_scores(parts, tmp_path / "all.npz")
    paths[1].write_bytes(content[:-900])
    with pytest.raises(FileError, match=r"part-2.npz"):
        merge_scores(parts, tmp_path / "all.npz")
    assert not (tmp_path / "all.npz").exists()
