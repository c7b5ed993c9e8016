"""JMMD against loops over pairs, and what it becomes when one layer says nothing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import torch
from numeric_gradient import numeric_gradient

from shiftcal.adaptation.losses._pairs import pair_weights
from shiftcal.adaptation.losses.jmmd import _compiled, _joint, jmmd, jmmd_of_logits
from shiftcal.adaptation.losses.mmd import mk_mmd
from shiftcal.errors import InputError

BOTH = pytest.mark.parametrize("linear", [True, False], ids=["linear", "quadratic"])
ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0)


def draw(b, d=3, k=4, seed=0):
    """Features and outputs of the source, then of the target."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((2, b, d))
    features[1] += 0.6
    outputs = scipy.special.softmax(2 * rng.standard_normal((2, b, k)), axis=2)
    return features[0], outputs[0], features[1], outputs[1]


def tensors(*arrays, dtype=torch.float64):
    return [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]


def loss(layers, **options):
    return jmmd(*both(layers), **options)


def both(layers):
    """Features, then outputs, of source and target together."""
    f, p, g, q = layers
    return torch.cat([f, g]), torch.cat([p, q])


def mean_distance(f, g):
    x = [*f, *g]
    return sum(((a - b) ** 2).sum() for a in x for b in x) / len(x) ** 2


def by_loops(f, p, g, q, *, linear, sigma=0.92, mean=None):
    mean = mean_distance(f, g) if mean is None else mean
    x, y, b = [*f, *g], [*p, *q], len(f)

    def k(i, j):
        far = ((x[i] - x[j]) ** 2).sum()
        of_features = sum(np.exp(-far / (2 * alpha * mean)) for alpha in ALPHAS)
        return of_features * np.exp(-((y[i] - y[j]) ** 2).sum() / (2 * sigma**2))

    value = 2 / (b - 1)
    for i in range(b):
        if linear:
            j = (i + 1) % b
            value += (k(i, j) + k(b + i, b + j) - k(i, b + j) - k(j, b + i)) / b
            continue
        for j in range(b):
            if i != j:
                value += (k(i, j) + k(b + i, b + j)) / (b * (b - 1))
            value -= 2 * k(i, b + j) / b**2
    return value


@BOTH
@pytest.mark.parametrize("b", [2, 3, 6])
@pytest.mark.parametrize("sigma", [0.92, 0.3])
def test_the_value_is_that_of_loops_over_pairs(linear, b, sigma):
    layers = draw(b)
    found = loss(tensors(*layers), linear=linear, sigma=sigma)
    expected = by_loops(*layers, linear=linear, sigma=sigma)
    assert found.shape == ()
    assert found.item() == pytest.approx(expected, rel=1e-12)


@BOTH
@pytest.mark.parametrize("b", [2, 4])
def test_the_gradient_is_that_of_loops_with_the_widths_held(linear, b):
    layers = draw(b, seed=b)
    ours = tensors(*layers)
    (3 * loss(ours, linear=linear)).backward()
    mean = mean_distance(layers[0], layers[2])
    for place, mine in enumerate(ours):

        def at(x, place=place):
            moved = [*layers[:place], x, *layers[place + 1 :]]
            return 3 * by_loops(*moved, linear=linear, mean=mean)

        # Central differences with steps of 1e-5 are good to about 1e-10.
        np.testing.assert_allclose(mine.grad, numeric_gradient(at, layers[place]), atol=2e-9)


def test_the_quadratic_estimate_is_the_default():
    layers = draw(5)
    expected = by_loops(*layers, linear=False)
    assert loss(tensors(*layers)).item() == pytest.approx(expected, rel=1e-12)


@BOTH
def test_of_equal_outputs_it_is_the_mmd_of_the_features(linear):
    f, _, g, _ = draw(6)
    flat = np.full((6, 4), 0.25)
    found = loss(tensors(f, flat, g, flat), linear=linear).item()
    assert found == pytest.approx(mk_mmd(*tensors(f, g), linear=linear).item(), rel=1e-12)


@BOTH
def test_of_equal_features_it_is_five_times_the_mmd_of_the_outputs(linear):
    _, p, _, q = draw(6)
    flat = np.full((6, 3), 1.7)
    # One kernel of a fixed width, from the one whose width is a multiple of the mean distance.
    alpha = 0.92**2 / mean_distance(p, q)
    of_outputs = mk_mmd(*tensors(p, q), linear=linear, alphas=(alpha,)).item() - 2 / 5
    found = loss(tensors(flat, p, flat, q), linear=linear).item()
    assert found == pytest.approx(5 * of_outputs + 2 / 5, rel=1e-12)


@BOTH
def test_with_a_wide_kernel_the_outputs_do_not_matter(linear):
    layers = tensors(*draw(6))
    expected = mk_mmd(layers[0], layers[2], linear=linear).item()
    assert loss(layers, linear=linear, sigma=1e6).item() == pytest.approx(expected, rel=1e-10)


