"""Copies of a data set that are complete, partly there, or not what they should be."""

from __future__ import annotations

import hashlib
import shutil

import numpy as np
import pytest
from PIL import Image
from toy_sets import about_toys, use_toys, write_toys

from shiftcal import datasets
from shiftcal.datasets.about import Part
from shiftcal.datasets.check import _spread, check_data_set
from shiftcal.datasets.known import known
from shiftcal.errors import UnknownName


@pytest.fixture
def root(tmp_path, monkeypatch):
    use_toys(monkeypatch)
    return write_toys(tmp_path / "copy")


def states(found):
    return {part.name: part.state for part in found.parts}


def test_a_complete_copy_is_complete(root):
    for folder in (root, root / "toys"):
        found = check_data_set("toys", folder)
        assert found.complete
        assert states(found) == {"train": "complete", "test": "complete"}
        assert [(p.expected, p.found, p.decoded) for p in found.parts] == [(12, 12, 12), (6, 6, 6)]
        assert all(part.problems == () for part in found.parts)


def test_a_part_that_is_not_there_is_missing(root):
    shutil.rmtree(root / "toys" / "train")
    found = check_data_set("toys", root)
    assert not found.complete
    assert states(found) == {"train": "missing", "test": "complete"}
    assert "does not exist" in found.parts[0].problems[0]
    assert check_data_set("toys", root, parts=["test"]).complete


def test_a_folder_that_is_not_there_misses_everything(root, tmp_path):
    found = check_data_set("toys", tmp_path / "none")
    assert states(found) == {"train": "missing", "test": "missing"}
    assert found.parts[0].problems == (f"there is no {tmp_path / 'none'}.",)
    (tmp_path / "file").write_bytes(b"")
    assert "is not a folder" in check_data_set("toys", tmp_path / "file").parts[0].problems[0]


def test_missing_images_are_told_by_their_classes(root):
    (root / "toys" / "train" / "car" / "1.png").unlink()
    found = check_data_set("toys", root).parts[0]
    assert (found.state, found.found) == ("wrong", 11)
    assert found.problems == (
        "there must be 12 images; there are 11.",
        "every class must have 4 images; not so: car (3).",
    )


def test_too_many_images_are_wrong_as_well(root):
    shutil.copy(root / "toys" / "test" / "car" / "1.png", root / "toys" / "test" / "doll" / "9.png")
    assert check_data_set("toys", root).parts[1].problems == (
        "there must be 6 images; there are 7.",
        "every class must have 2 images; not so: doll (3).",
    )


def test_a_missing_class_is_told(root):
    shutil.rmtree(root / "toys" / "test" / "car")
    problems = check_data_set("toys", root).parts[1].problems
    assert "there must be 3 classes; there are 2." in problems


def test_an_empty_class_is_told_where_classes_differ_in_size(root, monkeypatch):
    about_toys(monkeypatch, parts=(Part("test", {"split": "test"}, n=4),))
    for file in (root / "toys" / "test" / "car").iterdir():
        file.unlink()
    assert check_data_set("toys", root).parts[0].problems == ("no images of: car.",)


def test_only_the_first_few_are_named(root, monkeypatch):
    about_toys(monkeypatch, n_classes=8)
    problems = check_data_set("toys", root).parts[1].problems
    assert problems[-1] == (
        "every class must have 2 images; not so: 3 (0), 4 (0), 5 (0), and 2 more."
    )


def test_files_that_a_list_names_must_be_there(root):
    listed = [f"{name}/{i}.png" for name in ("ball", "car", "doll") for i in range(2)]
    (root / "toys" / "test" / "list.txt").write_text("\n".join(listed))
    assert check_data_set("toys", root).complete
    (root / "toys" / "test" / "doll" / "1.png").unlink()
    found = check_data_set("toys", root, sample=0).parts[1]
    assert found.problems == ("missing files: doll/1.png.",)


