"""A model of many classes on fewer, coarser ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from shiftcal import SurrogateBank
from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError
from shiftcal.models import (
    CallableModel,
    GroupedModel,
)

IMAGES = np.random.default_rng(12).integers(0, 256, (30, 8, 8, 3), np.uint8)
GROUPS = {"b": [4, 1], "a": [0], "c": [2, 6, 5]}
WEIGHTS = np.random.default_rng(13).normal(size=(192, 7))


def seven(batch):
    return batch.reshape(len(batch), -1) @ WEIGHTS * 0.5


def seven_and_rows(batch):
    return seven(batch), batch.reshape(len(batch), -1)


def model(function=seven, **options):
    return CallableModel(function, key="v1", **options)


def test_probabilities_are_sums_on_the_condition_that_it_is_one_of_the_groups():
    inner = softmax(model().logits(IMAGES), axis=1)
    sums = np.column_stack([inner[:, members].sum(axis=1) for members in GROUPS.values()])
    made = GroupedModel(model(), GROUPS)
    assert made.classes == ("b", "a", "c")
    probs = softmax(made.logits(IMAGES), axis=1)
    # float64 throughout: only the order of the sums differs.
    np.testing.assert_allclose(probs, sums / sums.sum(axis=1, keepdims=True), rtol=1e-12)


def test_logits_are_the_logarithm_of_summed_exponentials_and_of_one_its_own():
    z = model().logits(IMAGES)
    made = GroupedModel(model(), GROUPS).logits(IMAGES)
    np.testing.assert_array_equal(made[:, 1], z[:, 0])
    np.testing.assert_allclose(made[:, 2], logsumexp(z[:, [2, 6, 5]], axis=1), rtol=1e-13)


def test_large_logits_do_not_overflow():
    def large(batch):
        return np.tile([1e4, -1e4, 3e4, 3e4], (len(batch), 1)).astype(np.float32)

    made = GroupedModel(model(large), {"a": [0, 1], "b": [2, 3]}).logits(IMAGES)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made[0], np.float32([1e4, 3e4 + np.log(2)]))


def test_features_pass_through():
    seen = GroupedModel(model(seven_and_rows), GROUPS).outputs(IMAGES)
    np.testing.assert_array_equal(seen.features, model(seven_and_rows).outputs(IMAGES).features)
    assert seen.logits.shape == (30, 3)


def test_a_bank_of_groups_matches_images_by_the_names_of_the_groups():
    labels = np.arange(30) % 3
    images = as_image_set(IMAGES, labels=labels, classes=["a", "b", "c"])
    bank = SurrogateBank.synthesize(
        GroupedModel(model(), GROUPS), images, corruption="pixelate", severities=[1]
    )
    assert bank.classes == ("b", "a", "c")
    np.testing.assert_array_equal(bank.sets[0].labels, np.array([1, 0, 2])[labels])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GroupedModel(seven, GROUPS), "model must be a Model; got function"),
        (
            lambda: GroupedModel(model(classes=list("tuvwx")), GROUPS),
            "group 'c' must be from 0 to 4, since there are 5 classes; got 6",
        ),
        (lambda: GroupedModel(model(), {"a": [1], "b": [1]}), "in one group at most; 1 is in"),
        (lambda: GroupedModel(model(), {"a": [1, 2]}), "groups must be two or more"),
    ],
)
def test_groups_that_do_not_fit_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
