"""MK-MMD against loops over pairs, and by what must hold whatever the samples are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numeric_gradient import numeric_gradient

from shiftcal.adaptation.losses.kernels import ALPHAS
from shiftcal.adaptation.losses.mmd import mk_mmd
from shiftcal.errors import InputError

BOTH = pytest.mark.parametrize("linear", [True, False], ids=["linear", "quadratic"])


def draw(b, d=3, seed=0, shift=0.7):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((b, d)), 1.3 * rng.standard_normal((b, d)) + shift


def tensors(*arrays, dtype=torch.float64):
    return [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]


def mean_distance(s, t):
    x = [*s, *t]
    return sum(((a - b) ** 2).sum() for a in x for b in x) / len(x) ** 2


def by_loops(s, t, *, linear, alphas=ALPHAS, mean=None):
    mean = mean_distance(s, t) if mean is None else mean
    b = len(s)

    def k(x, y):
        return sum(np.exp(-((x - y) ** 2).sum() / (2 * alpha * mean)) for alpha in alphas)

    value = 2 / (b - 1)
    for i in range(b):
        if linear:
            j = (i + 1) % b
            value += (k(s[i], s[j]) + k(t[i], t[j]) - k(s[i], t[j]) - k(s[j], t[i])) / b
            continue
        for j in range(b):
            if i != j:
                value += (k(s[i], s[j]) + k(t[i], t[j])) / (b * (b - 1))
            value -= 2 * k(s[i], t[j]) / b**2
    return value


@BOTH
@pytest.mark.parametrize("b", [2, 3, 4, 7])
@pytest.mark.parametrize("alphas", [ALPHAS, (1.0,), [0.2, 3.0]])
def test_the_value_is_that_of_loops_over_pairs(linear, b, alphas):
    s, t = draw(b)
    found = mk_mmd(*tensors(s, t), linear=linear, alphas=alphas)
    assert found.shape == ()
    assert found.item() == pytest.approx(by_loops(s, t, linear=linear, alphas=alphas), rel=1e-12)


@BOTH
@pytest.mark.parametrize("b", [2, 3, 5])
def test_the_gradient_is_that_of_loops_with_the_widths_held(linear, b):
    s, t = draw(b, seed=b)
    ours, theirs = tensors(s, t)
    (3 * mk_mmd(ours, theirs, linear=linear)).backward()
    mean = mean_distance(s, t)
    expected_s = numeric_gradient(lambda x: 3 * by_loops(x, t, linear=linear, mean=mean), s)
    expected_t = numeric_gradient(lambda x: 3 * by_loops(s, x, linear=linear, mean=mean), t)
    # Central differences with steps of 1e-5 are good to about 1e-10.
    np.testing.assert_allclose(ours.grad, expected_s, atol=2e-9)
    np.testing.assert_allclose(theirs.grad, expected_t, atol=2e-9)


@BOTH
def test_a_gradient_for_one_side_alone_is_the_same(linear):
    s, t = tensors(*draw(6))
    both = torch.autograd.grad(mk_mmd(s, t, linear=linear), (s, t))
    (alone,) = torch.autograd.grad(mk_mmd(s, t.detach(), linear=linear), s)
    assert torch.equal(alone, both[0])
    (alone,) = torch.autograd.grad(mk_mmd(s.detach(), t, linear=linear), t)
    assert torch.equal(alone, both[1])


def test_of_the_same_sample_twice_the_linear_estimate_is_the_offset():
    s, _ = draw(9)
    assert mk_mmd(*tensors(s, s)).item() == pytest.approx(2 / 8, rel=1e-14)


def test_of_the_same_sample_twice_the_quadratic_estimate_lacks_the_diagonal():
    s, _ = draw(9)
    mean = mean_distance(s, s)
    sq_dist = ((s[:, None] - s) ** 2).sum(-1)
    kernels = sum(np.exp(-sq_dist / (2 * alpha * mean)) for alpha in ALPHAS)
    of_others = (kernels.sum() - 9 * 5) / (9 * 8)
    expected = 2 / 8 - 2 * (5 - of_others) / 9
    assert mk_mmd(*tensors(s, s), linear=False).item() == pytest.approx(expected, rel=1e-12)


@BOTH
def test_of_two_samples_of_one_distribution_the_mean_is_the_offset(linear):
    rng = np.random.default_rng(11)
    values = [
        mk_mmd(*torch.from_numpy(rng.standard_normal((2, 6, 4))), linear=linear).item()
        for _ in range(400)
    ]
    # Rows are exchangeable, so the estimates less the offset have mean 0; four standard errors.
    assert np.mean(values) == pytest.approx(2 / 5, abs=4 * np.std(values) / 20)


@BOTH
@pytest.mark.parametrize("b", [2, 8])
def test_two_points_far_apart_give_the_largest_value_there_is(linear, b):
    s, t = np.zeros((b, 3)), np.full((b, 3), 5.0)
    # Half of all pairs are as far apart as the points: the mean is half of that.
    expected = 10 - 2 * sum(np.exp(-1 / alpha) for alpha in ALPHAS) + 2 / (b - 1)
    assert mk_mmd(*tensors(s, t), linear=linear).item() == pytest.approx(expected, rel=1e-12)


@BOTH
def test_it_is_the_same_in_other_units_from_another_origin_and_turned(linear):
    s, t = draw(6, d=4)
    turn, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))
    expected = mk_mmd(*tensors(s, t), linear=linear).item()
    moved = tensors(100 * s @ turn - 40, 100 * t @ turn - 40)
    assert mk_mmd(*moved, linear=linear).item() == pytest.approx(expected, rel=1e-10)


@BOTH
def test_it_is_the_same_with_the_domains_exchanged(linear):
    s, t = draw(6)
    expected = mk_mmd(*tensors(s, t), linear=linear).item()
    assert mk_mmd(*tensors(t, s), linear=linear).item() == pytest.approx(expected, rel=1e-13)


def test_the_order_of_rows_is_nothing_to_the_quadratic_estimate():
    s, t = draw(7)
    rng = np.random.default_rng(5)
    mixed = tensors(rng.permutation(s), rng.permutation(t))
    expected = mk_mmd(*tensors(s, t), linear=False).item()
    assert mk_mmd(*mixed, linear=False).item() == pytest.approx(expected, rel=1e-13)


def test_turning_both_samples_around_is_nothing_to_the_linear_estimate():
    s, t = draw(7)
    turned = tensors(np.roll(s, 3, axis=0), np.roll(t, 3, axis=0))
    expected = mk_mmd(*tensors(s, t)).item()
    assert mk_mmd(*turned).item() == pytest.approx(expected, rel=1e-13)


@BOTH
def test_going_down_its_gradient_brings_the_samples_together(linear):
    s, t = draw(16, shift=2.0)
    ours, theirs = tensors(s, t)
    for _ in range(30):
        step = torch.autograd.grad(mk_mmd(ours, theirs, linear=linear), theirs)[0]
        theirs = (theirs - 20 * step).detach().requires_grad_()
    before = np.linalg.norm(s.mean(0) - t.mean(0))
    assert (ours.mean(0) - theirs.mean(0)).norm().item() < before / 2


@BOTH
def test_the_gradients_of_all_rows_sum_to_zero(linear):
    s, t = tensors(*draw(8))
    gradients = torch.autograd.grad(mk_mmd(s, t, linear=linear), (s, t))
    np.testing.assert_allclose(torch.cat(gradients).sum(0), 0, atol=1e-15)


@BOTH
@pytest.mark.parametrize("value", [0.0, 3.7, 1e-25, 1e4])
def test_equal_rows_give_the_offset_and_no_gradient(linear, value):
    s, t = tensors(np.full((4, 5), value), np.full((4, 5), value), dtype=torch.float32)
    loss = mk_mmd(s, t, linear=linear)
    assert loss.item() == pytest.approx(2 / 3, rel=1e-6)
    loss.backward()
    assert torch.equal(s.grad, torch.zeros(4, 5))
    assert torch.equal(t.grad, torch.zeros(4, 5))


@BOTH
@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_float32_is_good_to_its_digits_at_every_scale(linear, scale):
    s, t = draw(32, d=64)
    small, wide = tensors(s * scale, t * scale, dtype=torch.float32), tensors(s, t)
    narrow_loss, wide_loss = (mk_mmd(*x, linear=linear) for x in (small, wide))
    assert narrow_loss.item() == pytest.approx(wide_loss.item(), abs=3e-6)
    narrow_loss.backward()
    wide_loss.backward()
    largest = wide[0].grad.abs().max().item()
    np.testing.assert_allclose(scale * small[0].grad, wide[0].grad, atol=2e-5 * largest)


@BOTH
def test_far_from_the_origin_float32_keeps_its_digits(linear):
    s, t = draw(32, d=64)
    far = tensors(s + 1000, t + 1000, dtype=torch.float32)
    near = tensors(s, t)
    # Numbers near 1,000 are rounded by 3e-5, and the inputs with them.
    found, expected = (mk_mmd(*x, linear=linear) for x in (far, near))
    assert found.item() == pytest.approx(expected.item(), abs=2e-5)
    found.backward()
    expected.backward()
    largest = near[0].grad.abs().max().item()
    np.testing.assert_allclose(far[0].grad, near[0].grad, atol=2e-3 * largest)


@BOTH
def test_one_row_far_from_all_others_is_no_trouble(linear):
    s, t = draw(32, d=64)
    s[0] += 1e6
    found = mk_mmd(*tensors(s, t, dtype=torch.float32), linear=linear).item()
    expected = mk_mmd(*tensors(s, t), linear=linear).item()
    assert found == pytest.approx(expected, abs=1e-5)


@BOTH
def test_one_row_is_refused(linear):
    with pytest.raises(InputError, match=r"at least 2; got 1\. Use a larger batch_size"):
        mk_mmd(torch.zeros(1, 3), torch.zeros(1, 3), linear=linear)


@BOTH
def test_batches_of_different_sizes_are_refused(linear):
    with pytest.raises(InputError, match=r"same shape .* got \(4, 3\) and \(5, 3\)"):
        mk_mmd(torch.zeros(4, 3), torch.zeros(5, 3), linear=linear)
