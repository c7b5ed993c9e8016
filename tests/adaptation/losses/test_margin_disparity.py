"""Margin disparity against loops, and its identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import torch

from shiftcal.adaptation.losses.margin import margin_disparity

SHIFT = 1e-6


def draw(b=5, k=4, seed=0):
    """Logits of the main and the adversarial head on the source, then on the target."""
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal((4, b, k))


def tensors(arrays, dtype=torch.float64):
    return [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]


def by_loops(main_s, adv_s, main_t, adv_t, margin=4.0):
    value = 0.0
    for main, adv in zip(main_s, adv_s, strict=True):
        value -= margin * math.log(scipy.special.softmax(adv)[np.argmax(main)]) / len(main_s)
    for main, adv in zip(main_t, adv_t, strict=True):
        value -= math.log(1 - scipy.special.softmax(adv)[np.argmax(main)] + SHIFT) / len(main_t)
    return value


@pytest.mark.parametrize(("b", "k"), [(1, 2), (2, 3), (5, 4), (9, 12)])
@pytest.mark.parametrize("margin", [4.0, 0.5])
def test_the_value_is_that_of_loops(b, k, margin):
    logits = draw(b, k)
    found = margin_disparity(*tensors(logits), margin=margin)
    assert found.shape == ()
    assert found.item() == pytest.approx(by_loops(*logits, margin=margin), rel=1e-12)


@pytest.mark.parametrize(("b", "k"), [(1, 2), (3, 5)])
def test_it_passes_gradcheck(b, k):
    main_s, adv_s, main_t, adv_t = tensors(draw(b, k, seed=3))

    def loss(s, t):
        return 3 * margin_disparity(main_s, s, main_t, t)

    assert torch.autograd.gradcheck(loss, (adv_s, adv_t))
    assert torch.autograd.gradcheck(lambda s: loss(s, adv_t.detach()), adv_s)


def test_no_gradient_reaches_the_main_head():
    main_s, adv_s, main_t, adv_t = tensors(draw())
    margin_disparity(main_s, adv_s, main_t, adv_t).backward()
    assert main_s.grad is None
    assert main_t.grad is None
    assert adv_s.grad.abs().sum() > 0


def test_it_is_the_cross_entropies_of_torch():
    main_s, adv_s, main_t, adv_t = tensors(draw(8, 6))
    cross_entropy, nll = torch.nn.functional.cross_entropy, torch.nn.functional.nll_loss
    left = torch.log(1 - adv_t.softmax(1) + SHIFT)
    expected = 4 * cross_entropy(adv_s, main_s.argmax(1)) + nll(left, main_t.argmax(1))
    found = margin_disparity(main_s, adv_s, main_t, adv_t)
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    for mine, theirs in zip(
        torch.autograd.grad(found, (adv_s, adv_t)),
        torch.autograd.grad(expected, (adv_s, adv_t)),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-15)


def test_of_two_classes_disagreeing_is_predicting_the_other():
    main_s, adv_s, main_t, adv_t = tensors(draw(6, 2))
    other = torch.nn.functional.cross_entropy(adv_t, 1 - main_t.argmax(1))
    found = margin_disparity(main_s, adv_s, main_t, adv_t, margin=0.0)
    # The shift of 1e-6 in the logarithm is the difference, where the other's p is above 0.01.
    assert found.item() == pytest.approx(other.item(), abs=1e-4)


def test_of_even_probabilities_it_depends_on_the_number_of_classes_alone():
    main_s, _, main_t, _ = tensors(draw(6, 5))
    flat = torch.zeros(6, 5, dtype=torch.float64)
    expected = 4 * math.log(5) - math.log(0.8 + SHIFT)
    assert margin_disparity(main_s, flat, main_t, flat).item() == pytest.approx(expected)


def test_the_margin_multiplies_the_source_alone():
    logits = tensors(draw())
    zero, one, four = (margin_disparity(*logits, margin=m).item() for m in (0.0, 1.0, 4.0))
    assert four - zero == pytest.approx(4 * (one - zero), rel=1e-12)


def test_it_is_least_for_a_head_that_agrees_on_the_source_and_not_on_the_target():
    main_s, _, main_t, _ = draw(6, 3)
    sure = 100 * np.eye(3)
    agree, leave = sure[main_s.argmax(1)], sure[(main_t.argmax(1) + 1) % 3]
    found = margin_disparity(*tensors([main_s, agree, main_t, leave])).item()
    assert found == pytest.approx(0, abs=2e-6)
    stay = sure[main_t.argmax(1)]
    found = margin_disparity(*tensors([main_s, agree, main_t, stay])).item()
    assert found == pytest.approx(-math.log(SHIFT), rel=1e-9)


def test_rows_and_classes_in_another_order_are_the_same():
    logits = draw(7, 4)
    expected = margin_disparity(*tensors(logits)).item()
    rows, classes = [3, 1, 6, 0, 2, 5, 4], [2, 0, 3, 1]
    assert margin_disparity(*tensors(logits[:, rows])).item() == pytest.approx(expected, rel=1e-13)
    turned = logits[:, :, classes]
    assert margin_disparity(*tensors(turned)).item() == pytest.approx(expected, rel=1e-13)


def test_a_constant_added_to_a_row_is_nothing_to_it():
    logits = draw()
    moved = logits + np.arange(20.0).reshape(4, 5, 1)
    found = margin_disparity(*tensors(moved)).item()
    assert found == pytest.approx(margin_disparity(*tensors(logits)).item(), rel=1e-12)


@pytest.mark.parametrize("scale", [1e2, 1e6, 1e30])
def test_huge_logits_give_finite_losses_and_gradients(scale):
    logits = tensors(scale * draw(8, 5), dtype=torch.float32)
    loss = margin_disparity(*logits)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits[1].grad).all()
    assert torch.isfinite(logits[3].grad).all()


@pytest.mark.parametrize("lead", [10.0, 12.0, 14.0])
def test_near_certainty_float32_keeps_the_digits_of_what_is_left(lead):
    flat = np.zeros((1, 2))
    sure = np.array([[lead, 0.0]])
    logits = [flat, flat, flat, sure]
    narrow, wide = tensors(logits, torch.float32), tensors(logits)
    found, expected = margin_disparity(*narrow), margin_disparity(*wide)
    # 1 - p itself would be wrong by up to 6e-8 / (1 - p + 1e-6), a few per cent here.
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    found.backward()
    expected.backward()
    np.testing.assert_allclose(narrow[3].grad, wide[3].grad, rtol=1e-5)