def test_an_image_that_cannot_be_read_is_wrong(root):
    (root / "toys" / "test" / "car" / "1.png").write_bytes(b"no image")
    found = check_data_set("toys", root).parts[1]
    assert (found.state, found.found) == ("wrong", 6)
    assert found.problems[0].startswith("1 of 6 images cannot be read: ")
    assert "car/1.png cannot be read as an image" in found.problems[0]


def test_a_sample_is_spread_and_all_images_are_all(root):
    assert _spread(1000, 5).tolist() == [0, 250, 500, 749, 999]
    assert _spread(3, 100).tolist() == [0, 1, 2]
    assert _spread(3, 0).tolist() == []
    assert _spread(700, None).tolist() == list(range(700))
    assert [part.decoded for part in check_data_set("toys", root, sample=4).parts] == [4, 4]
    # Not among the first, middle and last.
    (root / "toys" / "test" / "ball" / "1.png").write_bytes(b"no image")
    assert check_data_set("toys", root, sample=3).complete
    assert not check_data_set("toys", root, sample=None).complete


def test_a_loader_that_refuses_what_is_there_means_wrong(root, monkeypatch):
    (root / "toys" / "test" / "list.txt").write_text("")
    found = check_data_set("toys", root).parts[1]
    assert (found.state, found.found) == ("wrong", 0)
    assert "must hold at least one image" in found.problems[0]


def test_checksums_of_files_are_verified(root, monkeypatch):
    image = (root / "toys" / "test" / "car" / "1.png").read_bytes()
    digests = {
        "toys/test/car/0.png": f"md5:{hashlib.md5(image).hexdigest().upper()}",
        "toys/test/car/1.png": f"sha256:{hashlib.sha256(image).hexdigest()}",
        "toys/binary/car": "md5:00",
    }
    about_toys(monkeypatch, digests=digests)
    for folder in (root, root / "toys"):
        found = check_data_set("toys", folder)
        assert found.complete
        assert found.verified == ("toys/test/car/0.png", "toys/test/car/1.png")
        assert found.absent == ("toys/binary/car",)
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(root / "toys" / "test" / "car" / "1.png")
    found = check_data_set("toys", root)
    assert not found.complete
    (told,) = found.altered
    assert told.startswith("toys/test/car/1.png: its sha256 must be ")
    assert check_data_set("toys", root, digests=False).complete


def test_progress_is_told(root, monkeypatch):
    about_toys(monkeypatch, digests={"toys/test/car/0.png": "md5:00"})
    steps = []
    check_data_set("toys", root, step=lambda *step: steps.append(step))
    assert steps[:2] == [("train", 12, 12), ("test", 6, 6)]
    assert steps[2][0] == "verifying toys/test/car/0.png"


def test_names_that_do_not_exist_are_refused(root):
    with pytest.raises(UnknownName, match=r"no data set is called 'tots'\. Did you mean 'toys'"):
        check_data_set("tots", root)
    with pytest.raises(UnknownName, match=r"no part of Toys is called 'tets'\. Did you mean 'te"):
        check_data_set("toys", root, parts=["test", "tets"])


@pytest.mark.parametrize("name", datasets.names())
def test_of_an_empty_folder_every_part_of_every_published_set_is_missing(name, tmp_path):
    listed, load, about = known(name.upper().replace("-", "_"))
    assert listed == name
    assert callable(load)
    found = check_data_set(name, tmp_path)
    assert {part.state for part in found.parts} == {"missing"}
    assert len(found.parts) == len(about.parts) > 0
    assert found.absent == tuple(about.checksums())


def test_a_real_copy_is_complete_and_a_part_of_one_is_not(shared_data):
    assert check_data_set("office-caltech10", shared_data / "office-caltech10").complete
    found = check_data_set("pacs", shared_data / "pacs-2800", sample=5)
    assert {part.state for part in found.parts} == {"wrong"}
    assert found.parts[0].problems == ("there must be 2,048 images; there are 700.",)
