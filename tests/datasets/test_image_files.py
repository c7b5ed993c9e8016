"""Images in files, class folders and mosaics, and how they are decoded."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from PIL import Image
from stored_images import draw_images, write_images

from shiftcal.datasets import as_image_set
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import FileImages, class_folder, mosaic, read_image
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


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    batch = FileImages(tmp_path, ["pipe.png"], name="files").read([0])
    assert "a pipe or the like" in batch.bad[0]


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "1"])
def test_every_eight_bit_mode_comes_as_three_channels(tmp_path, mode):
    picture = Image.fromarray(draw_images(1)[0]).convert(mode)
    kind = "tiff" if mode == "CMYK" else "png"
    picture.save(tmp_path / f"x.{kind}")
    held = FileImages(tmp_path, [f"x.{kind}"], name="files")
    np.testing.assert_array_equal(held[0], np.asarray(picture.convert("RGB")))


IMAGES = draw_images(6)


def test_classes_are_the_sorted_folders_and_files_are_sorted_inside(tmp_path):
    names = ["b/2.png", "b/10.png", "B/x.png", "10/deep/y.png", "9/z.png", "b/.hidden.png"]
    write_images(tmp_path, IMAGES, names)
    (tmp_path / ".cache").mkdir()
    (tmp_path / "b" / "notes.txt").write_text("not an image")
    held = class_folder(tmp_path)
    assert held.classes == ("10", "9", "B", "b")
    assert held.ids(range(5)) == ["10/deep/y.png", "9/z.png", "B/x.png", "b/10.png", "b/2.png"]
    assert held.labels.tolist() == [0, 1, 2, 3, 3]
    np.testing.assert_array_equal(held.read(range(5)).images, IMAGES[[3, 4, 2, 1, 0]])


def test_images_without_class_folders_have_no_labels(tmp_path):
    write_images(tmp_path, IMAGES[:2], ["b.png", "a.png"])
    (tmp_path / "more").mkdir()
    held = class_folder(tmp_path)
    assert held.labels is None
    assert held.classes is None
    assert held.ids([0, 1]) == ["a.png", "b.png"]


TILES = draw_images(12, 16, 16)


@pytest.fixture
def picture(tmp_path):
    """Four tiles in a row, row by row; labels of all but the last."""
    rows = TILES.reshape(3, 4, 16, 16, 3).swapaxes(1, 2).reshape(48, 64, 3)
    Image.fromarray(rows).save(tmp_path / "x.png")
    np.savez(tmp_path / "x.npz", truth=np.arange(11) % 3, mask=np.arange(11) > 3, few=[0, 1])
    return tmp_path / "x.png"


def test_tiles_come_row_by_row_with_their_labels(picture):
    np.testing.assert_array_equal(mosaic(picture, tile=16).read(range(12)).images, TILES)
    line = f"mosaic:{picture}?tile=16&labels={picture.with_suffix('.npz')}:truth"
    images = as_image_set(line)
    assert images.labels.tolist() == [i % 3 for i in range(11)]
    kept = as_image_set(f"{line}&keep={picture.with_suffix('.npz')}:mask")
    np.testing.assert_array_equal(kept.read(range(7)).images, TILES[4:11])
    assert kept.labels.tolist() == [i % 3 for i in range(4, 11)]
    assert pickle.loads(pickle.dumps(images)).digest([0, 7]) == images.digest([0, 7])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "missing a required argument: 'tile'"),
        ("tile=4", "tile must be a whole number of at least 8"),
        ("tile=20", "tiles of 20 x 20"),
        ("tile=16&labels={}.npz:few", "2 labels"),
        ("tile=16&labels={}.npz:none", "no array 'none'"),
        ("tile=16&colour=red", "'colour'. Its options are tile, labels, keep"),
    ],
)
def test_what_does_not_fit_is_rejected(picture, options, words):
    with pytest.raises(InputError, match=words):
        as_image_set(f"mosaic:{picture}?{options.format(picture.with_suffix(''))}".rstrip("?"))


PIXELS = np.random.default_rng(6).integers(0, 256, (10, 14, 3), np.uint8)


def only_image(file):
    """Read by itself and as a set of one, which must agree."""
    image = read_image(file)
    np.testing.assert_array_equal(as_image_set(file)[0], image)
    return image


def test_the_orientation_of_a_camera_is_not_applied(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    Image.fromarray(PIXELS).save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as opened:
        assert opened.getexif()[0x0112] == 6
    np.testing.assert_array_equal(only_image(tmp_path / "a.png"), PIXELS)


def test_transparency_is_dropped_and_leaves_the_colour_beneath(tmp_path):
    alpha = np.zeros((10, 14, 1), np.uint8)
    Image.fromarray(np.concatenate([PIXELS, alpha], axis=2)).save(tmp_path / "a.png")
    np.testing.assert_array_equal(only_image(tmp_path / "a.png"), PIXELS)


def test_of_an_animation_the_first_picture_is_read(tmp_path):
    first, second = (Image.new("RGB", (9, 9), colour) for colour in ("red", "blue"))
    first.save(tmp_path / "a.gif", save_all=True, append_images=[second])
    np.testing.assert_array_equal(
        only_image(tmp_path / "a.gif"), np.broadcast_to([255, 0, 0], (9, 9, 3))
    )


def test_images_of_fewer_than_eight_pixels_a_side_are_bad(tmp_path):
    Image.fromarray(PIXELS[:7]).save(tmp_path / "a.png")
    batch = as_image_set(tmp_path / "a.png").read([0])
    assert "at least 8 pixels high and wide; this one is 7 x 14" in batch.bad[0]
