"""The trainers: the reference library's numbers, the losses written out, and what each achieves.

The reference numbers are those of its defaults and of its scripts for Office-Home and VisDA.
"""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from shiftcal import adaptation
from shiftcal.adaptation import network
from shiftcal.adaptation.network import Objective
from shiftcal.adaptation.trainers import (
    CDAN,
    DAN,
    JAN,
    MCC,
    MDD,
    SAFN,
    Pass,
    Settings,
    Trainer,
    choose,
)
from shiftcal.errors import InputError, UnknownName
from shiftcal.models.pytorch import torch_threads

N, D, K = 6, 5, 3
NAMES = adaptation.names()
ADAPTING = [name for name in NAMES if adaptation.get(name).adapts]
EVERY = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def one_thread():
    with torch_threads(1):
        yield


# Iterations, batch size, lr, lr_gamma, weight decay and bottleneck, then options that differ from
# the trainer's defaults.
REFERENCE = {
    ("source-only", None): ((20 * 500, 32, 0.001, 3e-4, 5e-4, 0), {}),
    ("source-only", "office-home"): ((5 * 500, 32, 0.001, 3e-4, 5e-4, 0), {}),
    ("source-only", "visda"): ((20 * 1000, 32, 0.001, 3e-4, 5e-4, 0), {}),
    **{
        (name, recipe): ((20 * 500, 32, 0.003, 3e-4, 5e-4, 256), {})
        for name in ("dan", "jan")
        for recipe in (None, "office-home", "visda")
    },
    ("cdan", None): ((20 * 1000, 32, 0.01, 1e-3, 1e-3, 256), {}),
    ("cdan", "office-home"): ((30 * 1000, 32, 0.01, 1e-3, 1e-3, 256), {}),
    ("cdan", "visda"): ((30 * 1000, 32, 0.01, 1e-3, 1e-3, 256), {}),
    ("mdd", None): ((20 * 1000, 32, 0.004, 2e-4, 5e-4, 1024), {}),
    ("mdd", "office-home"): ((30 * 1000, 32, 0.004, 2e-4, 5e-4, 2048), {"width": 2048}),
    ("mdd", "visda"): ((30 * 1000, 36, 0.004, 2e-4, 5e-4, 1024), {}),
    ("safn", None): ((20 * 500, 32, 0.001, 0.0, 5e-4, 1000), {}),
    ("safn", "office-home"): ((20 * 500, 32, 0.001, 0.0, 5e-4, 1000), {}),
    ("safn", "visda"): ((10 * 1000, 36, 0.001, 0.0, 5e-4, 1000), {"delta": 0.3}),
    ("mcc", None): ((20 * 1000, 36, 0.005, 1e-3, 1e-3, 256), {}),
    ("mcc", "office-home"): ((30 * 1000, 36, 0.005, 1e-3, 1e-3, 2048), {}),
    ("mcc", "visda"): ((30 * 1000, 36, 0.002, 1e-3, 1e-3, 256), {"temperature": 3.0}),
}
DEFAULTS = {
    "source-only": {"trade_off": 1.0},
    "dan": {"trade_off": 1.0, "linear": True},
    "jan": {"trade_off": 1.0, "linear": False, "sigma": 0.92},
    "cdan": {"entropy": False, "hidden": 1024, "reversal": 1.0, "trade_off": 1.0, "warm_up": 1000},
    "mdd": {"margin": 4.0, "reversal": 0.1, "trade_off": 1.0, "warm_up": 1000, "width": 1024},
    "safn": {"trade_off": 0.05, "delta": 1.0},
    "mcc": {"trade_off": 1.0, "temperature": 2.5},
}
# Layers of the bottleneck; shapes of the linear layers of the head and of what is trained along.
LAYERS = {
    "source-only": ([], [(65, 2048)], []),
    "dan": (["Linear", "ReLU", "Dropout"], [(65, 256)], []),
    "jan": (["Linear", "BatchNorm1d", "ReLU", "Dropout"], [(65, 256)], []),
    "cdan": (
        ["Linear", "BatchNorm1d", "ReLU"],
        [(65, 256)],
        [(1024, 65 * 256), (1024, 1024), (1, 1024)],
    ),
    "mdd": (
        ["Linear", "BatchNorm1d", "ReLU", "Dropout"],
        [(2048, 2048), (65, 2048)],
        [(2048, 2048), (65, 2048)],
    ),
    "safn": (["Linear", "ApartBatchNorm1d", "ReLU", "NormPreservingDropout"], [(65, 1000)], []),
    "mcc": (["Linear", "BatchNorm1d", "ReLU"], [(65, 2048)], []),
}


