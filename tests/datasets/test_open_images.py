"""as_image_set: each thing one can have leads to the set it means."""

from __future__ import annotations

import sys
import types

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from stored_images import draw_images, encode, hf_table, save_hf, write_images, write_tar

import shiftcal.datasets as data
from shiftcal.datasets import as_image_set, load
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.catalog import About
from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.registry import DATA_SETS

IMAGES = draw_images(4)
LABELS = [1, 0, 1, 0]


@pytest.fixture
def stored(tmp_path):
    """The four images in every layout, by name."""
    write_images(tmp_path / "classes", IMAGES, ["a/1.png", "a/2.png", "b/3.png", "b/4.png"])
    np.save(tmp_path / "x.npy", IMAGES)
    np.savez(tmp_path / "x.npz", images=IMAGES, labels=LABELS)
    (tmp_path / "tables").mkdir()
    pq.write_table(hf_table(IMAGES, LABELS), tmp_path / "tables" / "t.parquet")
    (tmp_path / "shards").mkdir()
    members = [(f"{i}.png", encode(image)) for i, image in enumerate(IMAGES)]
    write_tar(tmp_path / "shards" / "s-0.tar", members[:2])
    write_tar(tmp_path / "shards" / "s-1.tar", members[2:])
    save_hf(tmp_path / "saved", [hf_table(IMAGES, LABELS)])
    return tmp_path


def test_things_in_memory_are_taken_as_they_are():
    held = ArrayImages(IMAGES, labels=LABELS)
    assert as_image_set(held) is held
    for thing in (
        IMAGES,
        torch.from_numpy(IMAGES),
        list(IMAGES),
        [Image.fromarray(x) for x in IMAGES],
    ):
        np.testing.assert_array_equal(as_image_set(thing).read(range(4)).images, IMAGES)
    pairs = as_image_set([(Image.fromarray(x), y) for x, y in zip(IMAGES, LABELS, strict=True)])
    assert pairs.labels.tolist() == LABELS


def test_one_image_file_and_a_list_of_them_are_sets(stored, monkeypatch):
    one = as_image_set(stored / "classes" / "b" / "3.png")
    np.testing.assert_array_equal(one[0], IMAGES[2])
    monkeypatch.chdir(stored)
    several = as_image_set(["classes/b/4.png", stored / "classes" / "a" / "1.png"])
    np.testing.assert_array_equal(several.read([0, 1]).images, IMAGES[[3, 0]])


def test_labels_given_take_the_place_of_those_of_the_set(stored):
    np.save(stored / "other.npy", [3, 2, 1, 0])
    (stored / "other.csv").write_text("label\nb\nb\na\na\n")
    held = as_image_set(stored / "classes", labels=stored / "other.csv")
    assert held.labels.tolist() == [1, 1, 0, 0]
    assert as_image_set(IMAGES, labels=str(stored / "other.npy")).labels.tolist() == [3, 2, 1, 0]
    named = as_image_set(IMAGES, labels=["x", "y", "x", "x"], classes=["y", "x"])
    assert named.labels.tolist() == [1, 0, 1, 1]
    renamed = as_image_set(stored / "x.npz", classes=["no", "yes"])
    assert renamed.labels.tolist() == LABELS
    assert renamed.classes == ("no", "yes")
    with pytest.raises(InputError, match="4 rows, 3 labels"):
        as_image_set(IMAGES, labels=[0, 1, 0])


@pytest.mark.parametrize("thing", [3, None, {"a": 1}, object(), Image.new("RGB", (9, 9))])
def test_what_holds_no_images_is_refused(thing):
    with pytest.raises(InputError, match="images must be an array, a list of images, a data set"):
        as_image_set(thing)


@pytest.fixture
def catalog(monkeypatch):
    """A catalog of two published data sets."""

    def toy_set(root, *, split, corruption=None, severity=1):
        held = ArrayImages(IMAGES, name=f"{root}|{split}|{corruption}|{severity}")
        return held

    module = types.ModuleType("toys")
    module.TOY = About(toy_set, "Toy set", 2, "https://example.org", "free", ())
    monkeypatch.setitem(sys.modules, "toys", module)
    monkeypatch.setattr(DATA_SETS, "entries", {"toy-set": "toys:TOY"})


def test_load_takes_the_same_as_arguments(catalog):
    assert load("toy-set", "/d", split="test", severity=2).name == "/d|test|None|2"
    assert data.names() == ["toy-set"]


def test_load_refuses_unknown_names_and_options(catalog):
    with pytest.raises(
        UnknownName, match=r"no data set is called 'toyset'. Did you mean 'toy-set'"
    ):
        load("toyset", "/d")
    with pytest.raises(InputError, match="has no option 'level'"):
        load("toy-set", "/d", split="test", level=3)


def test_a_drive_letter_or_an_existing_file_is_a_path_and_no_line(stored, monkeypatch):
    with pytest.raises(FileError, match="does not exist"):
        as_image_set("C:/none")
    monkeypatch.chdir(stored)
    np.save(stored / "tar:x.npy", IMAGES)
    assert len(as_image_set("tar:x.npy")) == 4
