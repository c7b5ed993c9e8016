"""Results of your own functions and classes are reused only under the same key."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from exact_model import exact, labelled, logits_of

from shiftcal import SurrogateBank
from shiftcal.corruptions import Corruption, Custom
from shiftcal.corruptions.corruption import Settings
from shiftcal.errors import FileError, InputWarning
from shiftcal.surrogates.image_sets import corrupt_files

IMAGES, LABELS = labelled(20, seed=8, size=(32, 32))


def scaled(image, factor):
    return (image * factor).astype(np.uint8)


class Own(Corruption):
    """A subclass as users write them."""

    group = "digital"
    settings = Settings(cifar=((),), tiny_imagenet=((),), imagenet=((),))
    name = "own"

    def __init__(self, factor, key):
        self.factor = factor
        self.key = key

    def _apply(self, images, out, plan, keys):
        out[...] = scaled(images, self.factor)


def custom(factor, key):
    return Custom(functools.partial(scaled, factor=factor), name="own", key=key)


MAKERS = pytest.mark.parametrize("make", [custom, Own])


def synthesized(corruption, **options):
    model = exact()
    bank = SurrogateBank.synthesize(
        model, IMAGES, LABELS, corruption=corruption, severities=1, **options
    )
    return bank[1].logits, model.function.seen


def by_hand(factor):
    return logits_of(scaled(IMAGES, factor))


@MAKERS
def test_a_bank_with_another_key_needs_another_folder(tmp_path, make):
    for _ in range(2):
        logits, _seen = synthesized(make(0.5, "half"), out=tmp_path / "bank")
        np.testing.assert_array_equal(logits, by_hand(0.5))
    with pytest.raises(FileError, match="or by another corruption of that name"):
        synthesized(make(0.25, "quarter"), out=tmp_path / "bank")


@MAKERS
def test_a_cache_is_used_under_the_same_key_only(tmp_path, make):
    for factor, key, expected in ((0.5, "half", 40), (0.5, "half", 0), (0.25, "quarter", 20)):
        logits, seen = synthesized(make(factor, key), cache=tmp_path)
        assert seen == expected  # the clean images are the same
        np.testing.assert_array_equal(logits, by_hand(factor))


@MAKERS
def test_without_a_key_nothing_is_reused(tmp_path, make):
    for factor in (0.5, 0.25):
        with pytest.warns(InputWarning, match="'own' has no key"):
            logits, _ = synthesized(make(factor, None), cache=tmp_path)
        np.testing.assert_array_equal(logits, by_hand(factor))
    synthesized(make(0.5, None))  # nothing is stored, so there is no warning


@MAKERS
def test_a_folder_of_images_is_continued_under_the_same_key_only(tmp_path, make):
    np.save(tmp_path / "images.npy", IMAGES)

    def written(key, folder):
        given = [make(0.5, key)]
        return corrupt_files(tmp_path / "images.npy", folder, corruptions=given).written

    assert written("half", tmp_path / "keyed") > 0
    assert written("half", tmp_path / "keyed") == 0
    with pytest.raises(FileError, match=r"already has own .*half.* and this is own"):
        written("quarter", tmp_path / "keyed")
    written(None, tmp_path / "bare")
    with pytest.raises(FileError, match=r"and this is own .*unknown"):
        written(None, tmp_path / "bare")
