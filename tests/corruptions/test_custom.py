"""Functions and transforms of the user's own."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from photos import photos

import shiftcal as sc
from shiftcal.corruptions import Custom
from shiftcal.errors import InputError

IMAGES = photos(24, 40)


def darker(image, severity):
    return (image / (1 + severity)).astype(np.uint8)


def speckled(image, severity, rng):
    image[rng.random(image.shape[:2]) < 0.1 * severity] = 0
    return image


def test_a_function_stands_in_the_place_of_a_name():
    made = sc.corrupt(IMAGES, darker, severity=3)
    assert np.array_equal(made, (IMAGES / 4).astype(np.uint8))
    assert np.array_equal(sc.corrupt(IMAGES, darker, severity=0), IMAGES)


def test_a_function_that_draws_from_its_rng_depends_on_seed_and_index_alone():
    kept = IMAGES.copy()
    whole = sc.corrupt(IMAGES, speckled, severity=2, seed=4)
    assert np.array_equal(IMAGES, kept)
    assert np.array_equal(
        sc.corrupt(IMAGES[3], speckled, severity=2, seed=4, first_index=3), whole[3]
    )
    assert not np.array_equal(sc.corrupt(IMAGES, speckled, severity=2, seed=5), whole)
    twice = sc.corrupt(np.stack([IMAGES[0]] * 2), speckled, severity=2)
    assert not np.array_equal(twice[0], twice[1])


def test_a_list_has_a_function_for_each_severity():
    ladder = [functools.partial(np.roll, shift=s, axis=0) for s in (1, 2, 5)]
    own = Custom(ladder, name="rolled")
    assert (own.name, own.severities) == ("rolled", 3)
    for severity, shift in ((1, 1), (3, 5)):
        made = sc.corrupt(IMAGES, own, severity=severity)
        assert np.array_equal(made, np.roll(IMAGES, shift, axis=1))
    with pytest.raises(InputError, match="at most 3; got 4"):
        sc.corrupt(IMAGES, own, severity=4)


def test_an_albumentations_transform_is_seeded_per_image():
    albumentations = pytest.importorskip("albumentations")
    noise = albumentations.GaussNoise(std_range=(0.2, 0.2), p=1)
    whole = sc.corrupt(IMAGES, noise, severity=1, seed=3)
    assert not np.array_equal(whole, IMAGES)
    assert np.array_equal(sc.corrupt(IMAGES, noise, severity=1, seed=3), whole)
    assert np.array_equal(sc.corrupt(IMAGES[2], noise, severity=1, seed=3, first_index=2), whole[2])
    assert not np.array_equal(sc.corrupt(IMAGES, noise, severity=1, seed=4), whole)
    both = Custom([noise, albumentations.Compose([noise, albumentations.VerticalFlip(p=1)])])
    assert both.severities == 2
    assert np.array_equal(
        sc.corrupt(IMAGES, both, severity=2), sc.corrupt(IMAGES, both, severity=2)
    )


def test_a_torchvision_transform_gets_a_pillow_image_and_a_seeded_generator():
    import torch
    from PIL import Image

    class Erase:  # what torchvision's are: called with a Pillow image, drawing from torch
        def __call__(self, image):
            assert isinstance(image, Image.Image)
            row = int(torch.randint(0, 20, ()))
            pixels = np.array(image)
            pixels[row : row + 4] = 0
            return Image.fromarray(pixels)

    Erase.__module__ = "torchvision.transforms.transforms"
    state = torch.random.get_rng_state()
    whole = sc.corrupt(IMAGES, Erase(), severity=1, seed=3)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.rand(3)
    assert np.array_equal(
        sc.corrupt(IMAGES[1], Erase(), severity=1, seed=3, first_index=1), whole[1]
    )


def test_a_key_is_the_identity_and_can_be_an_attribute_of_the_function():
    def brighter(image):
        return image

    assert Custom(brighter).identity is None
    assert Custom(brighter, key="v1").identity == "brighter (custom, key v1)"
    brighter.key = "v2"
    assert Custom(brighter, name="own").identity == "own (custom, key v2)"
    assert Custom([brighter, darker]).identity is None
    assert Custom(brighter).description == "brighter (custom)"


def test_published_corruptions_are_known_by_name_unless_changed():
    pixelate = sc.corruptions.Pixelate()
    assert pixelate.identity == "pixelate"
    assert sc.corruptions.Frost().identity == "frost (procedural)"
    pixelate.settings = sc.corruptions.Fog.settings
    assert pixelate.identity is None
    pixelate.key = "coarse"
    assert pixelate.identity == "pixelate (key coarse)"


def test_what_a_function_raises_says_whose_it_is():
    def broken(image, severity):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        sc.corrupt(IMAGES, broken, severity=2)
    assert caught.value.__notes__ == ["raised by the corruption 'broken', severity 2"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda image: image / 255, r"must return uint8 of shape \(24, 40, 3\).*float64"),
        (lambda image: image[:9], r"it returned uint8 of shape \(9, 40, 3\)"),
        (lambda image: [image][:0], "it returned float64 of shape"),
    ],
)
def test_what_a_function_returns_is_checked(function, words):
    with pytest.raises(InputError, match=words):
        sc.corrupt(IMAGES, function, severity=1)


@pytest.mark.parametrize(
    ("steps", "options", "words"),
    [
        ([], {}, "must be a function, or a list of one function per severity"),
        ([darker, 3], {}, "must be a function, or a list"),
        ([darker], {"severities": 2}, "severities must be 1"),
        (np.flipud, {"severities": 5}, "flipud has no parameter 'severity'"),
        (darker, {"severities": -1}, "severities must be a whole number"),
        (darker, {"name": "labels"}, "must not be 'labels'"),
        (darker, {"name": "a/b"}, "name must consist of letters.*got 'a/b'"),
        (darker, {"name": ".."}, "name must consist of letters"),
        (darker, {"key": " "}, "key must be text"),
        (darker, {"key": 3}, "key must be text"),
    ],
)
def test_what_cannot_be_a_corruption_is_rejected(steps, options, words):
    with pytest.raises(InputError, match=words):
        Custom(steps, **options)


def test_a_subclass_of_the_users_own_is_named_by_its_class():
    from shiftcal.corruptions.corruption import Corruption, SeverityTable

    class UpsideDown(Corruption):
        """Turned over."""

        group = "digital"
        settings = SeverityTable(cifar=((),), tiny_imagenet=((),), imagenet=((),))

        def _apply(self, images, out, plan, keys):
            out[...] = images[:, ::-1]

    assert UpsideDown().name == "upside_down"
    assert np.array_equal(sc.corrupt(IMAGES, UpsideDown, severity=1), IMAGES[:, ::-1])
    with pytest.raises(InputError, match="at most 1; got 2"):
        sc.corrupt(IMAGES, UpsideDown, severity=2)
