"""Strengths of one's own: published settings give published pixels, anything else is refused."""

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
from shiftcal.corruptions import Corruption, Custom, Frost, Strengths
from shiftcal.corruptions._engine import _WARM
from shiftcal.corruptions._kernels.disk_plan import defocus_kernel
from shiftcal.corruptions._strength_limits import LIMITS
from shiftcal.errors import InputError, UnknownName
from shiftcal.report.gallery import tiles_of_all, tiles_of_one

NAMES = corruptions.names()
IMAGES = labelled(6, seed=2, size=(32, 36))[0]
FINE = Strengths("pixelate", [0.97, 0.94, 0.9, 0.85], name="pixelate_fine")


def named_as_published(name, table):
    """The published settings as strengths, with the random numbers of the published name."""
    made = Strengths(name, corruptions.get(name).settings[table], name="again")
    made._name = name
    return made


@pytest.mark.parametrize("name", NAMES)
def test_published_settings_give_the_published_pixels(name):
    made = named_as_published(name, "cifar")
    for severity in (1, 3, 5):
        np.testing.assert_array_equal(
            corrupt(IMAGES, made, severity=severity, seed=7),
            corrupt(IMAGES, name, severity=severity, seed=7, table="cifar"),
        )


def test_severities_are_the_strengths_whatever_the_size_and_the_table():
    assert FINE.severities == 4
    for images in (IMAGES, IMAGES.repeat(7, axis=1).repeat(7, axis=2)):
        expected = corrupt(images, "pixelate", severity=2, table="cifar")  # 0.9
        for table in ("auto", "cifar", "imagenet"):
            made = corrupt(images, FINE, severity=3, table=table)
            np.testing.assert_array_equal(made, expected)
    assert not np.array_equal(corrupt(IMAGES, FINE, severity=4), corrupt(IMAGES, FINE, severity=3))
    with pytest.raises(InputError, match=r"severity must be .* at most 4"):
        corrupt(IMAGES, FINE, severity=5)


def test_another_name_draws_other_random_numbers_of_the_same_distribution():
    grey = np.full((1, 128, 128, 3), 128, np.uint8)
    made = Strengths("gaussian_noise", [0.04], name="noise_fine")
    ours, published = corrupt(grey, made, severity=1), corrupt(grey, "gaussian_noise", severity=1,
                                                               table="cifar")  # fmt: skip
    assert not np.array_equal(ours, published)
    # 49,152 values of deviation 10.2: standard errors of 0.05 for the mean, 0.03 for the deviation.
    assert abs(ours.mean() - published.mean()) < 0.3
    assert abs(ours.std() - published.std()) < 0.2


@pytest.mark.parametrize("name", NAMES)
def test_group_and_chance_are_those_of_the_corruption(name):
    inner = corruptions.get(name)
    made = Strengths(name, inner.settings.imagenet, name="own")
    for attribute in ("group", "random", "monotone", "parallel"):
        assert getattr(made, attribute) == getattr(inner, attribute)
    assert (made.name, made.key) == ("own", None)


def test_the_identity_has_the_corruption_and_all_strengths(tmp_path):
    known = {
        Strengths(*given, name=name).identity
        for given, name in [
            (("pixelate", [0.9, 0.8]), "a"),
            (("pixelate", [0.9, 0.7]), "a"),
            (("pixelate", [0.9]), "a"),
            (("pixelate", [0.9, 0.8]), "b"),
            (("contrast", [0.9, 0.8]), "a"),
        ]
    }
    assert len(known) == 5
    assert None not in known
    assert FINE.identity.startswith("pixelate_fine (pixelate, strengths ((0.97,), (0.94,)")
    same = Strengths(corruptions.Pixelate, np.array([0.9, 0.8]), name="a")
    assert same.identity in known


def test_the_kind_of_frost_is_part_of_it():
    made = Strengths(Frost(), [(1, 0.1, 0.2)], name="thin")
    assert made.description == "thin (frost (procedural))"
    assert made.identity.startswith("thin (frost (procedural), strengths ")


def test_a_corruption_that_cannot_be_known_again_has_no_identity():
    class Unknown(Corruption):
        group = "digital"
        settings = corruptions.Pixelate.settings
        identity = None

        def _apply(self, images, out, plan, keys):
            out[...] = images

    assert Strengths(Unknown(), [(17,)], name="own").identity is None


def test_it_pickles():
    again = pickle.loads(pickle.dumps(FINE))
    assert again.identity == FINE.identity
    np.testing.assert_array_equal(
        corrupt(IMAGES, again, severity=2), corrupt(IMAGES, FINE, severity=2)
    )


def test_two_corruptions_with_one_strength_load_their_own_kernels():
    for name in ("contrast", "brightness"):
        corrupt(IMAGES, Strengths(name, [0.123], name="own"), severity=1)
        assert (Strengths, (corruptions.get(name), (0.123,))) in _WARM


def test_a_bank_is_made_of_it():
    images, labels = labelled(20, seed=3, size=(32, 32))
    bank = SurrogateBank.synthesize(exact(), images, labels, corruption=FINE)
    assert [s.name for s in bank] == [
        "clean", *(f"pixelate_fine, severity {s}" for s in (1, 2, 3, 4)),
    ]  # fmt: skip
    expected = logits_of(corrupt(images, "pixelate", severity=2, table="cifar"))
    np.testing.assert_array_equal(bank[3].logits, expected)


