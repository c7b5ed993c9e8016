"""Bottlenecks, heads and the discriminator: what they are made of, and how they start."""

from __future__ import annotations

import pytest
import torch

from shiftcal.adaptation.heads import (
    ApartBatchNorm1d,
    Dropout,
    NormPreservingDropout,
    discriminator,
    draw_layers,
    linear_bottleneck,
    linear_head,
    norm_preserving_bottleneck,
    two_layer_head,
)


def kinds(module):
    """Names of the layers, and the shape of those that have weights."""
    return [
        (type(layer).__name__, tuple(layer.weight.shape) if hasattr(layer, "weight") else None)
        for layer in module
    ]


def test_a_bottleneck_has_the_layers_asked_for_in_the_references_order():
    assert kinds(linear_bottleneck(12, 7, dropout=0.5)) == [
        ("Linear", (7, 12)),
        ("BatchNorm1d", (7,)),
        ("ReLU", None),
        ("Dropout", None),
    ]
    assert kinds(linear_bottleneck(12, 7)) == [
        ("Linear", (7, 12)),
        ("BatchNorm1d", (7,)),
        ("ReLU", None),
    ]
    plain = linear_bottleneck(12, 7, norm=False, dropout=0.25)
    assert kinds(plain) == [("Linear", (7, 12)), ("ReLU", None), ("Dropout", None)]
    assert plain[2].p == 0.25


def test_a_bottleneck_can_have_statistics_of_each_domain():
    made = linear_bottleneck(12, 7, apart=True)
    assert [name for name, _ in kinds(made)] == ["Linear", "ApartBatchNorm1d", "ReLU"]


def test_normalisation_apart_is_the_usual_one_of_one_domain_after_the_other():
    torch.manual_seed(0)
    apart, usual = ApartBatchNorm1d(5), torch.nn.BatchNorm1d(5)
    usual.load_state_dict(apart.state_dict())
    source, target = torch.randn(8, 5), 3 * torch.randn(8, 5) + 2
    found = apart(torch.cat([source, target]))
    torch.testing.assert_close(found, torch.cat([usual(source), usual(target)]))
    for name, value in usual.state_dict().items():
        torch.testing.assert_close(apart.state_dict()[name], value)
    joint = torch.nn.BatchNorm1d(5)(torch.cat([source, target]))
    assert not torch.allclose(found, joint, atol=0.1)
    odd = torch.randn(3, 5)
    torch.testing.assert_close(apart.eval()(odd), usual.eval()(odd))


def test_a_discriminator_has_two_hidden_layers_and_gives_one_logit():
    made = discriminator(30, 8)
    assert kinds(made) == [
        ("Linear", (8, 30)),
        ("BatchNorm1d", (8,)),
        ("ReLU", None),
        ("Linear", (8, 8)),
        ("BatchNorm1d", (8,)),
        ("ReLU", None),
        ("Linear", (1, 8)),
    ]
    assert made(torch.zeros(5, 30)).shape == (5, 1)


def test_the_heads_map_features_to_logits():
    assert linear_head(6, 4)(torch.zeros(3, 6)).shape == (3, 4)
    deep = two_layer_head(6, 9, 4, dropout=0.5)
    assert kinds(deep) == [
        ("Linear", (9, 6)),
        ("ReLU", None),
        ("Dropout", None),
        ("Linear", (4, 9)),
    ]
    assert deep[2].p == 0.5


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_dropout_is_torchs_with_other_draws(rate):
    torch.manual_seed(0)
    x = torch.randn(400, 500, requires_grad=True)
    layer = Dropout(rate).train()
    kept = layer(x)
    kept.sum().backward()
    there = kept != 0
    # Five deviations of the share of 200,000 draws are below 0.006.
    assert float(there.float().mean()) == pytest.approx(1 - rate, abs=0.006)
    torch.testing.assert_close(kept[there], x[there] / (1 - rate))
    assert torch.equal(x.grad != 0, there)
    assert not torch.equal(layer(x) != 0, there)
    assert torch.equal(layer.eval()(x), x)


def test_every_place_of_an_odd_shape_is_dropped_half_of_the_time():
    torch.manual_seed(0)
    layer, x = Dropout(0.5).train(), torch.ones(3, 7, dtype=torch.float64)
    kept = torch.stack([layer(x) for _ in range(4000)])
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    # Five deviations of the mean of 4,000 draws are below 0.08.
    torch.testing.assert_close(kept.mean(0), x, atol=0.08, rtol=0)
    flat = kept.flatten(1) - 1
    together = (flat.t() @ flat / len(flat)).fill_diagonal_(0)
    assert together.abs().max() < 0.08


@pytest.mark.parametrize(("rate", "left"), [(0.0, 1.0), (1.0, 0.0)])
def test_dropout_of_nothing_or_of_everything(rate, left):
    x = torch.ones(4, 5)
    assert torch.equal(Dropout(rate).train()(x), left * x)


def test_dropout_keeps_half_precision():
    x = torch.ones(4, 5, dtype=torch.bfloat16)
    assert Dropout(0.5).train()(x).dtype == torch.bfloat16


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_norm_preserving_dropout_keeps_the_expected_squared_norm(rate):
    torch.manual_seed(0)
    x = torch.randn(400, 500)
    kept = NormPreservingDropout(rate).train()(x)
    # The ratio's deviation is below sqrt(3 rate / (1 - rate) / 200,000), 0.8% at a rate of 0.8.
    assert float((kept**2).sum() / (x**2).sum()) == pytest.approx(1.0, abs=0.03)
    there = kept != 0
    assert float(there.float().mean()) == pytest.approx(1 - rate, abs=0.01)
    torch.testing.assert_close(kept[there], x[there] / (1 - rate) ** 0.5)


def test_norm_preserving_dropout_does_nothing_outside_of_training():
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    assert torch.equal(NormPreservingDropout(0.5).eval()(x), x)


def test_the_norm_preserving_bottleneck_starts_with_small_normal_weights():
    torch.manual_seed(0)
    made = norm_preserving_bottleneck(400, 1000, dropout=0.5)
    assert [name for name, _ in kinds(made)] == [
        "Linear",
        "ApartBatchNorm1d",
        "ReLU",
        "NormPreservingDropout",
    ]
    linear, norm = made[0], made[1]
    # Tolerances are some five deviations of the estimates.
    assert linear.weight.std().item() == pytest.approx(0.01, rel=0.01)
    assert linear.bias.std().item() == pytest.approx(0.01, rel=0.12)
    assert norm.weight.mean().item() == pytest.approx(1.0, abs=0.002)
    assert norm.weight.std().item() == pytest.approx(0.01, rel=0.12)
    assert not norm.bias.any()


def test_layers_are_drawn_with_the_deviations_asked_for():
    torch.manual_seed(0)
    made = two_layer_head(300, 400, 50, dropout=0.5)
    draw_layers(made, deviation=0.02, bias=0.1)
    for layer in (made[0], made[3]):
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.03)
        assert layer.weight.mean().item() == pytest.approx(0.0, abs=0.001)
        assert torch.all(layer.bias == torch.tensor(0.1))
