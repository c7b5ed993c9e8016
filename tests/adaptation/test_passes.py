"""Halves of a batch: what they are, and that they become the batch again without a copy."""

from __future__ import annotations

import pytest
import torch

from shiftcal.adaptation.passes import Half, Pass, halves, together
from shiftcal.errors import InputError


def batch(n=6):
    rng = torch.Generator().manual_seed(0)
    return Pass(*(torch.randn(n, width, generator=rng, requires_grad=True) for width in (5, 3)))


def test_halves_are_the_rows_of_the_source_and_the_rest():
    whole = batch()
    source, target = halves(whole, 2)
    for name in ("features", "logits"):
        x = getattr(whole, name)
        assert torch.equal(getattr(source, name), x[:2])
        assert torch.equal(getattr(target, name), x[2:])


def test_a_half_is_cut_once_and_unpacks_as_a_pass_does():
    source, _ = halves(batch(), 3)
    features, logits = source
    assert features is source.features
    assert logits is source.logits
    (grad,) = torch.autograd.grad(source.features.square().sum(), source.features)
    torch.testing.assert_close(grad, 2 * features)


def test_halves_together_are_the_batch_itself():
    whole = batch()
    assert together(*halves(whole, 3)) is whole


@pytest.mark.parametrize(
    "given",
    [
        lambda a, _: tuple(reversed(halves(a, 3))),
        lambda a, b: (halves(a, 3)[0], halves(b, 3)[1]),
        lambda a, _: (halves(a, 3)[0], halves(a, 3)[0]),
        lambda a, _: (Half(a, 0, 2), Half(a, 2, 4)),
        lambda a, _: (Half(a, 2, 4), Half(a, 4, 6)),
        lambda a, b: (halves(a, 3)[0], Pass(b.features[:3], b.logits[:3])),
        lambda a, b: (a, b),
    ],
    ids=[
        "swapped",
        "of two batches",
        "twice the same",
        "not to the end",
        "not from the start",
        "half and pass",
        "passes",
    ],
)
def test_whatever_else_is_copied_in_the_order_given(given):
    source, target = given(batch(), batch())
    found = together(source, target)
    assert len(found.logits) == len(source.logits) + len(target.logits)
    assert torch.equal(found.features, torch.cat([source.features, target.features]))
    assert torch.equal(found.logits, torch.cat([source.logits, target.logits]))


def test_gradients_of_a_half_go_to_its_rows():
    whole = batch()
    source, target = halves(whole, 3)
    (source.logits.sum() + 2 * target.features.sum()).backward()
    assert torch.equal(whole.logits.grad, torch.tensor([[1.0]] * 3 + [[0.0]] * 3).expand(6, 3))
    assert torch.equal(whole.features.grad, torch.tensor([[0.0]] * 3 + [[2.0]] * 3).expand(6, 5))


@pytest.mark.parametrize("n_source", [2, 4])
def test_domains_of_different_sizes_are_refused(n_source):
    source, target = halves(batch(), n_source)
    message = f"as many rows each; got {n_source} and {6 - n_source}"
    with pytest.raises(InputError, match=message):
        together(source, target)
    with pytest.raises(InputError, match=message):
        together(*(Pass(each.features, each.logits) for each in (source, target)))
