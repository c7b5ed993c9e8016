"""Class confusion against the whole matrix, in loops, and its limits."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from numeric_gradient import numeric_gradient

from shiftcal.adaptation.losses.confusion import class_confusion


def draw(b=6, k=4, seed=0):
    return 3 * np.random.default_rng(seed).standard_normal((b, k))


def tensor(array, dtype=torch.float64):
    return torch.tensor(array, dtype=dtype, requires_grad=True)


def sureness(z, temperature):
    p = scipy.special.softmax(z / temperature, axis=1)
    weights = 1 + np.exp(-scipy.stats.entropy(p, axis=1))
    return len(z) * weights / weights.sum()


def by_matrix(z, temperature=2.5, weights=None, axis=1):
    """As in the paper: the matrix of confusions, each row (or column) of which sums to one."""
    weights = sureness(z, temperature) if weights is None else weights
    b, k = z.shape
    p = scipy.special.softmax(z / temperature, axis=1)
    confusion = np.zeros((k, k))
    for i in range(b):
        for j in range(k):
            for other in range(k):
                confusion[j, other] += weights[i] * p[i, j] * p[i, other]
    confusion /= confusion.sum(axis=axis, keepdims=True)
    return (confusion.sum() - np.trace(confusion)) / k


@pytest.mark.parametrize(("b", "k"), [(1, 2), (2, 3), (6, 4), (11, 7)])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_value_is_that_of_the_whole_matrix_by_loops(b, k, temperature):
    z = draw(b, k)
    found = class_confusion(tensor(z), temperature)
    assert found.shape == ()
    assert found.item() == pytest.approx(by_matrix(z, temperature), rel=1e-12)
    # The reference divides columns; the matrix is symmetric.
    assert found.item() == pytest.approx(by_matrix(z, temperature, axis=0), rel=1e-12)


@pytest.mark.parametrize(("b", "k"), [(2, 2), (5, 4)])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_gradient_is_that_of_the_matrix_with_the_weights_held(b, k, temperature):
    z = draw(b, k, seed=b)
    logits = tensor(z)
    (3 * class_confusion(logits, temperature)).backward()
    held = sureness(z, temperature)
    expected = numeric_gradient(lambda x: 3 * by_matrix(x, temperature, held), z)
    # Central differences with steps of 1e-5 are good to about 1e-10.
    np.testing.assert_allclose(logits.grad, expected, atol=2e-9)


def test_the_temperature_is_two_and_a_half_by_default():
    z = draw()
    assert class_confusion(tensor(z)).item() == pytest.approx(by_matrix(z, 2.5), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sure_predictions_of_every_class_confuse_nothing(dtype):
    logits = tensor(1e4 * np.eye(3)[[0, 1, 2, 2, 0]], dtype)
    loss = class_confusion(logits)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros(5, 3, dtype=dtype))


@pytest.mark.parametrize("k", [2, 5, 31])
def test_even_predictions_confuse_all_but_one_in_k(k):
    logits = tensor(np.full((4, k), 2.0))
    loss = class_confusion(logits)
    loss.backward()
    assert loss.item() == pytest.approx(1 - 1 / k, rel=1e-14)
    np.testing.assert_allclose(logits.grad, 0, atol=1e-16)


def test_of_one_row_alone_it_is_a_constant():
    logits = tensor(draw(1, 5))
    loss = class_confusion(logits)
    loss.backward()
    assert loss.item() == pytest.approx(0.8, rel=1e-14)
    np.testing.assert_allclose(logits.grad, 0, atol=1e-16)


def test_a_class_without_any_probability_counts_as_confused():
    z = 1e4 * np.eye(4)[[0, 1, 2, 0]]
    logits = tensor(z, torch.float32)
    loss = class_confusion(logits)
    loss.backward()
    assert loss.item() == pytest.approx(1 / 4)
    assert torch.isfinite(logits.grad).all()
    # As it is a little before the probabilities are too small to be held.
    near = by_matrix(150 * np.eye(4)[[0, 1, 2, 0]])
    assert near == pytest.approx(1 / 4, abs=1e-12)


def test_rows_and_classes_in_another_order_are_the_same():
    z = draw(6, 4)
    expected = class_confusion(tensor(z)).item()
    assert class_confusion(tensor(z[[4, 2, 0, 1, 5, 3]])).item() == pytest.approx(expected)
    assert class_confusion(tensor(z[:, [2, 0, 3, 1]])).item() == pytest.approx(expected)


def test_rows_given_twice_are_the_same():
    z = draw(6, 4)
    twice = class_confusion(tensor(np.concatenate([z, z]))).item()
    assert twice == pytest.approx(class_confusion(tensor(z)).item(), rel=1e-13)


def test_a_constant_added_to_a_row_is_nothing_to_it():
    z = draw(6, 4)
    moved = class_confusion(tensor(z + np.arange(6.0)[:, None])).item()
    assert moved == pytest.approx(class_confusion(tensor(z)).item(), rel=1e-12)


def test_logits_and_temperature_in_other_units_are_the_same():
    z = draw(6, 4)
    found = class_confusion(tensor(7 * z), 7 * 2.5).item()
    assert found == pytest.approx(class_confusion(tensor(z)).item(), rel=1e-13)


def test_it_falls_as_predictions_become_sure():
    z = draw(30, 4)
    values = [class_confusion(tensor(scale * z)).item() for scale in (0.1, 0.5, 1, 3, 10, 100)]
    assert all(a > b for a, b in pairwise(values))
    assert values[-1] < 0.05


def test_of_two_classes_and_two_mirrored_rows_it_is_twice_p_times_its_rest():
    p = 0.83
    lead = 2.5 * math.log(p / (1 - p))
    found = class_confusion(tensor([[lead, 0.0], [0.0, lead]])).item()
    assert found == pytest.approx(2 * p * (1 - p), rel=1e-12)


def test_going_down_its_gradient_makes_predictions_sure_of_several_classes():
    logits = tensor(draw(20, 3))
    before = class_confusion(logits).item()
    for _ in range(50):
        (step,) = torch.autograd.grad(class_confusion(logits), logits)
        logits = (logits - 20 * step).detach().requires_grad_()
    assert class_confusion(logits).item() < before / 2
    assert len(set(logits.argmax(1).tolist())) == 3


@pytest.mark.parametrize("scale", [1e2, 1e6, 1e30])
def test_huge_logits_give_finite_losses_and_gradients(scale):
    logits = tensor(scale * draw(8, 10), torch.float32)
    loss = class_confusion(logits)
    loss.backward()
    assert 0 <= loss.item() <= 1
    assert torch.isfinite(logits.grad).all()


def test_float32_is_good_to_its_digits():
    z = draw(36, 65)
    narrow, wide = tensor(z, torch.float32), tensor(z)
    found, expected = class_confusion(narrow), class_confusion(wide)
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    found.backward()
    expected.backward()
    np.testing.assert_allclose(narrow.grad, wide.grad, atol=1e-6 * wide.grad.abs().max())
