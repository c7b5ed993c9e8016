"""Transforms by name, against the same done with Pillow alone."""

from __future__ import annotations

import numpy as np
import pytest
from photos import photo
from PIL import Image

from shiftcal._framing import Framing
from shiftcal.adaptation.feeds.augment.horizontal_flip import HorizontalFlip
from shiftcal.adaptation.feeds.augment.pipelines import training_transform
from shiftcal.adaptation.feeds.augment.random_crop import RandomCrop
from shiftcal.adaptation.feeds.augment.random_resized_crop import RandomResizedCrop
from shiftcal.errors import InputError, UnknownName

PHOTO = photo(150, 200)
BICUBIC = Image.Resampling.BICUBIC


def made(name, side, seeds):
    """The photo after a transform, once for each seed."""
    pipeline = training_transform(name, side)
    framed = pipeline.framing.of_images(PHOTO[None]).repeat(len(seeds), axis=0)
    return pipeline.of_images(framed, [np.random.default_rng(seed) for seed in seeds])


def squeezed(side):
    """The photo as Pillow's default makes a square of it."""
    return np.asarray(Image.fromarray(PHOTO).resize((side, side)))


def test_pillow_resizes_bicubically_unless_told_otherwise():
    wanted = np.asarray(Image.fromarray(PHOTO).resize((64, 64), BICUBIC))
    np.testing.assert_array_equal(squeezed(64), wanted)


def test_the_numbers_are_the_reference_librarys():
    assert training_transform("default", 224).framing == Framing((256, 256), None, "bicubic")
    steps = (RandomResizedCrop(224, (0.08, 1.0), (3 / 4, 4 / 3)), HorizontalFlip(0.5))
    assert training_transform("default", 224).steps == steps
    assert training_transform("center-crop", 224).framing == Framing((256, 256), 224, "bicubic")
    assert training_transform("center-crop", 224).steps == (HorizontalFlip(0.5),)
    assert training_transform("random-crop", 224).framing == Framing((256, 256), None, "bicubic")
    assert training_transform("random-crop", 224).steps == (RandomCrop(224), HorizontalFlip(0.5))
    assert training_transform("none", 28).framing == Framing((28, 28), None, "bicubic")
    assert training_transform("none", 28).steps == ()


def test_the_whole_image_is_squeezed_and_nothing_else_for_none():
    np.testing.assert_array_equal(made("none", 56, [0])[0], squeezed(56))


def test_a_centre_crop_is_the_one_pillow_cuts_mirrored_or_not():
    wanted = squeezed(64)[4:60, 4:60]
    images = made("center-crop", 56, range(20))
    mirrored = [np.array_equal(image, wanted[:, ::-1]) for image in images]
    assert 0 < sum(mirrored) < 20
    for image, flipped in zip(images, mirrored, strict=True):
        np.testing.assert_array_equal(image, wanted[:, ::-1] if flipped else wanted)


def test_a_random_crop_is_a_part_of_the_squeezed_image():
    whole = squeezed(64)
    parts = {
        whole[top : top + 56, left : left + 56][:, ::way].tobytes()
        for top in range(9)
        for left in range(9)
        for way in (1, -1)
    }
    images = made("random-crop", 56, range(30))
    assert all(image.tobytes() in parts for image in images)
    assert len({image.tobytes() for image in images}) > 20


def test_by_default_a_part_is_cut_from_the_squeezed_image_resized_and_mirrored_or_not():
    images = made("default", 56, range(12))
    assert images.shape == (12, 56, 56, 3)
    flips = 0
    for seed, image in enumerate(images):
        rng = np.random.default_rng(seed)
        top, left, height, width = RandomResizedCrop(56).box(64, 64, rng)
        part = Image.fromarray(squeezed(64)).crop((left, top, left + width, top + height))
        wanted = np.asarray(part.resize((56, 56), Image.Resampling.BILINEAR))
        flipped = rng.random() < 0.5
        flips += flipped
        np.testing.assert_array_equal(image, wanted[:, ::-1] if flipped else wanted)
    assert 0 < flips < 12


def test_framed_images_are_not_changed():
    pipeline = training_transform("default", 56)
    framed = pipeline.framing.of_images(PHOTO[None])
    before = framed.copy()
    pipeline.of_images(framed, [np.random.default_rng(0)])
    np.testing.assert_array_equal(framed, before)


def test_unknown_names_and_sides_are_told():
    with pytest.raises(UnknownName, match="transform must be one of 'default', 'center-crop'"):
        training_transform("centre", 224)
    with pytest.raises(InputError, match="side must be a whole number of at least 8"):
        training_transform("default", 0)
