"""CDAN and MDD: what is trained along learns to tell, the features learn not to be told.

The expected losses are written out here with torch's own functions.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from shiftcal.adaptation.passes import Pass
from shiftcal.adaptation.trainers.cdan import CDAN
from shiftcal.adaptation.trainers.mdd import MDD
from shiftcal.errors import InputError

N, D, K = 6, 5, 3


def passes(seed=0):
    rng = torch.Generator().manual_seed(seed)
    drawn = [
        torch.randn(N, width, generator=rng, dtype=torch.float64, requires_grad=True)
        for width in (D, K, D, K)
    ]
    return Pass(*drawn[:2]), Pass(*drawn[2:])


def made_extra(trainer):
    torch.manual_seed(1)
    return trainer.extra(D, K).double().eval()  # no dropout, no batch statistics


def cdan_by_hand(source, target, extra, *, entropy):
    f = torch.cat([source.features, target.features])
    p = torch.cat([source.logits, target.logits]).detach().softmax(1)
    told = extra(torch.einsum("nk,nd->nkd", p, f).flatten(1)).sigmoid().squeeze(1)
    truth = torch.cat([torch.ones(N), torch.zeros(N)]).double()
    weights = 1 + torch.exp((p * p.log()).sum(1)) if entropy else torch.ones(2 * N).double()
    each = functional.binary_cross_entropy(told, truth, reduction="none")
    return (each * weights / weights.mean()).mean()


def mdd_by_hand(source, target, extra, *, margin):
    predicted, theirs = source.logits.argmax(1), target.logits.argmax(1)
    on_source = functional.cross_entropy(extra(source.features), predicted)
    p = extra(target.features).softmax(1)[torch.arange(N), theirs]
    return margin * on_source - torch.log(1 - p + 1e-6).mean()


CASES = {
    "cdan": (CDAN(hidden=7), 1.0, lambda *given: cdan_by_hand(*given, entropy=False)),
    "cdan+e": (
        CDAN(hidden=7, entropy=True),
        1.0,
        lambda *given: cdan_by_hand(*given, entropy=True),
    ),
    "cdan, half": (
        CDAN(hidden=7, reversal=0.5),
        0.5,
        lambda *given: cdan_by_hand(*given, entropy=False),
    ),
    "mdd": (MDD(width=7), 0.1, lambda *given: mdd_by_hand(*given, margin=4.0)),
    "mdd, margin 2": (
        MDD(width=7, margin=2.0),
        0.1,
        lambda *given: mdd_by_hand(*given, margin=2.0),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", [0, 1, 1000, 30_000])
def test_the_features_get_the_reversed_gradient_and_what_is_trained_along_the_plain_one(case, step):
    trainer, hi, by_hand = CASES[case]
    extra = made_extra(trainer)
    source, target = passes()
    loss = trainer.transfer(source, target, extra, step)
    weights = list(extra.parameters())
    given = [source.features, target.features]
    found = torch.autograd.grad(loss, given + weights)

    expected_loss = by_hand(source, target, extra)
    expected = torch.autograd.grad(expected_loss, given + weights)
    torch.testing.assert_close(loss, expected_loss)
    c = hi * (2 / (1 + math.exp(-step / 1000)) - 1)
    for ours, plain in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(ours, -c * plain)
        assert plain.any()
    for ours, plain in zip(found[2:], expected[2:], strict=True):
        torch.testing.assert_close(ours, plain)


@pytest.mark.parametrize(
    ("trainer", "hi"), [(CDAN(hidden=7), 1.0), (MDD(width=7), 0.1)], ids=["cdan", "mdd"]
)
def test_reversal_starts_at_nothing_and_has_come_46_percent_of_the_way_after_1000_steps(
    trainer, hi
):
    extra = made_extra(trainer)

    def gradient(step):
        source, target = passes()
        loss = trainer.transfer(source, target, extra, step)
        return torch.autograd.grad(loss, source.features)[0]

    assert not gradient(0).any()
    full = gradient(10**9)
    torch.testing.assert_close(gradient(1000), full * 0.46211715726000975)
    source, target = passes()
    doubled = type(trainer)(**{**trainer.to_dict(), "reversal": 2 * hi, "warm_up": 10})
    loss = doubled.transfer(source, target, extra, 10**9)
    torch.testing.assert_close(torch.autograd.grad(loss, source.features)[0], 2 * full)


@pytest.mark.parametrize("case", CASES)
def test_descent_makes_what_is_trained_along_better_and_the_features_worse_for_it(case):
    trainer, _, by_hand = CASES[case]
    extra = made_extra(trainer)
    source, target = passes()
    loss = trainer.transfer(source, target, extra, 5000)
    loss.backward()
    with torch.no_grad():
        moved = [
            Pass(each.features - 1e-2 * each.features.grad, each.logits)
            for each in (source, target)
        ]
        assert by_hand(*moved, extra) > loss
        for weight in extra.parameters():
            weight.sub_(1e-4 * weight.grad)
        assert by_hand(source, target, extra) < loss


@pytest.mark.parametrize("case", CASES)
def test_predictions_steer_the_loss_but_get_no_gradient_of_it(case):
    trainer, _, _ = CASES[case]
    source, target = passes()
    trainer.transfer(source, target, made_extra(trainer), 5000).backward()
    assert source.logits.grad is None
    assert target.logits.grad is None
    other = Pass(source.features, source.logits.detach().roll(1, dims=1))
    first = trainer.transfer(source, target, made_extra(trainer), 5000)
    assert trainer.transfer(other, target, made_extra(trainer), 5000) != first


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CDAN(entropy=1), "entropy must be true or false; got 1"),
        (lambda: CDAN(hidden=0), "hidden must be a whole number of at least 1"),
        (lambda: CDAN(reversal=-1), "reversal must be a number of at least 0"),
        (lambda: CDAN(warm_up=0), "warm_up must be a whole number of at least 1"),
        (lambda: MDD(margin=-4), "margin must be a number of at least 0"),
        (lambda: MDD(width=0.5), "width must be a whole number of at least 1"),
        (lambda: MDD(reversal="x"), "reversal must be a number of at least 0"),
        (lambda: MDD(warm_up=None), "warm_up must be a whole number of at least 1"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