def test_a_gallery_shows_all_its_strengths():
    assert len(tiles_of_one(IMAGES[0], FINE)) == 5
    assert [tile.label for tile in tiles_of_all(IMAGES[0], [FINE], severity=4)] == [
        "original", "pixelate fine (pixelate)",
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_published_setting_is_taken_as_it_is(name):
    known = corruptions.get(name).settings
    everything = (*known.cifar, *known.tiny_imagenet, *known.imagenet)
    made = Strengths(name, [[float(value) for value in each] for each in everything], name="own")
    assert repr(made.strengths) == repr(everything)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("side", [8, 33, 130])
def test_the_ends_of_the_limits_can_be_used(name, side):
    images = np.random.default_rng(1).integers(0, 256, (2, side, side + 1, 3), np.uint8)
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
    @pytest.mark.parametrize("sigma", [0.1, 0.3, 0.45, 0.9, 1.7, 4.4, 9, 12])
    def test_gaussian_blur_is_scipys(self, image, sigma):
        smooth = ndimage.gaussian_filter(
            image.astype(np.float64), (sigma, sigma, 0), mode="nearest", truncate=4
        )
        off = reached("gaussian_blur", sigma, image) - smooth
        # Cut to whole levels, from sums in fixed point, which err more the more there is to add.
        assert off.min() > -1.1
        assert off.max() < 0.1

    @pytest.mark.parametrize(
        "setting", [(0, 0.5), (0.9, 0.3), (1.2, 0.2), (2, 0.5), (2.2, 1), (4.7, 0.3), (6.9, 1)]
    )
    def test_defocus_blur_is_scipys(self, image, setting):
        kernel = defocus_kernel(*setting)[..., None]
        blurred = ndimage.correlate(image.astype(np.float64), kernel, mode="mirror")
        off = reached("defocus_blur", setting, image) - blurred
        assert off.min() > -1.07
        assert off.max() < 0.07

    @pytest.mark.parametrize("factor", [0, 0.03, 0.33, 0.77, 0.97, 1])
    def test_pixelate_is_pillows(self, image, factor):
        height, width = image.shape[:2]
        size = max(1, int(factor * width)), max(1, int(factor * height))
        small = Image.fromarray(image).resize(size, Image.Resampling.BOX)
        large = np.asarray(small.resize((width, height), Image.Resampling.BOX))
        np.testing.assert_array_equal(reached("pixelate", factor, image), large)

    @pytest.mark.parametrize("quality", [1, 3, 33, 49, 51, 90, 95, 100])
    def test_jpeg_compression_is_pillows(self, image, quality):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=quality)
        expected = np.asarray(Image.open(file))
        np.testing.assert_array_equal(reached("jpeg_compression", quality, image), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_of_too_many_numbers_is_told_what_one_is(name):
    known = corruptions.get(name).settings.cifar[0]
    with pytest.raises(
        InputError, match=rf"strengths of {name} must be .*A setting is .*Published"
    ):
        Strengths(name, [(*known, 1)], name="own")


@pytest.mark.parametrize(
    ("corruption", "strengths", "told"),
    [
        ("pixelate", [0.9, "x"], "each .* of pixelate must be a number, finite; got 'x'. A setting "
                                 "is the fraction c of the side .*32 pixels: 0.95, 0.9, 0.85, 0.7"),
        ("pixelate", [float("nan")], "must be a number, finite; got nan"),
        ("pixelate", [True], "must be a number, finite; got True"),
        ("pixelate", [None], "must be a number, finite; got None"),
        ("pixelate", [1.2], "strengths of pixelate: each must lie between 0 and 1; got 1.2. A se"),
        ("pixelate", [-0.1], "must lie between 0 and 1; got -0.1"),
        ("glass_blur", [0.5], r"must be 3 numbers, finite; got 0.5. A setting is \(s, d, k\): the"),
        ("glass_blur", [(0.5, 1)], r"must be 3 numbers, finite; got \(0.5, 1\).*\(0.05, 1, 1\), "),
        ("glass_blur", [(0.5, 1.5, 2)], "number 2 of each must be a whole number between 1 and 8;"),
        ("fog", [(1, 2, 33)], "of fog: number 3 of each must be one of 32, 64, 256; got 33"),
        ("defocus_blur", [(7.5, 0.5)], "number 1 of each must lie between 0 and 6.9; got 7.5"),
        ("defocus_blur", [(1.5, 0.5)], "number 2 must be at most 0.2 where number 1 is from 1 to"),
        ("pixelate", 0.9, "strengths must be a list; got 0.9. A setting is the fraction"),
        ("pixelate", "0.9", "strengths must be a list; got '0.9'"),
        ("pixelate", [], "strengths must be one or more; got none"),
        (lambda image: image, [1], r"with published settings, .*custom \(custom\) has none. Pass"),
        (Custom(lambda image: image, name="mine"), [1], r"mine \(custom\) has none"),
        (FINE, [0.9], r"pixelate_fine \(pixelate\) has none"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(corruption, strengths, told):
    with pytest.raises(InputError, match=told):
        Strengths(corruption, strengths, name="own")


def test_an_unknown_corruption_is_refused():
    with pytest.raises(UnknownName, match="pixelate"):
        Strengths("pixelat", [0.9], name="own")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pixelate", "must not be that of a published corruption; got 'pixelate'.*pixelate_fine"),
        ("fog", "must not be that of a published corruption; got 'fog'"),
        ("a/b", "letters, digits"),
        ("labels", "file of labels"),
    ],
)
def test_a_name_that_would_mislead_is_refused(name, told):
    with pytest.raises(InputError, match=told):
        Strengths("pixelate", [0.9], name=name)
