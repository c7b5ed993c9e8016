"""Every loss against a brute-force one in numpy: values, and gradients by central differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch

from shiftcal.adaptation.network import (
    ALPHAS,
    class_confusion,
    domain_loss,
    jmmd,
    margin_disparity,
    mk_mmd,
    stepwise_norm,
)

BOTH = pytest.mark.parametrize("linear", [True, False], ids=["linear", "quadratic"])


def numeric_gradient(function, x, step=1e-5):
    """``(f(x + h) - f(x - h)) / 2h`` for every entry; wrong by h² times the third derivative."""
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        gradient[place] = (function(up) - function(down)) / (2 * step)
    return gradient


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def mean_distance(x):
    return ((x[:, None] - x[None]) ** 2).sum(-1).mean()


def discrepancy(x, kernel, *, linear):
    """Over pairs of rows ``i, j`` of the source, then the target, with ``kernel(i, j)``."""
    b = len(x) // 2
    value = 2 / (b - 1)
    for i in range(b):
        if linear:
            j = (i + 1) % b
            value += (kernel(i, j) + kernel(b + i, b + j)) / b
            value -= (kernel(i, b + j) + kernel(j, b + i)) / b
            continue
        for j in range(b):
            if i != j:
                value += (kernel(i, j) + kernel(b + i, b + j)) / (b * (b - 1))
            value -= 2 * kernel(i, b + j) / b**2
    return value


def mmd_by_loops(x, held, *, linear, outputs=None, sigma=0.92):
    """Of rows of both domains; the kernels' widths are those of ``held``."""
    mean = mean_distance(held)

    def kernel(i, j):
        far = ((x[i] - x[j]) ** 2).sum()
        value = sum(np.exp(-far / (2 * alpha * mean)) for alpha in ALPHAS)
        if outputs is not None:
            value *= np.exp(-((outputs[i] - outputs[j]) ** 2).sum() / (2 * sigma**2))
        return value

    return discrepancy(x, kernel, linear=linear)


def confusion_by_matrix(z, held, temperature=2.5):
    """As in the paper; the weights are those of ``held``."""
    p = scipy.special.softmax(z / temperature, axis=1)
    entropy = scipy.stats.entropy(scipy.special.softmax(held / temperature, axis=1), axis=1)
    confusion = p.T @ np.diag(1 + np.exp(-entropy)) @ p
    confusion /= confusion.sum(axis=1, keepdims=True)
    return (confusion.sum() - np.trace(confusion)) / z.shape[1]


def norm_by_loops(f, held, delta=0.3):
    pairs = zip(f, held, strict=True)
    each = [(np.linalg.norm(row) - (np.linalg.norm(old) + delta)) ** 2 for row, old in pairs]
    return sum(each) / len(f) * 2


MAIN = draw(2, 6, 4, seed=7)


def margin_by_loops(adversarial, held):
    ours, theirs = scipy.special.softmax(adversarial.reshape(2, 6, 4), axis=2)
    agreed = [math.log(p[np.argmax(main)]) for p, main in zip(ours, MAIN[0], strict=True)]
    left = [math.log(1 - p[np.argmax(m)] + 1e-6) for p, m in zip(theirs, MAIN[1], strict=True)]
    return -4 * sum(agreed) / 6 - sum(left) / 6


def domain_by_loops(z, held):
    n = len(z) // 2
    of_source = sum(math.log1p(math.exp(-x)) for x in z[:n, 0])
    return (of_source + sum(math.log1p(math.exp(x)) for x in z[n:, 0])) / (2 * n)


OUTPUTS = scipy.special.softmax(2 * draw(12, 4, seed=3), axis=1)


def of_outputs(y, held):
    return mmd_by_loops(FEATURES, FEATURES, linear=False, outputs=y)


FEATURES = draw(12, 3, seed=4) + np.repeat([[0.0], [0.7]], 6, axis=0)

