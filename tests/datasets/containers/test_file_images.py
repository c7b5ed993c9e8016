"""Images in files: decoded, framed and refused one by one."""

from __future__ import annotations

import os
import pickle
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image
from stored_images import draw_images, encode, write_images

from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import FileImages, read_image
from shiftcal.errors import FileError, InputError
from shiftcal.files import Framing


def png_that_claims(width, height):
    """A PNG file of some hundred bytes that says it is as large as that."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("framing", [None, Framing(resize=16), Framing(resize=20, crop=15)])
def test_files_are_read_and_framed_as_the_array_of_their_pixels(tmp_path, framing):
    images = draw_images(5, 24, 18)
    names = [f"{i}.png" for i in range(5)]
    write_images(tmp_path, images, names)
    held = FileImages(tmp_path, names, name="files")
    expected = ArrayImages(images).read([4, 0, 2], framing=framing)
    np.testing.assert_array_equal(
        held.read([4, 0, 2], framing=framing, threads=2).images, expected.images
    )
    assert held.ids([1]) == ["1.png"]


def test_the_digest_is_of_the_bytes_of_the_file(tmp_path):
    image = draw_images(1)[0]
    (tmp_path / "a.png").write_bytes(encode(image))
    (tmp_path / "b.bmp").write_bytes(encode(image, "BMP"))
    held = FileImages(tmp_path, ["a.png", "b.bmp"], name="files")
    np.testing.assert_array_equal(held[0], held[1])
    assert held.digest([0]) != held.digest([1])


def test_files_are_found_from_any_working_folder(tmp_path, monkeypatch):
    write_images(tmp_path / "in", draw_images(1), ["a.png"])
    monkeypatch.chdir(tmp_path)
    held = FileImages("in", ["a.png"], name="files")
    sent = pickle.dumps(held)
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(pickle.loads(sent)[0], held[0])


def test_every_damaged_file_is_bad_by_name_and_the_others_are_read(tmp_path):
    good = encode(draw_images(1, 40, 40)[0])
    files = {
        "good.png": good,
        "cut.png": good[: len(good) // 2],
        "empty.png": b"",
        "text.png": b"not an image at all",
        "bomb.png": png_that_claims(60_000, 60_000),
        "large.png": png_that_claims(10_000, 9_000),
        "script.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n",
        "tiny.png": encode(np.zeros((4, 4, 3), np.uint8)),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    Image.fromarray(np.zeros((9, 9), np.uint16)).save(tmp_path / "deep.png")
    (tmp_path / "folder.png").mkdir()
    names = [*files, "deep.png", "folder.png", "none.png"]
    batch = FileImages(tmp_path, names, name="files").read(range(len(names)))
    assert batch.indices.tolist() == [0]
    said = {names[index]: text for index, text in batch.bad.items()}
    words = {
        "cut.png": "cannot be read as an image",
        "empty.png": "is empty: it has no bytes",
        "text.png": "cannot identify it as a kind that is read",
        "bomb.png": "cannot be read as an image",
        "large.png": "90000000 pixels",
        "script.png": "cannot identify it as a kind that is read",
        "tiny.png": "at least 8 pixels high and wide; this one is 4 x 4",
        "deep.png": "more than 8 bits a channel",
        "folder.png": "is a folder, a pipe or the like",
        "none.png": "No such file",
    }
    # Pillow warns of a size between its limit and twice that, and warnings are errors here.
    for name, text in words.items():
        assert text in said[name], said[name]
        assert name in said[name]


def test_a_size_over_the_limit_is_refused_where_warnings_are_not_errors(tmp_path):
    (tmp_path / "large.png").write_bytes(png_that_claims(10_000, 9_000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(FileError, match=r"says it has 10000 x 9000 pixels; more than 89,478"):
            read_image(tmp_path / "large.png")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    batch = FileImages(tmp_path, ["pipe.png"], name="files").read([0])
    assert "a pipe or the like" in batch.bad[0]


def test_no_files_are_no_set(tmp_path):
    with pytest.raises(InputError, match="files must hold at least one image"):
        FileImages(tmp_path, [], name="files")


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_every_eight_bit_mode_comes_as_three_channels(tmp_path, mode):
    picture = Image.fromarray(draw_images(1)[0]).convert(mode)
    kind = "tiff" if mode == "CMYK" else "png"
    picture.save(tmp_path / f"x.{kind}")
    held = FileImages(tmp_path, [f"x.{kind}"], name="files")
    np.testing.assert_array_equal(held[0], np.asarray(picture.convert("RGB")))
