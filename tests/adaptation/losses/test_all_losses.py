"""What every transfer loss promises."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from shiftcal.adaptation.losses.conditional import domain_loss
from shiftcal.adaptation.losses.confusion import class_confusion
from shiftcal.adaptation.losses.jmmd import jmmd
from shiftcal.adaptation.losses.margin import margin_disparity
from shiftcal.adaptation.losses.mmd import mk_mmd
from shiftcal.adaptation.losses.norms import stepwise_norm

B, D, K = 6, 5, 4


class Batch(NamedTuple):
    """Features of source and target, then their logits."""

    f: Any
    g: Any
    y: Any
    z: Any

    def layers(self):
        return torch.cat([self.f, self.g]), torch.cat([self.y, self.z]).softmax(1)


LOSSES = {
    "mk_mmd": lambda at: mk_mmd(at.f, at.g),
    "mk_mmd quadratic": lambda at: mk_mmd(at.f, at.g, linear=False),
    "jmmd": lambda at: jmmd(*at.layers()),
    "jmmd linear": lambda at: jmmd(*at.layers(), linear=True),
    "domain_loss": lambda at: domain_loss(at.f[:, :1], at.g[:, :1]),
    "margin_disparity": lambda at: margin_disparity(at.z, at.y, at.y, at.z),
    "stepwise_norm": lambda at: stepwise_norm(torch.cat([at.f, at.g]), domains=2),
    "class_confusion": lambda at: class_confusion(at.z),
}
PLAIN = ("domain_loss", "margin_disparity")
ANALYTIC = {name: loss for name, loss in LOSSES.items() if name not in PLAIN}
EVERY = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def draw(dtype=torch.float32, seed=0):
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((B, width)) for width in (D, D, K, K)]
    return Batch(*(torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays))


def gradients(loss, inputs):
    found = torch.autograd.grad(loss(inputs), inputs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


@EVERY
def test_it_is_a_scalar_of_the_inputs_dtype_with_finite_gradients(loss):
    for dtype in (torch.float32, torch.float64):
        inputs = draw(dtype)
        value = loss(inputs)
        assert value.shape == ()
        assert value.dtype == dtype
        assert all(torch.isfinite(g).all() for g in gradients(loss, inputs))


@EVERY
def test_inputs_are_left_alone(loss):
    inputs = draw()
    before = [x.detach().clone() for x in inputs]
    loss(inputs).backward()
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))


@EVERY
def test_it_is_the_same_again_and_can_be_gone_back_through_twice(loss):
    inputs = draw()
    value = loss(inputs)
    wanted = [x for x in inputs if x.requires_grad]
    first = torch.autograd.grad(value, wanted, retain_graph=True, allow_unused=True)
    second = torch.autograd.grad(value, wanted, allow_unused=True)
    assert loss(inputs).item() == value.item()
    for a, b in zip(first, second, strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


@EVERY
def test_without_gradients_the_value_is_the_same(loss):
    inputs = draw()
    expected = loss(inputs).item()
    with torch.no_grad():
        assert loss(inputs).item() == expected
    with torch.inference_mode():
        assert loss(inputs).item() == expected


@EVERY
def test_after_a_call_in_inference_mode_training_goes_on(loss):
    few = Batch(*(x.detach().double()[:3] for x in draw(seed=1)))
    with torch.inference_mode():
        loss(few)
    loss(Batch(*(x.requires_grad_() for x in few))).backward()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_as_good_as_its_inputs(loss, dtype):
    halves = draw(dtype)
    wide = Batch(*(x.detach().double().requires_grad_() for x in halves))
    # Computed from the very same numbers; softmax and sums of halves round to 8 bits at worst.
    assert loss(halves).item() == pytest.approx(loss(wide).item(), rel=2e-2, abs=1e-2)
    for mine, theirs in zip(gradients(loss, halves), gradients(loss, wide), strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine.double(), theirs, rtol=0.03, atol=3e-3)


@EVERY
def test_autocast_does_not_cost_digits(loss):
    inputs = draw()
    expected, wanted = loss(inputs).item(), gradients(loss, inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loss(inputs).item() == pytest.approx(expected, rel=1e-6)
        found = gradients(loss, inputs)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-8)


@EVERY
def test_views_and_strides_are_taken_as_they_are(loss):
    inputs = draw()
    features, logits = (torch.cat(pair).detach() for pair in (inputs[:2], inputs[2:]))
    halves = (features[:B], features[B:], logits[:B], logits[B:])
    across = (x.detach().t().contiguous().t() for x in inputs)
    expected, wanted = loss(inputs).item(), gradients(loss, inputs)
    for given in (halves, across):
        same = Batch(*(x.detach().requires_grad_() for x in given))
        assert loss(same).item() == pytest.approx(expected, rel=1e-6)
        for mine, theirs in zip(gradients(loss, same), wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


@EVERY
def test_what_comes_in_broken_comes_out_broken(loss):
    inputs = draw()
    with torch.no_grad():
        for x in inputs:
            x[1, 0] = float("nan")
    assert not all(torch.isfinite(g).all() for g in gradients(loss, inputs))


@pytest.mark.parametrize("loss", ANALYTIC.values(), ids=ANALYTIC.keys())
def test_a_second_derivative_is_refused_rather_than_wrong(loss):
    inputs = draw()
    factor = torch.ones((), requires_grad=True)
    value = factor * loss(inputs)
    found = torch.autograd.grad(value, inputs, create_graph=True, allow_unused=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        next(g for g in found if g is not None).sum().backward()


def test_the_folder_itself_imports_no_torch():
    code = "import sys, shiftcal.adaptation.losses; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
