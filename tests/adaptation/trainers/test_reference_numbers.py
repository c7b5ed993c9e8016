"""The numbers of the reference library's scripts, written out here and nowhere taken from the code.

By trainer: those of its own defaults, and those of its scripts for Office-Home and VisDA.
"""

from __future__ import annotations

import pytest
import torch

from shiftcal import adaptation
from shiftcal.adaptation.network import make_objective

# epochs x iterations, batch, learning rate, gamma, weight decay, bottleneck
SCHEDULES = {
    ("source-only", None): (20 * 500, 32, 0.001, 3e-4, 5e-4, 0),
    ("source-only", "office-home"): (5 * 500, 32, 0.001, 3e-4, 5e-4, 0),
    ("source-only", "visda"): (20 * 1000, 32, 0.001, 3e-4, 5e-4, 0),
    ("dan", None): (20 * 500, 32, 0.003, 3e-4, 5e-4, 256),
    ("dan", "office-home"): (20 * 500, 32, 0.003, 3e-4, 5e-4, 256),
    ("dan", "visda"): (20 * 500, 32, 0.003, 3e-4, 5e-4, 256),
    ("jan", None): (20 * 500, 32, 0.003, 3e-4, 5e-4, 256),
    ("jan", "office-home"): (20 * 500, 32, 0.003, 3e-4, 5e-4, 256),
    ("jan", "visda"): (20 * 500, 32, 0.003, 3e-4, 5e-4, 256),
    ("cdan", None): (20 * 1000, 32, 0.01, 1e-3, 1e-3, 256),
    ("cdan", "office-home"): (30 * 1000, 32, 0.01, 1e-3, 1e-3, 256),
    ("cdan", "visda"): (30 * 1000, 32, 0.01, 1e-3, 1e-3, 256),
    ("mdd", None): (20 * 1000, 32, 0.004, 2e-4, 5e-4, 1024),
    ("mdd", "office-home"): (30 * 1000, 32, 0.004, 2e-4, 5e-4, 2048),
    ("mdd", "visda"): (30 * 1000, 36, 0.004, 2e-4, 5e-4, 1024),
    ("safn", None): (20 * 500, 32, 0.001, 0.0, 5e-4, 1000),
    ("safn", "office-home"): (20 * 500, 32, 0.001, 0.0, 5e-4, 1000),
    ("safn", "visda"): (10 * 1000, 36, 0.001, 0.0, 5e-4, 1000),
    ("mcc", None): (20 * 1000, 36, 0.005, 1e-3, 1e-3, 256),
    ("mcc", "office-home"): (30 * 1000, 36, 0.005, 1e-3, 1e-3, 2048),
    ("mcc", "visda"): (30 * 1000, 36, 0.002, 1e-3, 1e-3, 256),
}
OPTIONS = {
    ("source-only", None): {"trade_off": 1.0},
    ("dan", None): {"trade_off": 1.0, "linear": True},
    ("dan", "visda"): {"trade_off": 1.0, "linear": True},
    ("jan", None): {"trade_off": 1.0, "linear": False, "sigma": 0.92},
    ("jan", "visda"): {"trade_off": 1.0, "linear": False, "sigma": 0.92},
    ("cdan", None): {
        "trade_off": 1.0,
        "entropy": False,
        "hidden": 1024,
        "reversal": 1.0,
        "warm_up": 1000,
    },
    ("cdan", "office-home"): {
        "trade_off": 1.0,
        "entropy": False,
        "hidden": 1024,
        "reversal": 1.0,
        "warm_up": 1000,
    },
    ("mdd", None): {
        "trade_off": 1.0,
        "margin": 4.0,
        "width": 1024,
        "reversal": 0.1,
        "warm_up": 1000,
    },
    ("mdd", "office-home"): {
        "trade_off": 1.0,
        "margin": 4.0,
        "width": 2048,
        "reversal": 0.1,
        "warm_up": 1000,
    },
    ("mdd", "visda"): {
        "trade_off": 1.0,
        "margin": 4.0,
        "width": 1024,
        "reversal": 0.1,
        "warm_up": 1000,
    },
    ("safn", None): {"trade_off": 0.05, "delta": 1.0},
    ("safn", "office-home"): {"trade_off": 0.05, "delta": 1.0},
    ("safn", "visda"): {"trade_off": 0.05, "delta": 0.3},
    ("mcc", None): {"trade_off": 1.0, "temperature": 2.5},
    ("mcc", "office-home"): {"trade_off": 1.0, "temperature": 2.5},
    ("mcc", "visda"): {"trade_off": 1.0, "temperature": 3.0},
}
JOINT = {"source-only": True, "dan": False, "jan": True, "cdan": True, "mdd": True, "mcc": True}
JOINT["safn"] = False


