"""Images in files: decoded, framed and refused one by one."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from PIL import Image
from stored_images import draw_images, encode, write_images

from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import FileImages
from shiftcal.errors import InputError
from shiftcal.files import Framing


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
