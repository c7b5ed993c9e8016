"""Cards on disk: both files or none, and what can be wrong with the JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ladder_data import draw, make_bank

from shiftcal.cards import CalibrationCard, Judging, make_card, read_card
from shiftcal.errors import FileError, InputError

_LIMITED = """
import resource, sys
from shiftcal.cards import read_card
card = read_card("card.json")
for limit in sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    try:
        card.save("other.md")
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def card():
    target = draw(150, 0.6, seed=2)[0]
    judging = Judging(n_resamples=40, folds=2)
    return make_card("sac", make_bank(120), target, judging=judging, estimator="doc")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_both_files_are_written_and_come_back(card, folder):
    card.save("card.md")
    assert names(folder) == ["card.json", "card.md"]
    assert read_card("card.json") == card
    assert (
        Path("card.md").read_text("utf-8")
        == card.to_markdown()
        == read_card("card.json").to_markdown()
    )
    replace(card, title="Another").save("card.md")
    assert read_card("card.json").title == "Another"
    assert names(folder) == ["card.json", "card.md"]


def test_the_json_is_plain_and_says_what_it_is(card):
    document = card.to_dict()
    assert (document["format"], document["version"]) == ("shiftcal-card", 1)
    assert document["written_by"].startswith("shiftcal ")
    json.dumps(document, allow_nan=False)


def test_numbers_that_json_has_no_word_for_come_back(card):
    details = {"reach": float("inf")}
    odd = replace(card, choice=replace(card.choice, details=details))
    text = json.dumps(odd.to_dict(), allow_nan=False)
    assert CalibrationCard.from_dict(json.loads(text)) == odd


def test_a_name_that_is_no_text_does_not_lose_the_card(card, folder):
    odd = replace(card, title="caf\udce9", notes="\ud800")
    odd.save("card.md")
    assert "caf\\udce9" in Path("card.md").read_text("utf-8")
    assert read_card("card.json") == odd


@pytest.mark.parametrize("name", ["card.txt", "card", "card.json"])
def test_a_card_ends_in_md(card, folder, name):
    with pytest.raises(FileError, match=r"must end in \.md.*Name it card\.md"):
        card.save(name)


def test_json_that_is_no_card_is_not_replaced(card, folder):
    for content in ('{"format": "shiftcal-estimator"}', "[]", "{", "\x00"):
        Path("card.json").write_text(content)
        with pytest.raises(FileError, match="is no calibration card, so that it is not replaced"):
            card.save("card.md")
        assert Path("card.json").read_text() == content
        assert names(folder) == ["card.json"]


def test_a_folder_that_is_not_there_is_told(card, folder):
    with pytest.raises(FileError, match="could not be written"):
        card.save("nowhere/card.md")


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_leaves_both_as_they_were(card, folder):
    """With room for neither file, and with room for the markdown alone."""
    card.save("card.md")
    sizes = [Path(name).stat().st_size for name in ("card.md", "card.json")]
    assert sizes[0] < sizes[1]
    replace(card, title="Before").save("other.md")
    before = [Path(name).read_bytes() for name in ("other.md", "other.json")]
    command = [sys.executable, "-c", _LIMITED, str(sizes[0] + 100), "100"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(re.findall(r"^FileError other\.\w+ could not be written", done.stdout, re.M)) == 2
    assert [Path(name).read_bytes() for name in ("other.md", "other.json")] == before
    assert names(folder) == ["card.json", "card.md", "other.json", "other.md"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_told(card, folder):
    folder.chmod(0o500)
    with pytest.raises(FileError, match="could not be written"):
        card.save("card.md")


def test_a_card_interrupted_while_it_is_written_is_not_there(card, folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("shiftcal.cards.card.flush_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        card.save("card.md")
    assert names(folder) == []


def test_a_missing_or_truncated_file_is_told(card, folder):
    with pytest.raises(FileError, match=r"card\.json could not be read: No such file"):
        read_card("card.json")
    card.save("card.md")
    content = Path("card.json").read_bytes()
    for size in (0, 1, len(content) // 2, len(content) - 3):
        Path("cut.json").write_bytes(content[:size])
        with pytest.raises(FileError, match=r"cut\.json is not a calibration card, or it is dam"):
            read_card("cut.json")
    with pytest.raises(FileError, match="could not be read"):
        read_card(folder)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}', b"null x"], ids=range(4)
)
def test_what_is_no_json_is_told(folder, content):
    Path("odd.json").write_bytes(content)
    with pytest.raises(FileError, match=r"odd\.json is not a calibration card"):
        read_card("odd.json")


@pytest.mark.parametrize("content", ["null", "3", "[]", "{}", '{"format": "shiftcal-bank"}'])
def test_other_json_is_no_card(folder, content):
    Path("odd.json").write_text(content)
    with pytest.raises(FileError, match=r"odd\.json cannot be used.*format 'shiftcal-card'"):
        read_card("odd.json")


@pytest.mark.parametrize("version", [2, 0, "1", None, True, 1.0])
def test_another_version_is_refused(card, version):
    document = {**card.to_dict(), "version": version, "written_by": "shiftcal 9.9"}
    with pytest.raises(InputError, match=r"written by shiftcal 9\.9, cannot be read.*Upgrade"):
        CalibrationCard.from_dict(document)


def put(*path, value):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def drop(*path):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("title", value=3),
        put("title", value=None),
        put("bank", value={}),
        put("bank", value=[]),
        put("bank", 0, "n", value="many"),
        put("bank", 0, "n", value=1.5),
        put("bank", 0, "name", value="renamed"),
        put("bank", 0, "accuracy", value=True),
        put("bank", 0, value=[]),
        put("calibration", "label_counts", value=[1, 2]),
        put("model", "classes", value=["a"]),
        put("model", "n_classes", value=10**9),
        put("choice", "flags", value=["x"]),
        put("choice", "temperature", value={"float": "hot"}),
        put("on_bank", 0, "before", value=None),
        put("on_bank", 0, "before", "ece", value=0.1),
        put("on_bank", 0, "after", value={}),
        put("limits", 0, "code", value=["x"]),
        put("extra", value=1),
        put("provenance", "extra", value=1),
        put("provenance", "versions", value=[["numpy", "2"]]),
        drop("model"),
        drop("bank", 0, "digest"),
        drop("on_bank", 0),
    ],
)
def test_a_damaged_card_is_refused_with_the_reason(card, change):
    document = json.loads(json.dumps(card.to_dict()))
    change(document)
    with pytest.raises(InputError, match="this one is damaged"):
        CalibrationCard.from_dict(document)


def test_from_dict_does_not_change_the_document(card):
    document = card.to_dict()
    copied = json.loads(json.dumps(document))
    CalibrationCard.from_dict(document)
    assert document == copied
