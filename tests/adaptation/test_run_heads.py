"""First weights of the heads: the seed's, whatever the backbone draws for itself."""

from __future__ import annotations

import pytest
import torch
from two_domains import colour_model, domains

from shiftcal.adaptation import adapt, one_run
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.frozen import frozen_features
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.models import Preprocessing

QUICK = {"iterations": 2, "batch_size": 6, "bottleneck": 5}


@pytest.fixture
def begun(monkeypatch):
    """First weights of the networks that are trained, in turn."""
    found = []
    train = one_run.train

    def noting(objective, *given, **options):
        state = objective.state_dict()
        found.append({name: value.clone() for name, value in state.items()})
        return train(objective, *given, **options)

    monkeypatch.setattr(one_run, "train", noting)
    with cpu_threads(1):
        yield found


def heads(weights):
    return {name: value for name, value in weights.items() if ".backbone." not in name}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def drawing(numbers):
    """A module whose making draws so many numbers more than its weights; all are the same."""

    class Drawing(torch.nn.Module):
        preprocessing = Preprocessing(resize=(16, 16), crop=None)

        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Conv2d(3, 6, 4, stride=4)
            torch.nn.init.constant_(self.layer.weight, 0.1)
            torch.nn.init.constant_(self.layer.bias, 0.0)

        def __deepcopy__(self, memo):
            torch.rand(numbers)
            return Drawing()

        def forward(self, x):
            return self.layer(x)

    return Drawing()


def test_heads_do_not_depend_on_what_a_backbone_draws(tmp_path, begun):
    for numbers in (0, 7):
        adapt(
            *domains(45),
            tmp_path / str(numbers),
            trainer="cdan",
            backbone=drawing(numbers),
            severities=(5,),
            transform="none",
            changes=QUICK,
        )
    assert same(*begun)


def test_heads_are_the_same_with_and_without_a_backbone_and_are_the_seeds(tmp_path, begun):
    source, target = domains(45)
    features = tuple(
        frozen_features(colour_model(), images, tmp_path / name, severities=levels)
        for name, images, levels in (("s", source, (5,)), ("t", target, ()))
    )
    options = {"trainer": "cdan", "severities": (5,), "changes": QUICK, "seed": 4}
    adapt(source, target, tmp_path / "a", features=features, **options)
    options |= {"backbone": drawing(3), "transform": "none", "recipe": "frozen"}
    adapt(source, target, tmp_path / "b", **options)
    assert same(heads(begun[0]), heads(begun[1]))
    with seeded(4):
        first = torch.nn.Linear(6, 5)
    assert torch.equal(begun[0]["classifier.bottleneck.0.weight"], first.weight)


def test_a_backbone_that_is_drawn_follows_from_the_seed_and_not_with_the_heads_numbers(
    tmp_path, begun
):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        adapt(
            *domains(45),
            tmp_path / name,
            trainer="source-only",
            backbone="digits-cnn",
            severities=(5,),
            changes=QUICK,
            seed=seed,
        )
    assert same(begun[0], begun[1])
    layer = "classifier.backbone.network.0.weight"
    assert not torch.equal(begun[0][layer], begun[2][layer])
    with seeded(1):
        alike = torch.nn.Conv2d(3, 16, 5, bias=False).weight
    assert begun[0][layer].shape == alike.shape
    assert not torch.equal(begun[0][layer], alike)