@pytest.mark.parametrize(("name", "recipe"), REFERENCE)
def test_a_recipe_is_the_references_script(name, recipe):
    numbers, options = REFERENCE[name, recipe]
    trainer, settings = adaptation.get(name).prepared(recipe)
    names = ("iterations", "batch_size", "lr", "lr_gamma", "weight_decay", "bottleneck")
    assert tuple(getattr(settings, each) for each in names) == numbers
    assert trainer.to_dict() == {**DEFAULTS[name], **options}
    assert (settings.lr_power, settings.momentum) == (0.75, 0.9)
    backbone = (settings.backbone_lr, settings.backbone_momentum, settings.nesterov)
    assert backbone == ((1.0, 0.0, False) if name == "safn" else (0.1, None, True))


@EVERY
def test_the_network_for_office_home_is_the_references(name):
    kind = adaptation.get(name)
    assert (kind.joint, kind.adapts) == (name not in ("dan", "safn"), name != "source-only")
    trainer, settings = kind.prepared("office-home")
    made = Objective(trainer, None, 2048, 65, width=settings.bottleneck)
    bottleneck, *linear = LAYERS[name]
    assert [type(one).__name__ for one in made.classifier.bottleneck.children()] == bottleneck
    for module, shapes in zip((made.classifier.head, made.extra), linear, strict=True):
        layers = [] if module is None else module.modules()
        found = [tuple(x.weight.shape) for x in layers if isinstance(x, torch.nn.Linear)]
        assert found == shapes
    rates = {each.p for each in made.modules() if isinstance(each, torch.nn.Dropout)}
    assert rates <= {0.5}


def test_mdd_and_safn_start_with_the_references_weights():
    torch.manual_seed(0)
    made = Objective(MDD(width=300), None, 500, 40, width=400)
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
    made = Objective(SAFN(), None, 500, 40, width=400).classifier
    for layer in (made.bottleneck[0], made.head):
        assert layer.weight.std().item() == pytest.approx(0.01, rel=0.04)
        assert 0.005 < layer.bias.std().item() < 0.015  # 40 numbers say no more of the head's
    norm = made.bottleneck[1].weight
    assert norm.mean().item() == pytest.approx(1.0, abs=0.003)
    assert norm.std().item() == pytest.approx(0.01, rel=0.2)