# name -> loss of one tensor, the same in numpy, where it is looked at
CASES = {
    "mk_mmd": (
        lambda x: mk_mmd(*x.chunk(2)),
        lambda x, held: mmd_by_loops(x, held, linear=True),
        FEATURES,
    ),
    "mk_mmd, quadratic": (
        lambda x: mk_mmd(*x.chunk(2), linear=False),
        lambda x, held: mmd_by_loops(x, held, linear=False),
        FEATURES,
    ),
    "jmmd, features": (
        lambda x: jmmd(x, torch.from_numpy(OUTPUTS)),
        lambda x, held: mmd_by_loops(x, held, linear=False, outputs=OUTPUTS),
        FEATURES,
    ),
    "jmmd, linear": (
        lambda x: jmmd(x, torch.from_numpy(OUTPUTS), linear=True, sigma=0.3),
        lambda x, held: mmd_by_loops(x, held, linear=True, outputs=OUTPUTS, sigma=0.3),
        FEATURES,
    ),
    "jmmd, outputs": (lambda y: jmmd(torch.from_numpy(FEATURES), y), of_outputs, OUTPUTS),
    "class_confusion": (class_confusion, confusion_by_matrix, 3 * draw(6, 4)),
    "margin_disparity": (
        lambda a: margin_disparity(
            torch.from_numpy(MAIN[0]), a[:6], torch.from_numpy(MAIN[1]), a[6:]
        ),
        margin_by_loops,
        2 * draw(12, 4),
    ),
    "stepwise_norm": (lambda f: stepwise_norm(f, delta=0.3, domains=2), norm_by_loops, FEATURES),
    "domain_loss": (domain_loss, domain_by_loops, draw(8, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_value_and_gradient_are_those_of_brute_force(case):
    loss, oracle, x = CASES[case]
    inputs = torch.tensor(x, requires_grad=True)
    value = loss(inputs)
    assert value.shape == ()
    assert value.item() == pytest.approx(oracle(x, x), rel=1e-12)
    (3 * value).backward()
    # Central differences with steps of 1e-5 are good to about 1e-10.
    expected = numeric_gradient(lambda at: 3 * oracle(at, x), x)
    np.testing.assert_allclose(inputs.grad, expected, atol=2e-9)


@BOTH
def test_discrepancies_do_not_depend_on_units_origin_or_rotation(linear):
    turn, _ = np.linalg.qr(draw(3, 3, seed=5))
    ours, theirs = torch.from_numpy(FEATURES).chunk(2)
    moved = torch.from_numpy(100 * FEATURES @ turn - 40).chunk(2)
    expected = mk_mmd(ours, theirs, linear=linear).item()
    assert mk_mmd(*moved, linear=linear).item() == pytest.approx(expected, rel=1e-10)
    assert mk_mmd(theirs, ours, linear=linear).item() == pytest.approx(expected, rel=1e-13)


@BOTH
@pytest.mark.parametrize("value", [0.0, 3.7, 1e-25, 1e4])
def test_equal_rows_give_the_offset_and_no_gradient(linear, value):
    s, t = (torch.full((4, 5), value, requires_grad=True) for _ in range(2))
    loss = mk_mmd(s, t, linear=linear)
    loss.backward()
    assert loss.item() == pytest.approx(2 / 3, rel=1e-6)
    assert not s.grad.any()
    assert not t.grad.any()


def test_class_confusion_at_its_limits():
    confident = torch.tensor(1e4 * np.eye(3)[[0, 1, 2, 2, 0]], requires_grad=True)
    loss = class_confusion(confident)
    loss.backward()
    assert loss.item() == 0
    assert not confident.grad.any()
    assert class_confusion(torch.full((4, 5), 2.0)).item() == pytest.approx(1 - 1 / 5)
    # A class that no row gives any probability.
    absent = torch.tensor([[0.0, 0.0, -1e6]] * 4, requires_grad=True)
    class_confusion(absent).backward()
    assert torch.isfinite(absent.grad).all()


@pytest.mark.parametrize("value", [0.0, 1e-42, 1e-25])
def test_rows_of_no_length_get_finite_gradients(value):
    features = torch.full((3, 4), value, requires_grad=True)
    loss = stepwise_norm(features)
    loss.backward()
    assert loss.item() == 1
    assert torch.isfinite(features.grad).all()
