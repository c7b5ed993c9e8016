"""Strengths of your own: published settings give published pixels, others follow the recipe."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from exact_model import exact, labelled, logits_of
from photos import odd_images, photos
from PIL import Image
from scipy import ndimage

from shiftcal import SurrogateBank, corrupt, corruptions
from shiftcal.corruptions import Custom, Frost, Strengths
from shiftcal.corruptions.blur import defocus_kernel
from shiftcal.corruptions.images import LIMITS
from shiftcal.errors import InputError, UnknownName

NAMES = pytest.mark.parametrize("name", corruptions.names())
IMAGES = labelled(6, seed=2, size=(32, 36))[0]
FINE = Strengths("pixelate", [0.97, 0.94, 0.9, 0.85], name="pixelate_fine")


@NAMES
def test_published_settings_give_the_published_pixels(name):
    published = corruptions.get(name)
    made = Strengths(name, published.settings["cifar"], name="own")
    for attribute in ("group", "random", "monotone", "parallel"):
        assert getattr(made, attribute) == getattr(published, attribute)
    made.name = name  # for the same random numbers
    for severity in (1, 5):
        np.testing.assert_array_equal(
            corrupt(IMAGES, made, severity=severity, seed=7),
            corrupt(IMAGES, name, severity=severity, seed=7, table="cifar"),
        )


def test_severities_are_the_strengths_whatever_the_size_and_the_table():
    assert FINE.severities == 4
    for images in (IMAGES, IMAGES.repeat(7, axis=1).repeat(7, axis=2)):
        expected = corrupt(images, "pixelate", severity=2, table="cifar")  # 0.9
        for table in ("auto", "imagenet"):
            made = corrupt(images, FINE, severity=3, table=table)
            np.testing.assert_array_equal(made, expected)
    with pytest.raises(InputError, match=r"severity must be .* at most 4"):
        corrupt(IMAGES, FINE, severity=5)


def test_the_identity_has_the_corruption_and_all_strengths():
    made = [
        Strengths("pixelate", [0.9, 0.8], name="a"),
        Strengths("pixelate", [0.9, 0.7], name="a"),
        Strengths("pixelate", [0.9, 0.8], name="b"),
        Strengths("contrast", [0.9, 0.8], name="a"),
    ]
    assert len({each.identity for each in made}) == 4
    assert FINE.identity.startswith("pixelate_fine (pixelate, strengths ((0.97,), (0.94,)")
    same = Strengths(corruptions.Pixelate, np.array([0.9, 0.8]), name="a")
    assert same.identity == made[0].identity
    assert pickle.loads(pickle.dumps(FINE)).identity == FINE.identity
    thin = Strengths(Frost(), [(1, 0.1, 0.2)], name="thin")
    assert thin.description == "thin (frost (procedural))"
    assert thin.identity.startswith("thin (frost (procedural), strengths ")


def test_a_bank_is_made_of_it():
    images, labels = labelled(20, seed=3, size=(32, 32))
    bank = SurrogateBank.synthesize(exact(), images, labels, corruption=FINE)
    names = [f"pixelate_fine, severity {s}" for s in (1, 2, 3, 4)]
    assert [s.name for s in bank] == ["clean", *names]
    expected = logits_of(corrupt(images, "pixelate", severity=2, table="cifar"))
    np.testing.assert_array_equal(bank[3].logits, expected)


@NAMES
def test_the_ends_of_the_limits_can_be_used(name):
    images = np.random.default_rng(1).integers(0, 256, (2, 9, 10, 3), np.uint8)
    ends = [[limits.low for limits in LIMITS[name]], [limits.high for limits in LIMITS[name]]]
    made = Strengths(name, ends, name="ends")
    for severity in (1, 2):
        one = corrupt(images, made, severity=severity)
        np.testing.assert_array_equal(one, corrupt(images, made, severity=severity, threads=1))


def reached(name, setting, image):
    made = corrupt(image, Strengths(name, [setting], name="own"), severity=1)
    return made.astype(np.float64)


@pytest.mark.parametrize("image", [photos(40, 33)[1], odd_images(40, 33)[4]], ids=["photo", "odd"])
class TestBetweenThePublishedSettings:
    @pytest.mark.parametrize("sigma", [0.1, 1.7, 12])
    def test_gaussian_blur_is_scipys(self, image, sigma):
        smooth = ndimage.gaussian_filter(
            image.astype(np.float64), (sigma, sigma, 0), mode="nearest", truncate=4
        )
        off = reached("gaussian_blur", sigma, image) - smooth
        # Cut to whole levels, from sums in fixed point, which err more the more there is to add.
        assert off.min() > -1.1
        assert off.max() < 0.1

    @pytest.mark.parametrize("setting", [(0, 0.5), (1.2, 0.2), (6.9, 1)])
    def test_defocus_blur_is_scipys(self, image, setting):
        kernel = defocus_kernel(*setting)[..., None]
        blurred = ndimage.correlate(image.astype(np.float64), kernel, mode="mirror")
        off = reached("defocus_blur", setting, image) - blurred
        assert off.min() > -1.07
        assert off.max() < 0.07

    @pytest.mark.parametrize("factor", [0, 0.33, 0.97, 1])
    def test_pixelate_is_pillows(self, image, factor):
        height, width = image.shape[:2]
        size = max(1, int(factor * width)), max(1, int(factor * height))
        small = Image.fromarray(image).resize(size, Image.Resampling.BOX)
        large = np.asarray(small.resize((width, height), Image.Resampling.BOX))
        np.testing.assert_array_equal(reached("pixelate", factor, image), large)

    @pytest.mark.parametrize("quality", [1, 51, 100])
    def test_jpeg_compression_is_pillows(self, image, quality):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=quality)
        expected = np.asarray(Image.open(file))
        np.testing.assert_array_equal(reached("jpeg_compression", quality, image), expected)


@pytest.mark.parametrize(
    ("corruption", "strengths", "words"),
    [
        ("pixelate", [0.9, "x"], r"1 finite number\(s\); got 'x'. Published"),
        ("pixelate", [float("nan")], "got nan"),
        ("pixelate", [1.2], "number 1 of each must lie between 0 and 1; got 1.2. Pub"),
        ("glass_blur", [0.5], r"3 finite number\(s\); got 0.5. Published"),
        ("glass_blur", [(0.5, 1.5, 2)], "number 2 of each must be a whole number between 1 and 8;"),
        ("fog", [(1, 2, 33)], "of fog: number 3 of each must be one of 32, 64, 256; got"),
        ("defocus_blur", [(1.5, 0.5)], "number 2 must be at most 0.2 where number 1 is from 1 to"),
        ("pixelate", 0.9, "strengths must be a list; got 0.9"),
        ("pixelate", "0.9", "strengths must be a list; got '0.9'"),
        ("pixelate", [], "strengths must be one or more; got none"),
        (Custom(lambda image: image, name="mine"), [1], r"mine \(custom\) has none"),
        (FINE, [0.9], r"pixelate_fine \(pixelate\) has none"),
        ("pixelat", [0.9], "pixelate"),
    ],
)
def test_strengths_that_cannot_be_used_are_rejected(corruption, strengths, words):
    with pytest.raises((InputError, UnknownName), match=words):
        Strengths(corruption, strengths, name="own")