def test_trainers_and_their_recipes_are_known_without_torch():
    code = (
        "import sys\n"
        "from shiftcal import adaptation\n"
        "for name in adaptation.names():\n"
        "    for recipe in (None, *adaptation.get(name).recipes):\n"
        "        adaptation.get(name).prepared(recipe)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@EVERY
def test_contract(name):
    kind = adaptation.get(name)
    assert issubclass(kind, Trainer)
    assert kind.__final__
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind().trade_off = 2.0
    own = {field.name for field in dataclasses.fields(kind)}
    assert not own & set(Settings().to_dict())
    for option in own - {"trade_off"}:
        assert f"        {option}: " in kind.__doc__
    made, settings = kind.prepared("visda", {"trade_off": 3.0, "iterations": 11})
    assert (made.trade_off, settings.iterations) == (3.0, 11)
    made, settings = kind.prepared("digits")
    written = json.loads(json.dumps({**made.to_dict(), **settings.to_dict()}))
    assert kind.prepared(None, written) == (made, settings)


def passes(n=N, d=D, k=K, seed=0, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(n, width, generator=rng, dtype=dtype) for width in (d, k, d, k)]
    for each in drawn:
        each.requires_grad_()
    return Pass(*drawn[:2]), Pass(*drawn[2:])


def made_extra(trainer):
    torch.manual_seed(1)
    return trainer.extra(D, K).double().eval()  # no dropout, no batch statistics


def cdan_by_hand(source, target, extra, *, entropy):
    f = torch.cat([source.features, target.features])
    p = torch.cat([source.logits, target.logits]).detach().softmax(1)
    found = extra(torch.einsum("nk,nd->nkd", p, f).flatten(1)).sigmoid().squeeze(1)
    truth = torch.cat([torch.ones(N), torch.zeros(N)]).double()
    weights = 1 + torch.exp((p * p.log()).sum(1)) if entropy else torch.ones(2 * N).double()
    each = functional.binary_cross_entropy(found, truth, reduction="none")
    return (each * weights / weights.mean()).mean()


def mdd_by_hand(source, target, extra, *, margin):
    predicted, theirs = source.logits.argmax(1), target.logits.argmax(1)
    on_source = functional.cross_entropy(extra(source.features), predicted)
    p = extra(target.features).softmax(1)[torch.arange(N), theirs]
    return margin * on_source - torch.log(1 - p + 1e-6).mean()


ADVERSARIAL = {
    "cdan": (CDAN(hidden=7), 1.0, partial(cdan_by_hand, entropy=False)),
    "cdan+e": (CDAN(hidden=7, entropy=True), 1.0, partial(cdan_by_hand, entropy=True)),
    "cdan, half": (CDAN(hidden=7, reversal=0.5), 0.5, partial(cdan_by_hand, entropy=False)),
    "mdd": (MDD(width=7), 0.1, partial(mdd_by_hand, margin=4.0)),
    "mdd, margin 2": (MDD(width=7, margin=2.0), 0.1, partial(mdd_by_hand, margin=2.0)),
}


@pytest.mark.parametrize("case", ADVERSARIAL)
@pytest.mark.parametrize("step", [0, 1, 1000, 30_000])
def test_features_get_the_reversed_gradient_and_what_is_trained_along_the_plain_one(case, step):
    trainer, limit, by_hand = ADVERSARIAL[case]
    extra = made_extra(trainer)
    source, target = passes()
    loss = trainer.transfer(source, target, extra, step)
    inputs = [source.features, target.features, *extra.parameters()]
    expected_loss = by_hand(source, target, extra)
    torch.testing.assert_close(loss, expected_loss)
    found = torch.autograd.grad(loss, inputs, retain_graph=True)
    expected = torch.autograd.grad(expected_loss, inputs)
    c = limit * (2 / (1 + math.exp(-step / 1000)) - 1)
    for i, (ours, plain) in enumerate(zip(found, expected, strict=True)):
        torch.testing.assert_close(ours, -c * plain if i < 2 else plain)
    assert expected[0].any()
    loss.backward()
    assert source.logits.grad is None
    assert target.logits.grad is None
    other = Pass(source.features, source.logits.detach().roll(1, dims=1))
    assert trainer.transfer(other, target, extra, step) != loss


def test_transfer_losses_are_of_the_right_parts():
    source, target = passes()
    features, logits = (torch.cat(pair) for pair in zip(source, target, strict=True))
    for trainer, expected in (
        (DAN(linear=False), network.mk_mmd(*source[:1], *target[:1], linear=False)),
        (JAN(sigma=0.5), network.jmmd(features, logits.softmax(1), sigma=0.5)),
        (SAFN(delta=0.3), network.stepwise_norm(features, delta=0.3, domains=2)),
        (MCC(temperature=1.7), network.class_confusion(target.logits, 1.7)),
    ):
        assert torch.equal(trainer.transfer(source, target, None, 0), expected)


@EVERY
def test_extreme_batches_give_finite_losses_and_gradients(name):
    narrow = {"cdan": {"hidden": 64}, "mdd": {"width": 64}}.get(name, {})
    huge = 1e4 * torch.randn(8, 16), 1e4 * torch.randn(8, 16) + 1e4
    for source, target in (huge, (torch.ones(8, 16), torch.ones(8, 16))):
        made = Objective(adaptation.get(name)(**narrow), None, 16, 5, width=8).train()
        losses = made(source, torch.arange(8) % 5, target, 700)
        losses.total.backward()
        assert torch.isfinite(losses.total)
        assert all(torch.isfinite(p.grad).all() for p in made.parameters() if p.grad is not None)


def domain(rng, shift):
    labels = rng.integers(3, size=1000)
    angle = 2 * np.pi * labels / 3
    centre = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inputs = np.hstack([1.5 * centre, 2 * centre + shift]) + 0.6 * rng.standard_normal((1000, 4))
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels)


def domains(seed):
    rng = np.random.default_rng(seed)
    return domain(rng, 0.0), domain(rng, np.array([2.5, 1.0]))


