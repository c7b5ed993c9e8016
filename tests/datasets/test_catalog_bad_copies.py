"""Copies of published data sets that are damaged, hostile or something else: FileError, named."""

from __future__ import annotations

import bz2
import io
import zipfile

import numpy as np
import pytest
from cifar_copies import drawn
from stored_images import draw_images, write_images

from shiftcal.datasets import load
from shiftcal.errors import FileError

IMAGES, LABELS = drawn(5, 3), np.array([0, 9, 4, 4, 7])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("usps.t.bz2", b"garbage"),
        ("usps.t.bz2", bz2.compress(b"1 1:0.5\n" * 100)[:-9]),
        ("usps.t", b""),
        ("usps.t", b"0 1:0.5\n"),
        ("usps.t", b"11 1:0.5\n"),
        ("usps.t", b"1 257:0.5\n"),
        ("usps.t", b"1 1:2\n"),
        ("usps.t", b"1 1:nan\n"),
        ("usps.t", b"1 1\n"),
        ("usps.npz", b"PK garbage"),
    ],
)
def test_files_of_usps(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match="usps"):
        load("usps", tmp_path)


def test_an_npz_header_that_promises_terabytes(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (2**32, 256)}
    )
    with zipfile.ZipFile(tmp_path / "usps.npz", "w") as archive:
        archive.writestr("test_data.npy", header.getvalue() + bytes(100))
    with pytest.raises(FileError, match=r"'test_data' is shorter than its header says"):
        load("usps", tmp_path)


def test_domains_of_something_else(tmp_path):
    write_images(tmp_path / "Art" / "Spaceship", draw_images(1), ["1.png"])
    with pytest.raises(FileError, match=r"has no folder 'Clipart', 'Product', 'Real World'"):
        load("office-home", tmp_path)
    with pytest.raises(FileError, match=r"1\.png is not in the folder of a class of Office-Home"):
        load("office-home", tmp_path, domain="Art")
    (tmp_path / "art").mkdir()
    with pytest.raises(FileError, match="must hold one folder for Art"):
        load("office-home", tmp_path, domain="Art")