def test_it_sees_a_shift_of_the_joint_distribution_that_no_layer_alone_shows():
    rng = np.random.default_rng(8)
    side = np.repeat([-1.0, 1.0], 20)
    f, g = (side[:, None] + 0.1 * rng.standard_normal((40, 1)) for _ in range(2))
    p = np.eye(2)[(side > 0).astype(int)]
    same, crossed = loss(tensors(f, p, g, p)).item(), loss(tensors(f, p, g, 1 - p)).item()
    assert abs(same - 2 / 39) < 0.2
    assert crossed > 1


def test_of_two_samples_of_one_distribution_the_linear_estimate_of_itself_is_the_offset():
    f, p, _, _ = draw(9)
    assert loss(tensors(f, p, f, p), linear=True).item() == pytest.approx(2 / 8, rel=1e-14)


@BOTH
def test_it_is_the_same_with_the_domains_or_the_classes_exchanged(linear):
    f, p, g, q = draw(6)
    expected = loss(tensors(f, p, g, q), linear=linear).item()
    assert loss(tensors(g, q, f, p), linear=linear).item() == pytest.approx(expected, rel=1e-13)
    order = [2, 0, 3, 1]
    turned = tensors(f, p[:, order], g, q[:, order])
    assert loss(turned, linear=linear).item() == pytest.approx(expected, rel=1e-13)


def test_the_order_of_rows_is_nothing_to_the_quadratic_estimate():
    f, p, g, q = draw(6)
    rng = np.random.default_rng(5)
    one, two = rng.permutation(6), rng.permutation(6)
    expected = loss(tensors(f, p, g, q)).item()
    mixed = tensors(f[one], p[one], g[two], q[two])
    assert loss(mixed).item() == pytest.approx(expected, rel=1e-13)


@BOTH
def test_equal_rows_give_the_offset_and_no_gradient(linear):
    flat, same = np.full((4, 3), 7.0), np.full((4, 5), 0.2)
    layers = tensors(flat, same, flat, same, dtype=torch.float32)
    found = loss(layers, linear=linear)
    found.backward()
    assert found.item() == pytest.approx(2 / 3, rel=1e-6)
    for layer in layers:
        # A tenth of the outputs' float32 digits: weights of opposite sign cancel but for rounding.
        np.testing.assert_allclose(layer.grad, 0, atol=1e-7)


@BOTH
def test_float32_is_good_to_its_digits(linear):
    layers = draw(32, d=64, k=10)
    narrow, wide = tensors(*layers, dtype=torch.float32), tensors(*layers)
    found, expected = (loss(x, linear=linear) for x in (narrow, wide))
    assert found.item() == pytest.approx(expected.item(), abs=3e-6)
    found.backward()
    expected.backward()
    for small, large in zip(narrow, wide, strict=True):
        np.testing.assert_allclose(small.grad, large.grad, atol=2e-5 * large.grad.abs().max())


def test_one_row_is_refused():
    with pytest.raises(InputError, match="at least 2; got 1"):
        loss(tensors(*draw(1)))


def test_layers_of_different_sizes_are_refused():
    f, p, g, q = tensors(*draw(4))
    with pytest.raises(InputError, match="as many of the target; got 8 and 7 rows"):
        loss([f, p, g, q[:3]])
    with pytest.raises(InputError, match="as many of the target; got 7 and 7 rows"):
        loss([f, p, g[:3], q[:3]])


@BOTH
def test_what_other_devices_calculate_is_the_same(linear):
    f, p, g, q = tensors(*draw(6))
    x, outputs = torch.cat([f, g]).detach(), torch.cat([p, q]).detach()
    weights = pair_weights(6, linear=linear, peak=5, dtype=x.dtype, device=x.device)
    ours, theirs = (way(x, outputs, weights, -0.7) for way in (_compiled, _joint))
    torch.testing.assert_close(ours[0], theirs[0])
    for one, other in zip(ours[1], theirs[1], strict=True):
        torch.testing.assert_close(one, other)


@BOTH
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", range(4))
def test_what_is_not_finite_makes_the_loss_so(linear, value, place):
    layers = draw(6)
    layers[place][2, 1] = value
    assert not torch.isfinite(loss(tensors(*layers), linear=linear))


@BOTH
def test_of_logits_it_is_that_of_their_softmax_with_its_gradient(linear):
    f, _, g, _ = draw(6)
    rng = np.random.default_rng(3)
    layers = tensors(f, *rng.standard_normal((1, 6, 4)), g, *rng.standard_normal((1, 6, 4)))
    found = jmmd_of_logits(*both(layers), linear=linear, sigma=0.4)
    f, y, g, z = layers
    expected = loss([f, y.softmax(1), g, z.softmax(1)], linear=linear, sigma=0.4)
    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(2 * found, layers),
        torch.autograd.grad(2 * expected, layers),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_logits_of_one_row_or_of_different_sizes_are_refused():
    f, y, g, z = tensors(*draw(4))
    with pytest.raises(InputError, match="as many of the target; got 8 and 7 rows"):
        jmmd_of_logits(*both([f, y, g, z[:3]]))
    with pytest.raises(InputError, match="at least 2; got 1"):
        jmmd_of_logits(*both([f[:1], y[:1], g[:1], z[:1]]))
