"""Who is mixed with whom, and what it is called."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.datasets import as_image_set, mix_images

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (300, 8, 9, 3), dtype=np.uint8)
LOGITS = RNG.standard_normal((300, 4))
PREDICTED = LOGITS.argmax(axis=1)


def test_only_images_of_different_predictions_are_mixed_and_the_first_gives_the_label():
    mixed = mix_images(IMAGES, LOGITS)
    np.testing.assert_array_equal(mixed.labels, PREDICTED[mixed.first])
    assert (PREDICTED[mixed.first] != PREDICTED[mixed.second]).all()
    expected = 0.65 * IMAGES[mixed.first].astype(float) + 0.35 * IMAGES[mixed.second]
    found = mixed.read(np.arange(len(mixed))).images
    # half a level for rounding, and what float32 is off by
    np.testing.assert_allclose(found, expected, atol=0.5 + 1e-4)


def test_everyone_has_one_partner_from_the_whole_set():
    mixed = mix_images(IMAGES, np.arange(300))  # all different: nobody is left out but by itself
    assert 290 <= len(mixed) <= 300
    assert len(set(mixed.first.tolist())) == len(set(mixed.second.tolist())) == len(mixed)
    # of a permutation inside batches of 108 no partner would be further than that
    assert np.abs(mixed.first - mixed.second).max() > 200
    assert (mixed.first != mixed.second).all()


def test_about_as_many_pairs_are_left_as_chance_says():
    share = sum(np.mean(k == PREDICTED) ** 2 for k in range(4))
    # three standard deviations of a share of 300
    assert len(mix_images(IMAGES, PREDICTED)) / 300 == pytest.approx(1 - share, abs=0.08)


def test_the_seed_decides_and_nothing_else():
    first, again = mix_images(IMAGES, LOGITS, seed=3), mix_images(IMAGES, PREDICTED, seed=3)
    np.testing.assert_array_equal(first.second, again.second)
    assert first.second.tolist() != mix_images(IMAGES, LOGITS, seed=4).second.tolist()


def test_labels_of_the_set_have_no_say():
    labelled = as_image_set(IMAGES, labels=np.zeros(300, int), classes=["one", "two"])
    mixed = mix_images(labelled, LOGITS)
    np.testing.assert_array_equal(mixed.labels, mix_images(IMAGES, LOGITS).labels)
    assert mixed.classes is None
