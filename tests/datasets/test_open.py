"""From a path, a name or a text to a set of images, and what cannot be opened."""

from __future__ import annotations

import gzip
import io
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from stored_images import draw_images, encode, hf_table, write_images, write_tar

from shiftcal.datasets import as_image_set, load
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.errors import FileError, InputError, MissingData, UnknownName

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


def test_load_refuses_unknown_names_and_options():
    with pytest.raises(UnknownName, match=r"no data set is called 'cifra10'. Did you mean 'cifar1"):
        load("cifra10", "/d")
    with pytest.raises(InputError, match=r"'level'. Its options are split"):
        load("cifar10", "/d", level=3)


def test_a_drive_letter_or_an_existing_file_is_a_path_and_no_line(stored, monkeypatch):
    with pytest.raises(FileError, match="does not exist"):
        as_image_set("C:/none")
    monkeypatch.chdir(stored)
    np.save(stored / "tar:x.npy", IMAGES)
    assert len(as_image_set("tar:x.npy")) == 4


PIXEL = io.BytesIO()
Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(PIXEL, "png")
PIXEL = PIXEL.getvalue()


def tarred(**members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def table(**columns):
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


FILES = {
    "cut.tar": (tarred(a_png=PIXEL)[:700], "cut.tar"),
    "none.tar": (tarred(a_txt=b"x"), "holds no images"),
    "packed.tar": (gzip.compress(tarred(a_png=PIXEL)), "as an uncompressed tar file"),
    "two.tar": (tarred(a_png=PIXEL, a_jpg=PIXEL), "one image per sample"),
    "alone.tar": (tarred(a_cls=b"1"), "holds no images"),
    "some.tar": (
        tarred(a_png=PIXEL, b_png=PIXEL, b_cls=b"1"),
        "either no image has a label",
    ),
    "mixed.tar": (
        tarred(a_png=PIXEL, a_cls=b"2", b_png=PIXEL, b_cls=b"dog"),
        "either no image has a label",
    ),
    "odd.tar": (tarred(a_png=PIXEL, a_cls=b"\xff"), "odd.tar"),
    "no.parquet": (b"PAR1 no", "no.parquet could not be read"),
    "numbers.parquet": (table(x=[1, 2]), "one column with the bytes of image files"),
    "empty.parquet": (table(image=pa.array([], pa.binary())), "it has no rows"),
    "unclear.parquet": (
        table(a=[PIXEL], b=[PIXEL]),
        "these have bytes: a, b",
    ),
    "floats.parquet": (
        table(image=[PIXEL], label=[0.5]),
        "labels must be",
    ),
    "none.npz": (b"PK", "none.npz"),
    "objects.npy": (b"\x80\x04.", "holds pickled Python objects"),
    "text.txt": (b"text", "cannot be opened as images"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_named(tmp_path, name):
    content, words = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        as_image_set(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["train/a/1.png", "test/a/1.png"], "holds the parts test, train of a data set"),
        (["1.png", "a/1.png"], "either images or one folder per class"),
        (["a/1.png", "b/notes.txt"], "a folder without images, 'b'"),
        (["notes.txt"], "holds no images"),
    ],
)
def test_a_folder_that_could_be_meant_in_two_ways(tmp_path, files, words):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(PIXEL)
    with pytest.raises(FileError, match=words):
        as_image_set(tmp_path)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("nowhere", MissingData, "does not exist"),
        ("nowhere.tar", MissingData, "does not exist"),
        ("folder:nowhere", MissingData, "is not a folder"),
        ("folder:.?split=a", InputError, "folder: .*'split'. Its options are none"),
        ("parquet:x?image", InputError, "name=value"),
        ("parquet:x?image=a&image=b", InputError, "each once"),
        ("cifra10:x", InputError, "Did you mean 'cifar10'"),
    ],
)
def test_lines_that_name_nothing(text, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        as_image_set(text)


@pytest.mark.parametrize("thing", [None, 3, {}, {"a": 1}, object()])
def test_what_holds_no_images(thing):
    with pytest.raises(InputError, match="images must be an array, a list of images"):
        as_image_set(thing)
