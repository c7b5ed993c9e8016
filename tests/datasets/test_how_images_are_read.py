"""What becomes of an image file on its way to pixels."""

from __future__ import annotations

import numpy as np
from PIL import Image

from shiftcal.datasets import as_image_set
from shiftcal.datasets.image_files import read_image

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


def test_grey_images_have_three_equal_channels(tmp_path):
    Image.fromarray(PIXELS[..., 0]).save(tmp_path / "a.png")
    np.testing.assert_array_equal(
        only_image(tmp_path / "a.png"), np.repeat(PIXELS[..., :1], 3, axis=2)
    )


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
