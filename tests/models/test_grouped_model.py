"""A model of many classes on fewer, coarser ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from scipy.special import logsumexp, softmax
from torch import nn

from shiftcal import SurrogateBank
from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError
from shiftcal.models import (
    CallableModel,
    GroupedModel,
    Model,
    Preprocessing,
    SklearnModel,
    TorchModel,
    as_model,
)

IMAGES = np.random.default_rng(12).integers(0, 256, (30, 8, 8, 3), np.uint8)
GROUPS = {"b": [4, 1], "a": [0], "c": [2, 6, 5]}
WEIGHTS = np.random.default_rng(13).normal(size=(192, 7))


def seven(batch):
    return batch.reshape(len(batch), -1) @ WEIGHTS * 0.5


def seven_and_rows(batch):
    return seven(batch), batch.reshape(len(batch), -1)


def probabilities(batch):
    return softmax(seven(batch), axis=1)


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


def test_a_model_of_probabilities_gives_the_same_up_to_a_constant_of_the_row():
    made = GroupedModel(model(probabilities, output="probabilities"), GROUPS).logits(IMAGES)
    wanted = GroupedModel(model(), GROUPS).logits(IMAGES)
    np.testing.assert_allclose(softmax(made, axis=1), softmax(wanted, axis=1), rtol=1e-9)


def test_batches_change_nothing():
    whole = GroupedModel(model(), GROUPS).logits(IMAGES)
    for size in (1, 7):
        other = GroupedModel(model(batch_size=size), GROUPS)
        assert other.batch_size == size
        # The product of the network itself may differ in the last digit.
        np.testing.assert_allclose(other.logits(IMAGES), whole, rtol=1e-12)


def test_features_pass_through():
    seen = GroupedModel(model(seven_and_rows), GROUPS).outputs(IMAGES)
    np.testing.assert_array_equal(seen.features, model(seven_and_rows).outputs(IMAGES).features)
    assert seen.logits.shape == (30, 3)


def test_what_is_known_of_the_model_is_known_of_the_groups():
    preprocessing = Preprocessing(mean=(0.5,) * 3, std=(0.2,) * 3)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 7)).eval()
    inner = TorchModel(network, preprocessing=preprocessing, memory_budget=9 << 20)
    made = GroupedModel(inner, GROUPS)
    assert made.preprocessing == preprocessing
    assert (made.engine, made.batch_size) == (inner.engine, None)
    assert (made.memory_budget, made.measured_memory) == (9 << 20, "process")
    assert made.size_of_batches(IMAGES) == inner.size_of_batches(IMAGES)
    z = inner.logits(IMAGES)
    # float32 of the network.
    np.testing.assert_allclose(
        made.logits(IMAGES)[:, 0], logsumexp(z[:, [1, 4]], axis=1), rtol=1e-5
    )
    made.use_threads(1)
    assert inner.threads == 1
    inner.threads = None
    with made.sharing(1):
        assert inner.threads == 1
    assert inner.threads is None


def test_the_fingerprint_is_of_the_model_and_the_groups():
    made = GroupedModel(model(), GROUPS)
    same = GroupedModel(model(), {"b": (1, 4), "a": np.array([0]), "c": [6, 5, 2]})
    assert made.fingerprint == same.fingerprint
    others = [
        model(),
        GroupedModel(CallableModel(seven, key="v2"), GROUPS),
        GroupedModel(model(), {**GROUPS, "a": [3]}),
        GroupedModel(model(), dict(sorted(GROUPS.items()))),
        GroupedModel(model(), {"x": [4, 1], "a": [0], "c": [2, 6, 5]}),
        GroupedModel(model(output="probabilities"), GROUPS),
    ]
    prints = {made.fingerprint, *(one.fingerprint for one in others)}
    assert len(prints) == 7
    assert None not in prints
    assert GroupedModel(CallableModel(seven), GROUPS).fingerprint is None


def test_it_goes_to_other_processes():
    torch.manual_seed(3)
    inner = TorchModel(nn.Sequential(nn.Flatten(), nn.Linear(192, 7)).eval(), batch_size=8)
    made = GroupedModel(inner, GROUPS)
    other = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(other.logits(IMAGES), made.logits(IMAGES))
    for name in ("fingerprint", "engine", "spec", "preprocessing", "classes", "groups"):
        assert getattr(other, name) == getattr(made, name)
    assert isinstance(as_model(made), Model)


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
        (lambda: GroupedModel(seven, GROUPS), "model must be a Model; got function. Make one"),
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


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (lambda b: seven(b)[:, :6], {}, r"on images 0 to 19.*7 columns or more.*\(20, 6\)"),
        (lambda b: seven(b)[:, :7], {"classes": list("tuvwxyzä")}, r"and 8 columns for these"),
        (lambda b: seven(b)[:, 0], {}, r"a row an image and 7 columns.*got shape \(20,\)"),
        (lambda b: seven(b)[:-1], {}, r"images 0 to 19 must have shape \(20, k\)"),
        (probabilities, {}, "images 0 to 19.*these logits are probabilities"),
        (seven, {"output": "probabilities"}, r"images 0 to 19.*probabilities must lie in \[0, 1\]"),
        (lambda b: seven(b) * np.nan, {}, "images 0 to 19.*finite"),
        (lambda b: (seven(b), b, b), {}, "logits and features; got a tuple of 3"),
    ],
)
def test_what_the_model_gives_is_checked(function, options, words):
    with pytest.raises(InputError, match=words):
        GroupedModel(model(function, batch_size=20, **options), GROUPS).logits(IMAGES)


def test_few_rows_that_hold_nan_are_named_too():
    with pytest.raises(InputError, match="images 0 to 2 must be finite"):
        GroupedModel(model(lambda b: seven(b) * np.nan), GROUPS).logits(IMAGES[:3])


def test_a_classifier_of_scikit_learn_is_grouped_by_its_columns():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(4)
    fitted = LogisticRegression().fit(rng.normal(size=(90, 192)), np.arange(90) % 5)
    inner = SklearnModel(fitted, scores="predict_proba")
    made = GroupedModel(inner, {"even": [0, 2, 4], "odd": [1, 3]})
    rows = (IMAGES / np.float32(255)).reshape(30, -1)
    odd = fitted.predict_proba(rows)[:, [1, 3]].sum(axis=1)
    # Pixels are float32.
    np.testing.assert_allclose(softmax(made.logits(IMAGES), axis=1)[:, 1], odd, rtol=1e-5)
