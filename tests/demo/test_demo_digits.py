from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from small_demo import whole_subject

from shiftcal.demo.digits import Network, enlarged, model_of, rows_of, trained
from shiftcal.demo.subject import Target


@pytest.fixture(scope="module")
def pictures():
    return enlarged(load_digits().images)


def test_the_network_is_that_of_scikit_learn(pictures):
    labels = load_digits().target
    with pytest.warns(UserWarning, match="Maximum iterations"):
        theirs = MLPClassifier((16, 8), max_iter=3, random_state=1).fit(
            rows_of(pictures[:300]), labels[:300]
        )
    logits, hidden = Network(theirs)(pictures[300:400, ..., None])
    # Sums of a thousand products in another order.
    wanted = theirs.predict_proba(rows_of(pictures[300:400]))
    np.testing.assert_allclose(softmax(logits, axis=1), wanted, rtol=1e-9, atol=1e-12)
    assert hidden.shape == (100, 8)
    assert hidden.min() == 0.0


def test_its_key_changes_with_any_weight(pictures):
    labels = load_digits().target
    first, again = (trained(pictures[:120], labels[:120]) for _ in range(2))
    assert first.key == again.key
    again.biases[0] = again.biases[0] + 1e-9
    assert first.key != again.key
    assert model_of(first).fingerprint != model_of(again).fingerprint


def test_pictures_are_the_digits_enlarged(pictures):
    assert pictures.shape == (1797, 32, 32)
    assert pictures.dtype == np.uint8
    level = enlarged(np.full((1, 8, 8), 4.0))
    np.testing.assert_array_equal(level, np.full((1, 32, 32), 64))  # 4 of 16, rounded
    for digit, picture in zip(load_digits().images[:20], pictures, strict=False):
        theirs = Image.fromarray((digit * 255 / 16).astype(np.float32)).resize(
            (32, 32), Image.Resampling.BILINEAR
        )
        # Pillow's weights are of single precision, which may round a half the other way.
        assert np.abs(np.asarray(theirs) - picture).max() < 0.51


def test_no_digit_is_used_twice(pictures):
    subject = whole_subject()
    train, calibration = (
        {int(name) for name in part.ids(range(len(part)))}
        for part in (subject.train, subject.calibration)
    )
    new = sorted(set(range(1797)) - train - calibration)
    assert (len(train), len(calibration), len(new)) == (600, 598, 599)
    np.testing.assert_array_equal(subject.new, pictures[new])
    np.testing.assert_array_equal(subject.new_labels, load_digits().target[new])


def test_what_befalls_new_digits_is_not_in_the_bank():
    subject = whole_subject()
    assert {one.corruption for one in subject.targets}.isdisjoint(subject.corruptions)
    assert [one.mixture for one in subject.targets] == [False, True, False]


def test_every_second_image_of_a_mixture_is_spared():
    new = whole_subject().new[:9]
    before = new.copy()
    all_of_them = Target("a", "a", "fog", 2).images(new, table="imagenet")
    mixed = Target("a", "a", "fog", 2, mixture=True).images(new, table="imagenet")
    np.testing.assert_array_equal(mixed[::2], new[::2])
    np.testing.assert_array_equal(mixed[1::2], all_of_them[1::2])
    assert (all_of_them != new).any(axis=(1, 2)).all()
    np.testing.assert_array_equal(new, before)
