"""Banks and folders made with functions of one's own are never mixed with another function's."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest
from exact_model import exact, labelled, logits_of

from shiftcal import SurrogateBank, corrupt
from shiftcal.corruptions import Corruption, Custom
from shiftcal.corruptions.base import Settings
from shiftcal.errors import FileError, InputWarning
from shiftcal.surrogates.image_sets import corrupt_files

IMAGES, LABELS = labelled(20, seed=8, size=(32, 32))
FACTOR = 0.5


def closure(factor):
    return lambda image: (image * factor).astype(np.uint8)


def scaled(image, factor):
    return (image * factor).astype(np.uint8)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, image):
        return (image * self.factor).astype(np.uint8)


class Own(Corruption):
    """A subclass as users write them."""

    group = "digital"
    settings = Settings(cifar=((),), tiny_imagenet=((),), imagenet=((),))
    name = "own"

    def __init__(self, factor):
        self.factor = factor

    def _apply(self, images, out, plan, keys):
        out[...] = (images * self.factor).astype(np.uint8)


MAKERS = {
    "closure": lambda factor: Custom(closure(factor), name="own"),
    "partial": lambda factor: Custom(functools.partial(scaled, factor=factor), name="own"),
    "object": lambda factor: Custom(Scaled(factor), name="own"),
    "subclass": Own,
}


def synthesized(corruption, **options):
    model = exact()
    bank = SurrogateBank.synthesize(
        model, IMAGES, LABELS, corruption=corruption, severities=1, **options
    )
    return bank, model.function.seen


def by_hand(factor):
    return logits_of((IMAGES * factor).astype(np.uint8))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_bank_is_never_that_of_another_value(tmp_path, make):
    for _ in range(2):
        bank, _seen = synthesized(make(0.5), out=tmp_path / "bank")
        np.testing.assert_array_equal(bank[1].logits, by_hand(0.5))
    with pytest.raises(FileError, match="or by another corruption of that name"):
        synthesized(make(0.25), out=tmp_path / "bank")
    bank, _ = synthesized(make(0.25), out=tmp_path / "other")
    np.testing.assert_array_equal(bank[1].logits, by_hand(0.25))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_cache_gives_nothing_of_another_value(tmp_path, make):
    first, seen = synthesized(make(0.5), cache=tmp_path)
    assert seen == 40
    again, seen = synthesized(make(0.5), cache=tmp_path)
    assert seen == 0
    np.testing.assert_array_equal(again[1].logits, first[1].logits)
    other, seen = synthesized(make(0.25), cache=tmp_path)
    assert seen == 20  # the clean images are the same
    np.testing.assert_array_equal(other[1].logits, by_hand(0.25))


def reads_a_global(image):
    return (image * FACTOR).astype(np.uint8)


def test_a_cache_gives_nothing_of_another_global(tmp_path, monkeypatch):
    synthesized(reads_a_global, cache=tmp_path)
    monkeypatch.setitem(globals(), "FACTOR", 0.25)
    bank, _ = synthesized(reads_a_global, cache=tmp_path)
    np.testing.assert_array_equal(bank[1].logits, by_hand(0.25))


class Locked(Scaled):
    def __init__(self, factor):
        super().__init__(factor)
        self.lock = threading.Lock()


def test_what_cannot_be_known_again_is_computed_again_unless_it_has_a_key(tmp_path):
    for factor in (0.5, 0.25):
        with pytest.warns(InputWarning, match="the corruption 'own' is the same as in an earlier"):
            bank, _ = synthesized(Custom(Locked(factor), name="own"), cache=tmp_path)
        np.testing.assert_array_equal(bank[1].logits, by_hand(factor))
    for expected in (20, 0):
        _, seen = synthesized(Custom(Locked(0.5), name="own", key="half"), cache=tmp_path)
        assert seen == expected
    synthesized(Custom(Locked(0.5), name="own"))  # nothing lasts, nothing is warned of


@pytest.fixture
def array(tmp_path):
    np.save(tmp_path / "images.npy", IMAGES)
    return tmp_path / "images.npy"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_folder_of_images_is_not_gone_on_with_by_another_value(tmp_path, array, make):
    corrupt_files(array, tmp_path / "out", corruptions=[make(0.5)])
    assert corrupt_files(array, tmp_path / "out", corruptions=[make(0.5)]).written == 0
    with pytest.raises(FileError, match=r"already has own .*sha256.* and this is own"):
        corrupt_files(array, tmp_path / "out", corruptions=[make(0.25)])
    made = np.load(tmp_path / "out" / "own.npy")
    np.testing.assert_array_equal(made, corrupt(IMAGES, make(0.5), severity=1))


def test_a_folder_of_images_by_what_cannot_be_known_again_is_made_once(tmp_path, array):
    nameless = Custom(Locked(0.5), name="own")
    told = r"name='own', key='own-v1'"
    with pytest.warns(InputWarning, match=told):
        corrupt_files(array, tmp_path / "out", corruptions=[nameless])
    with (
        pytest.warns(InputWarning, match=told),
        pytest.raises(FileError, match=r"and this is own \(custom\) \(unknown"),
    ):
        corrupt_files(array, tmp_path / "out", corruptions=[nameless])
    keyed = Custom(Locked(0.5), name="own", key="v1")
    assert corrupt_files(array, tmp_path / "keyed", corruptions=[keyed]).written > 0
    assert corrupt_files(array, tmp_path / "keyed", corruptions=[keyed]).written == 0
