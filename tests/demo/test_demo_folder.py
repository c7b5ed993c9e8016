from __future__ import annotations

import json

import pytest

from shiftcal.demo.folder import check_place, claim
from shiftcal.errors import FileError


@pytest.mark.parametrize("there", [False, True])
def test_a_new_or_an_empty_folder_is_marked_at_once(tmp_path, there):
    place = tmp_path / "deep" / "demo"
    if there:
        place.mkdir(parents=True)
    check_place(place, "digits")
    folder = claim(place, "digits")
    told = json.loads(folder.document.read_text())
    assert (told["format"], told["version"], told["data"]) == ("shiftcal-demo", 1, "digits")


def test_checking_writes_nothing(tmp_path):
    check_place(tmp_path / "demo", "digits")
    assert list(tmp_path.iterdir()) == []


def test_its_own_folder_is_taken_again_as_it_is(tmp_path):
    folder = claim(tmp_path, "digits")
    folder.write("digits", {"found": 7})
    (tmp_path / "notes.txt").write_text("mine")
    assert claim(tmp_path, "digits") == folder
    assert json.loads(folder.document.read_text())["found"] == 7


def test_what_a_killed_process_left_is_no_content(tmp_path):
    (tmp_path / ".shiftcal-0123456789ab.tmp").touch()
    check_place(tmp_path, "digits")


@pytest.mark.parametrize(
    "mark", [None, "", "[]", "3", "{", '{"format": "shiftcal-bank", "data": "digits"}', "[" * 9999]
)
def test_a_folder_with_something_else_is_refused(tmp_path, mark):
    (tmp_path / "thesis.tex").touch()
    if mark is not None:
        (tmp_path / "demo.json").write_text(mark)
    first = "thesis.tex" if mark is None else "demo.json"
    with pytest.raises(FileError, match=f"holds '{first}' and is no folder of a demo.*with -o"):
        claim(tmp_path, "digits")


def test_a_file_is_refused(tmp_path):
    (tmp_path / "demo").touch()
    with pytest.raises(FileError, match=r"is a file\. Name a folder for the demo with -o"):
        check_place(tmp_path / "demo", "digits")


def test_the_folder_of_the_other_demo_is_refused(tmp_path):
    claim(tmp_path, "cifar10")
    with pytest.raises(FileError, match="holds the demo with cifar10; this one is with digits"):
        claim(tmp_path, "digits")


def test_a_folder_below_a_file_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="-o"):
        claim(tmp_path / "file" / "demo", "digits")