def accuracies(classifier, *sets):
    with torch.no_grad():
        return [(classifier(x).argmax(1) == y).float().mean().item() for x, y in sets]


@cache
def reached(name, trade_off=None):
    """Mean accuracy of two seeds on source and target, after 200 steps."""
    changes = {"cdan": {"hidden": 32, "warm_up": 20}, "mdd": {"width": 32, "warm_up": 100}}
    changes = changes.get(name, {}) | ({} if trade_off is None else {"trade_off": trade_off})
    trainer, settings = adaptation.get(name).prepared(None, changes)
    found = []
    for seed in (0, 1):
        (source, labels), (target, truth) = domains(seed)
        torch.manual_seed(seed)
        backbone = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU())
        made = Objective(trainer, backbone, 32, 3, width=32).train()
        optimiser = torch.optim.SGD(
            made.parameters(), 0.01, momentum=0.9, weight_decay=settings.weight_decay, nesterov=True
        )
        for step in range(200):
            ours, theirs = torch.randint(1000, (2, 32))
            losses = made(source[ours], labels[ours], target[theirs], step)
            optimiser.zero_grad()
            losses.total.backward()
            optimiser.step()
        found.append(accuracies(made.classifier.eval(), (source, labels), (target, truth)))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("name", ADAPTING)
def test_a_trainer_beats_source_only_and_its_own_control(name):
    alone, (on_source, on_target) = reached("source-only"), reached(name)
    assert alone[0] > 0.99
    assert alone[1] < 0.85
    assert on_source > 0.97
    assert on_target > max(0.95, alone[1] + 0.1)
    assert on_target > reached(name, trade_off=0.0)[1] + 0.01


@pytest.mark.parametrize(
    ("options", "recipe"),
    [
        ({}, "default"),
        ({"recipe": "default", "frozen": True}, "default"),
        ({"frozen": True}, "frozen"),
        ({"backbone": "digits-cnn"}, "digits"),
        ({"backbone": "digits-cnn", "frozen": True}, "frozen"),
        ({"backbone": "resnet50"}, "default"),
        ({"recipe": "visda"}, "visda"),
    ],
)
def test_a_recipe_goes_with_the_mode_and_the_backbone(options, recipe):
    chosen = choose("mdd", **options)
    assert chosen.recipe == recipe
    prepared = MDD.prepared(None if recipe == "default" else recipe)
    assert (chosen.trainer, chosen.settings) == prepared


@pytest.mark.parametrize(
    ("name", "recipe", "transform"),
    [
        ("cdan", None, "default"),
        ("cdan", "office-home", "default"),
        ("cdan", "visda", "center-crop"),
        ("cdan", "digits", "none"),
        ("safn", "office-home", "random-crop"),
    ],
)
def test_transforms_are_the_reference_librarys(name, recipe, transform):
    assert choose(name, recipe=recipe).transform == transform
    assert choose(name, recipe=recipe, transform="none").transform == "none"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: CDAN(entropy=1), InputError, "entropy must be true or false; got 1"),
        (lambda: CDAN(hidden=0), InputError, "hidden must be a whole number of at least 1"),
        (lambda: MDD(margin=-4), InputError, "margin must be a number of at least 0"),
        (lambda: DAN(trade_off=float("nan")), InputError, "trade_off must be a number"),
        (lambda: JAN(sigma=0), InputError, "sigma must be a number above 0; got 0"),
        (lambda: Settings(batch_size=1), InputError, "batch_size must be .* at least 2"),
        (lambda: Settings(bottleneck=-1), InputError, "bottleneck must be .* at least 0"),
        (lambda: Settings(momentum=1.0), InputError, "momentum must be below 1"),
        (lambda: choose("dan", changes={"entropy": True}), InputError, "no option 'entropy'"),
        (
            lambda: choose("dan", transform="none", frozen=True),
            InputError,
            "a frozen backbone sees none",
        ),
        (lambda: choose("dann"), UnknownName, "no trainer is called 'dann'"),
        (lambda: choose("dan", recipe="visdas"), UnknownName, "Did you mean 'visda'"),
        (lambda: choose("dan", transform="mirror"), UnknownName, "transform must be"),
    ],
)
def test_bad_input_raises(call, error, message):
    with pytest.raises(error, match=message):
        call()
