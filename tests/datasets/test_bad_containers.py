"""Containers of images that are damaged, ambiguous or something else: an error that names them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError, MissingData

PNG = io.BytesIO()
Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(PNG, "png")
PNG = PNG.getvalue()


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
    "cut.tar": (tarred(a_png=PNG)[:700], "cut.tar"),
    "none.tar": (tarred(a_txt=b"x"), "holds no images"),
    "packed.tar": (gzip.compress(tarred(a_png=PNG)), "is compressed"),
    "two.tar": (tarred(a_png=PNG, a_jpg=PNG), "one image per sample"),
    "alone.tar": (tarred(a_cls=b"1"), "an image for every label"),
    "some.tar": (tarred(a_png=PNG, b_png=PNG, b_cls=b"1"), "either no image has a label"),
    "mixed.tar": (
        tarred(a_png=PNG, a_cls=b"2", b_png=PNG, b_cls=b"dog"),
        "either no image has a label",
    ),
    "deep.tar": (tarred(a_png=PNG, a_json=b"[" * 100_000), "not text or JSON"),
    "odd.tar": (tarred(a_png=PNG, a_json=json.dumps({"label": [1]}).encode()), "a whole number or"),
    "no.parquet": (b"PAR1 no", "no.parquet could not be read"),
    "numbers.parquet": (table(x=[1, 2]), "no column with the bytes of image files"),
    "empty.parquet": (table(image=pa.array([], pa.binary())), "it has no rows"),
    "unclear.parquet": (table(a=[PNG], b=[PNG]), "more than one column of images: a, b"),
    "floats.parquet": (table(image=[PNG], label=[0.5]), "labels must be whole numbers or names"),
    "none.npz": (b"PK", "none.npz"),
    "objects.npy": (b"\x80\x04.", "holds pickled Python objects"),
    "text.txt": (b"text", "cannot be opened as images"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_named(tmp_path, name):
    content, words = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=words) as caught:
        as_image_set(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["train/a/1.png", "test/a/1.png"], "holds the parts test, train of a data set"),
        (["1.png", "a/1.png"], "either images or one folder per class"),
        (["a/1.png", "b/notes.txt"], "a folder without images, 'b'"),
        (["a.tar", "b.parquet"], "Say tar:.* or parquet:"),
        (["notes.txt"], "holds no images"),
    ],
)
def test_a_folder_that_could_be_meant_in_two_ways(tmp_path, files, words):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(PNG)
    with pytest.raises(FileError, match=words):
        as_image_set(tmp_path)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("nowhere", MissingData, "does not exist"),
        ("nowhere.tar", MissingData, "does not exist"),
        ("t-{0..3}.tar", MissingData, "t-0.tar does not exist"),
        ("folder:nowhere", MissingData, "is not a folder"),
        ("folder:.?split=a", InputError, "folder has no option 'split'"),
        ("parquet:x?image", InputError, "name=value"),
        ("parquet:x?image=a&image=b", InputError, "each once"),
        ("cifra10:x", InputError, "Did you mean 'cifar10'"),
        ("t-{0..999999999999}.tar", FileError, "more than 100,000 files"),
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
