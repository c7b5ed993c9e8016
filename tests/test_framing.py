"""Framing: sizes as torchvision's, the same from a picture and from an array."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from stored_images import draw_images

from shiftcal.errors import InputError
from shiftcal.files import Framing

FRAMINGS = [
    Framing(),
    Framing(resize=20),
    Framing(resize=(13, 30), interpolation="bicubic"),
    Framing(resize=16, crop=12),
    Framing(crop=10),
]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_picture_and_an_array_are_framed_to_the_same_pixels(framing):
    image = draw_images(1, 31, 17)[0]
    from_picture = np.asarray(framing.of_picture(Image.fromarray(image)))
    np.testing.assert_array_equal(framing.of_images(image[None])[0], from_picture)


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    # The longer side is cut down to a whole number: 256 * 375 / 500 would be 192 the other way.
    [(375, 500, (256, 341)), (500, 375, (341, 256)), (256, 300, (256, 300)), (33, 33, (256, 256))],
)
def test_the_shorter_side_gets_the_length_and_the_other_is_rounded_down(height, width, expected):
    picture = Image.new("RGB", (width, height))
    assert Framing(resize=256).of_picture(picture).size == expected[::-1]


def test_the_crop_is_from_the_centre_and_nothing_to_do_gives_the_batch_itself():
    image = np.zeros((1, 14, 10, 3), np.uint8)
    image[0, 3:11, 1:9] = 255
    assert (Framing(crop=8).of_images(image) == 255).all()
    assert Framing().of_images(image) is image


@pytest.mark.parametrize(
    ("framing", "words"),
    [
        (Framing(crop=12), r"at least 12 pixels.*got 9 x 80. Set resize=12"),
        (Framing(resize=5000), "more than 89,478,485 pixels are not made"),
        (Framing(resize=(10_000, 10_000)), "more than 89,478,485 pixels are not made"),
    ],
)
def test_images_too_small_or_too_large_raise(framing, words):
    with pytest.raises(InputError, match=words):
        framing.of_images(np.zeros((1, 9, 80, 3), np.uint8))
    with pytest.raises(InputError, match=words):
        framing.of_picture(Image.new("RGB", (80, 9)))