@pytest.mark.parametrize(("name", "recipe"), SCHEDULES)
def test_a_recipe_trains_as_the_references_script(name, recipe):
    _, settings = adaptation.get(name).prepared(recipe)
    assert (
        settings.iterations,
        settings.batch_size,
        settings.lr,
        settings.lr_gamma,
        settings.weight_decay,
        settings.bottleneck,
    ) == SCHEDULES[name, recipe]
    assert settings.lr_power == 0.75
    assert settings.momentum == 0.9


@pytest.mark.parametrize(("name", "recipe"), OPTIONS)
def test_a_recipe_has_the_options_of_the_references_script(name, recipe):
    trainer, _ = adaptation.get(name).prepared(recipe)
    assert trainer.to_dict() == OPTIONS[name, recipe]


@pytest.mark.parametrize("name", adaptation.names())
@pytest.mark.parametrize("recipe", [None, "office-home", "visda"])
def test_the_backbone_learns_a_tenth_as_fast_with_nesterovs_momentum_but_for_safn(name, recipe):
    _, settings = adaptation.get(name).prepared(recipe)
    found = (settings.backbone_lr, settings.backbone_momentum, settings.nesterov)
    assert found == ((1.0, 0.0, False) if name == "safn" else (0.1, None, True))


@pytest.mark.parametrize("name", adaptation.names())
def test_domains_go_through_the_network_as_in_the_reference(name):
    assert adaptation.get(name).joint is JOINT[name]
    assert adaptation.get(name).adapts is (name != "source-only")


BOTTLENECKS = {
    "source-only": [],
    "dan": ["Linear", "ReLU", "Dropout"],
    "jan": ["Linear", "BatchNorm1d", "ReLU", "Dropout"],
    "cdan": ["Linear", "BatchNorm1d", "ReLU"],
    "mdd": ["Linear", "BatchNorm1d", "ReLU", "Dropout"],
    "safn": ["Linear", "ApartBatchNorm1d", "ReLU", "NormPreservingDropout"],
    "mcc": ["Linear", "BatchNorm1d", "ReLU"],
}
# Of 2048 features of a ResNet and the 65 classes of Office-Home: shapes of the head's weights, and
# of those trained along.
HEADS = {
    "source-only": ([(65, 2048)], []),
    "dan": ([(65, 256)], []),
    "jan": ([(65, 256)], []),
    "cdan": ([(65, 256)], [(1024, 65 * 256), (1024, 1024), (1, 1024)]),
    "mdd": ([(2048, 2048), (65, 2048)], [(2048, 2048), (65, 2048)]),
    "safn": ([(65, 1000)], []),
    "mcc": ([(65, 2048)], []),
}


def of_linear_layers(module):
    found = [] if module is None else module.modules()
    return [tuple(each.weight.shape) for each in found if isinstance(each, torch.nn.Linear)]


@pytest.mark.parametrize("name", adaptation.names())
def test_the_network_for_office_home_is_the_references(name):
    trainer, settings = adaptation.get(name).prepared("office-home")
    made = make_objective(trainer, None, 2048, 65, width=settings.bottleneck)
    layers = list(made.classifier.bottleneck.children())
    assert [type(layer).__name__ for layer in layers] == BOTTLENECKS[name]
    head, along = HEADS[name]
    assert of_linear_layers(made.classifier.head) == head
    assert of_linear_layers(made.extra) == along


@pytest.mark.parametrize("name", ["dan", "jan", "mdd"])
def test_dropout_is_one_half_wherever_there_is_some(name):
    trainer, _ = adaptation.get(name).prepared(None)
    made = make_objective(trainer, None, 12, 3, width=7)
    rates = [each.p for each in made.modules() if isinstance(each, torch.nn.Dropout)]
    assert rates == [0.5] * (3 if name == "mdd" else 1)


def test_safns_dropout_is_one_half_too():
    assert adaptation.get("safn")().bottleneck(12, 7)[3].rate == 0.5


def test_mdd_starts_with_the_references_weights():
    torch.manual_seed(0)
    made = make_objective(adaptation.get("mdd")(width=300), None, 500, 40, width=400)
    linear = made.classifier.bottleneck[0]
    # Tolerances are some five deviations of the estimates.
    assert linear.weight.std().item() == pytest.approx(0.005, rel=0.01)
    assert torch.all(linear.bias == torch.tensor(0.1))
    for head in (made.classifier.head, made.extra):
        assert head[0].weight.std().item() == pytest.approx(0.01, rel=0.02)
        assert head[3].weight.std().item() == pytest.approx(0.01, rel=0.04)
        assert not head[0].bias.any()
        assert not head[3].bias.any()
    assert not torch.equal(made.classifier.head[0].weight, made.extra[0].weight)


def test_safn_starts_with_the_references_weights():
    torch.manual_seed(0)
    made = make_objective(adaptation.get("safn")(), None, 500, 40, width=400).classifier
    for layer in (made.bottleneck[0], made.head):
        assert layer.weight.std().item() == pytest.approx(0.01, rel=0.04)
        assert 0.005 < layer.bias.std().item() < 0.015  # 40 numbers tell no more of the head's
