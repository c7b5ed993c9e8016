"""Source and target as one tensor: the one they are parts of, or a copy."""

from __future__ import annotations

import pytest
import torch

from shiftcal.adaptation.losses._joined import joined


def whole(n=7, d=3):
    return torch.arange(float(n * d)).view(n, d).clone()


@pytest.mark.parametrize("first", [1, 3, 6])
def test_the_parts_of_a_tensor_are_that_tensor(first):
    x = whole()
    assert joined(*x.split([first, 7 - first])) is x


def test_gradients_go_to_the_tensor_itself():
    leaf = whole().requires_grad_()
    x = leaf * 2
    source, target = x.split([3, 4])
    together = joined(source, target)
    assert together is x
    together.square().sum().backward()
    torch.testing.assert_close(leaf.grad, 8 * leaf.detach())


def test_no_gradient_goes_where_the_parts_have_none():
    x = whole().requires_grad_() * 2
    source, target = (part.detach() for part in x.split([3, 4]))
    assert not joined(source, target).requires_grad
    assert not joined(*x.detach().split([3, 4])).requires_grad


@pytest.mark.parametrize(
    "parts",
    [
        lambda x: (x[3:], x[:3]),
        lambda x: (x[:3], x[4:]),
        lambda x: (x[:3], x[2:6]),
        lambda x: (x[1:3], x[3:]),
        lambda x: (x[:3], x[:4]),
        lambda x: (x[:, :2], x[:, :2]),
        lambda x: (x[:3], x[3:].clone()),
        lambda x: (x[:3].clone(), x[3:].clone()),
        lambda x: (x, x),
        lambda x: (x.view(7 * 3)[:9], x.view(7 * 3)[9:]),
        lambda x: (x.view(7, 3, 1).flatten(1)[1:5], x.view(7, 3, 1).flatten(1)[4:]),
        lambda x: (x.view(7, 1, 3).expand(7, 1, 3)[:3], x.view(7, 1, 3)[3:]),
        lambda x: (x.t()[:1], x.t()[1:]),
    ],
)
def test_whatever_else_is_copied(parts):
    x = whole()
    given = parts(x)
    found = joined(*given)
    assert found is not x
    assert torch.equal(found, torch.cat(given))
