"""The trainers: the reference library's numbers, the losses written out, and what each achieves.

The reference numbers are those of its defaults and of its scripts for Office-Home and VisDA.
"""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch
from torch.nn import functional

from shiftcal import adaptation
from shiftcal.adaptation.feeds import ArrayFeed
from shiftcal.adaptation.inputs import choose
from shiftcal.adaptation.loop import Course, seeded, train
from shiftcal.adaptation.network import make_objective
from shiftcal.adaptation.trainer import Pass, Settings, Trainer, together
from shiftcal.adaptation.trainers import CDAN, DAN, JAN, MCC, MDD, SAFN
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


BOTTLENECKS = {
    "source-only": [],
    "dan": ["Linear", "ReLU", "Dropout"],
    "jan": ["Linear", "BatchNorm1d", "ReLU", "Dropout"],
    "cdan": ["Linear", "BatchNorm1d", "ReLU"],
    "mdd": ["Linear", "BatchNorm1d", "ReLU", "Dropout"],
    "safn": ["Linear", "ApartBatchNorm1d", "ReLU", "NormPreservingDropout"],
    "mcc": ["Linear", "BatchNorm1d", "ReLU"],
}


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


def passes(n=6, d=5, k=3, seed=0, dtype=torch.float32):
    rng = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(n, width, generator=rng, dtype=dtype) for width in (d, k, d, k)]
    for each in drawn:
        each.requires_grad_()
    return Pass(*drawn[:2]), Pass(*drawn[2:])


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
def test_it_is_a_final_frozen_dataclass_with_keyword_only_options(name):
    trainer = adaptation.get(name)
    assert issubclass(trainer, Trainer)
    assert trainer.__final__
    assert trainer.__dataclass_params__.frozen
    assert all(field.kw_only for field in dataclasses.fields(trainer))
    with pytest.raises(dataclasses.FrozenInstanceError):
        trainer().trade_off = 2.0


@EVERY
def test_every_option_of_its_own_is_documented(name):
    trainer = adaptation.get(name)
    for field in dataclasses.fields(trainer):
        where = Trainer if field.name == "trade_off" else trainer
        assert f"        {field.name}: " in where.__doc__


@EVERY
def test_no_option_is_called_as_a_setting(name):
    own = {field.name for field in dataclasses.fields(adaptation.get(name))}
    assert not own & set(Settings().to_dict())


@EVERY
def test_what_the_user_wants_otherwise_wins_over_the_recipe(name):
    made, settings = adaptation.get(name).prepared("visda", {"trade_off": 3.0, "iterations": 11})
    assert made.trade_off == 3.0
    assert settings.iterations == 11
    again, _ = adaptation.get(name).prepared("visda")
    assert again.trade_off != 3.0


@EVERY
def test_options_and_settings_survive_json(name):
    trainer = adaptation.get(name)
    made, settings = trainer.prepared("digits")
    written = json.loads(json.dumps({**made.to_dict(), **settings.to_dict()}))
    assert trainer.prepared(None, written) == (made, settings)


@EVERY
def test_a_recipe_or_an_option_that_does_not_exist_is_told_with_the_nearest(name):
    trainer = adaptation.get(name)
    with pytest.raises(UnknownName, match=r"has no recipe 'visdas'\. Did you mean 'visda'"):
        trainer.prepared("visdas")
    with pytest.raises(InputError, match="no option 'trade_of', and training no such setting"):
        trainer.prepared(None, {"trade_of": 1})


@pytest.mark.parametrize("name", ADAPTING)
def test_the_trainer_itself_keeps_nothing_between_batches(name):
    trainer = adaptation.get(name)()
    torch.manual_seed(0)
    extra = trainer.extra(5, 3)
    extra = None if extra is None else extra.eval()
    source, target = passes()
    first = trainer.transfer(source, target, extra, 5)
    trainer.transfer(*passes(seed=9, n=4), extra, 900)
    assert torch.equal(trainer.transfer(source, target, extra, 5), first)


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
    source, target = passes(dtype=torch.float64)
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


@pytest.mark.parametrize("case", CASES)
def test_predictions_steer_the_loss_but_get_no_gradient_of_it(case):
    trainer, _, _ = CASES[case]
    source, target = passes(dtype=torch.float64)
    trainer.transfer(source, target, made_extra(trainer), 5000).backward()
    assert source.logits.grad is None
    assert target.logits.grad is None
    other = Pass(source.features, source.logits.detach().roll(1, dims=1))
    first = trainer.transfer(source, target, made_extra(trainer), 5000)
    assert trainer.transfer(other, target, made_extra(trainer), 5000) != first


def kernels(x):
    """The sum of five Gaussian kernels of all pairs, by numpy."""
    distances = ((x[:, None] - x[None]) ** 2).sum(-1)
    return sum(np.exp(-distances / (2 * 2.0**k * distances.mean())) for k in range(-3, 2))


def quadratic(kernel):
    """The discrepancy of the first half from the second, of all pairs but equal ones."""
    n = len(kernel) // 2
    total = 0.0
    for i in range(2 * n):
        for j in range(2 * n):
            if (i < n) != (j < n):
                total -= kernel[i, j] / n**2
            elif i != j:
                total += kernel[i, j] / (n * (n - 1))
    return total + 2 / (n - 1)


def joined(source, target):
    f = torch.cat([source.features, target.features]).detach().numpy()
    p = torch.cat([source.logits, target.logits]).detach().softmax(1).numpy()
    return f, p


def test_dan_compares_features_and_not_predictions():
    source, target = passes(dtype=torch.float64)
    f, _ = joined(source, target)
    loss = DAN(linear=False).transfer(source, target, None, 0)
    assert loss.item() == pytest.approx(quadratic(kernels(f)), rel=1e-10)
    loss.backward()
    assert source.logits.grad is None
    assert source.features.grad.any()


@pytest.mark.parametrize("sigma", [0.92, 0.5])
def test_jan_multiplies_the_kernels_of_features_and_probabilities(sigma):
    source, target = passes(dtype=torch.float64)
    f, p = joined(source, target)
    of_p = np.exp(-((p[:, None] - p[None]) ** 2).sum(-1) / (2 * sigma**2))
    loss = JAN(sigma=sigma).transfer(source, target, None, 0)
    assert loss.item() == pytest.approx(quadratic(kernels(f) * of_p), rel=1e-10)
    loss.backward()
    assert source.logits.grad.any()
    assert source.features.grad.any()
    assert JAN(linear=True, sigma=sigma).transfer(source, target, None, 0) != loss


@pytest.mark.parametrize("delta", [1.0, 0.3])
def test_safn_wants_every_feature_vector_longer_in_both_domains(delta):
    source, target = passes(dtype=torch.float64)
    loss = SAFN(delta=delta).transfer(source, target, None, 0)
    assert loss.item() == pytest.approx(2 * delta**2, rel=1e-12)
    loss.backward()
    for each in (source, target):
        f = each.features.detach()
        expected = -2 * delta * f / f.norm(dim=1, keepdim=True) / N
        torch.testing.assert_close(each.features.grad, expected)
        assert each.logits.grad is None


def test_mcc_looks_at_the_targets_predictions_only():
    source, target = passes(dtype=torch.float64)
    trainer = MCC(temperature=1.7)
    loss = trainer.transfer(source, target, None, 0)
    loss.backward()
    assert target.logits.grad.any()
    assert all(each.grad is None for each in (*source, target.features))

    p = (target.logits.detach() / 1.7).softmax(1).numpy()
    weights = 1 + np.exp((p * np.log(p)).sum(1))
    weights *= N / weights.sum()
    confusion = p.T @ np.diag(weights) @ p
    confusion /= confusion.sum(1, keepdims=True)
    off = (confusion.sum() - np.trace(confusion)) / K
    assert loss.item() == pytest.approx(off, rel=1e-10)


NARROW = {"cdan": {"hidden": 64}, "mdd": {"width": 64}}


@pytest.mark.parametrize("name", adaptation.names())
@pytest.mark.parametrize("recipe", [None, "office-home", "visda", "frozen", "digits"])
def test_losses_stay_finite_in_the_first_fifty_steps(name, recipe):
    trainer, settings = adaptation.get(name).prepared(recipe, NARROW.get(name))
    torch.manual_seed(0)
    n, d, k = settings.batch_size, 64, 12
    made = make_objective(trainer, None, d, k, width=min(settings.bottleneck, 128)).train()
    optimiser = torch.optim.SGD(made.parameters(), lr=settings.lr, momentum=settings.momentum)
    centres = torch.randn(k, d)
    first = None
    for step in range(50):
        labels = torch.randint(k, (n,))
        source = (centres[labels] + torch.randn(n, d)).relu()
        target = (0.5 * centres[torch.randint(k, (n,))] + torch.randn(n, d) + 0.5).relu()
        losses = made(source, labels, target, step)
        assert all(torch.isfinite(each) for each in losses), (step, losses)
        first = losses.classification.item() if first is None else first
        optimiser.zero_grad()
        losses.total.backward()
        optimiser.step()
    assert all(torch.isfinite(p).all() for p in made.parameters())
    assert losses.classification.item() < first


@pytest.mark.parametrize("name", adaptation.names())
def test_huge_features_give_finite_losses_and_gradients(name):
    trainer, _ = adaptation.get(name).prepared(None, NARROW.get(name))
    torch.manual_seed(0)
    made = make_objective(trainer, None, 16, 5, width=8).train()
    source, target = 1e4 * torch.randn(8, 16), 1e4 * torch.randn(8, 16) + 1e4
    losses = made(source, torch.randint(5, (8,)), target, 700)
    losses.total.backward()
    assert torch.isfinite(losses.total)
    assert all(torch.isfinite(p.grad).all() for p in made.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", adaptation.names())
def test_identical_images_everywhere_give_finite_losses_and_gradients(name):
    trainer, _ = adaptation.get(name).prepared(None, NARROW.get(name))
    torch.manual_seed(0)
    made = make_objective(trainer, None, 16, 5, width=8).train()
    same = torch.ones(8, 16)
    losses = made(same, torch.zeros(8, dtype=torch.long), same, 700)
    losses.total.backward()
    assert torch.isfinite(losses.total)
    assert all(torch.isfinite(p.grad).all() for p in made.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", adaptation.names())
def test_mixed_precision_gives_nearly_the_same_losses(name):
    trainer, _ = adaptation.get(name).prepared(None, NARROW.get(name))
    torch.manual_seed(0)
    made = make_objective(trainer, None, 16, 5, width=8).train()
    source, target, labels = torch.randn(32, 16), torch.randn(32, 16) + 1, torch.randint(5, (32,))
    torch.manual_seed(1)
    whole = made(source, labels, target, 700)
    torch.manual_seed(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = made(source, labels, target, 700)
    half.total.backward()
    # bfloat16 has 8 bits: features and logits are off by 0.4%, and the losses by not much more.
    torch.testing.assert_close(half, whole, rtol=0.03, atol=0.03)
    assert all(p.grad.dtype == torch.float32 for p in made.parameters() if p.grad is not None)


SEEDS = (0, 1)


CHANGES = {"cdan": {"hidden": 32, "warm_up": 20}, "mdd": {"width": 32, "warm_up": 100}}


def domain(rng, shift):
    labels = rng.integers(3, size=1000)
    angle = 2 * np.pi * labels / 3
    centre = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inputs = np.hstack([1.5 * centre, 2 * centre + shift]) + 0.6 * rng.standard_normal((1000, 4))
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels)


@cache
def accuracies(name, seed, trade_off=None):
    """On source and target, after 200 steps."""
    rng = np.random.default_rng(seed)
    source, labels = domain(rng, 0.0)
    target, truth = domain(rng, np.array([2.5, 1.0]))
    changes = CHANGES.get(name, {}) | ({} if trade_off is None else {"trade_off": trade_off})
    trainer, settings = adaptation.get(name).prepared(None, changes)
    torch.manual_seed(seed)
    backbone = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU())
    made = make_objective(trainer, backbone, 32, 3, width=32).train()
    optimiser = torch.optim.SGD(
        made.parameters(), 0.01, momentum=0.9, weight_decay=settings.weight_decay, nesterov=True
    )
    for step in range(200):
        ours, theirs = torch.randint(1000, (2, 32))
        losses = made(source[ours], labels[ours], target[theirs], step)
        optimiser.zero_grad()
        losses.total.backward()
        optimiser.step()
    network = made.classifier.eval()
    with torch.no_grad():
        right = [(network(source).argmax(1) == labels), (network(target).argmax(1) == truth)]
    return [each.float().mean().item() for each in right]


def through_the_loop(name, folder):
    """On source and target, of heads on these inputs: the recipe as it is shipped."""
    rng = np.random.default_rng(0)
    source, labels = domain(rng, 0.0)
    target, truth = domain(rng, np.array([2.5, 1.0]))
    trainer, settings = adaptation.get(name).prepared("frozen", {})
    with seeded(0):
        made = make_objective(trainer, None, 4, 3, width=settings.bottleneck)
    seen = target if trainer.adapts else None
    feed = ArrayFeed(source, labels, seen, batch_size=settings.batch_size, seed=0)
    train(made, feed, settings, folder, Course(device="cpu"), identity={})
    with torch.no_grad():
        right = [
            (made.classifier(x).argmax(1) == y) for x, y in ((source, labels), (target, truth))
        ]
    return [each.float().mean().item() for each in right]


def mean_of(name, **options):
    return np.mean([accuracies(name, seed, **options) for seed in SEEDS], axis=0)


def test_the_shift_hurts_a_network_that_sees_the_source_alone():
    on_source, on_target = mean_of("source-only")
    assert on_source > 0.99
    assert on_target < 0.85


@pytest.mark.parametrize("name", [n for n in adaptation.names() if n != "source-only"])
def test_a_method_beats_source_only_and_its_own_control(name):
    on_source, on_target = mean_of(name)
    assert on_source > 0.97
    assert on_target > 0.95
    assert on_target > mean_of("source-only")[1] + 0.1
    assert on_target > mean_of(name, trade_off=0.0)[1] + 0.01


@pytest.mark.slow
def test_the_recipe_for_frozen_features_helps_in_the_loop_that_is_shipped(tmp_path):
    reached = {name: through_the_loop(name, tmp_path / name) for name in adaptation.names()}
    baseline = reached.pop("source-only")
    assert baseline[0] > 0.99
    assert baseline[1] < 0.85
    for name, (on_source, on_target) in reached.items():
        assert on_source > 0.97, name
        assert on_target > baseline[1] + 0.04, name
    best = {name for name, (_, on_target) in reached.items() if on_target > 0.95}
    assert best >= {"jan", "mcc", "mdd", "safn"}


def test_the_learning_rate_follows_the_formula():
    settings = Settings(lr=0.01, lr_gamma=0.001, lr_power=0.75)
    assert settings.lr_at(0) == 0.01
    assert settings.lr_at(1000) == pytest.approx(0.01 * 2**-0.75, rel=1e-12)
    assert settings.lr_at(30_000) == pytest.approx(0.01 * 31**-0.75, rel=1e-12)


def test_numbers_of_numpy_survive_json_too():
    settings = Settings(iterations=np.int64(5), lr=np.float32(0.5), nesterov=True)
    assert json.loads(json.dumps(settings.to_dict()))["iterations"] == 5
    assert settings.to_dict()["lr"] == 0.5


@pytest.mark.parametrize("name", adaptation.names())
def test_a_recipe_is_what_the_trainer_says(name):
    kind = adaptation.get(name)
    assert choose(name).settings == kind.settings
    assert choose(name).recipe == choose(name, recipe="default", frozen=True).recipe == "default"
    assert choose(name, frozen=True).recipe == "frozen"
    for recipe in kind.recipes:
        chosen = choose(name, recipe=recipe)
        assert (chosen.trainer, chosen.settings) == kind.prepared(recipe)
        assert chosen.name == name


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


@pytest.mark.parametrize("name", adaptation.names())
def test_a_backbone_may_have_a_recipe_of_its_own(name):
    kind = adaptation.get(name)
    chosen = choose(name, backbone="digits-cnn")
    assert (chosen.recipe, chosen.transform) == ("digits", "none")
    assert chosen.settings == kind.prepared("digits")[1]
    assert choose(name, backbone="digits-cnn", recipe="default").recipe == "default"
    assert choose(name, backbone="digits-cnn", frozen=True).recipe == "frozen"
    assert choose(name, backbone="resnet50").recipe == "default"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CDAN(entropy=1), "entropy must be true or false; got 1"),
        (lambda: CDAN(hidden=0), "hidden must be a whole number of at least 1"),
        (lambda: CDAN(reversal=-1), "reversal must be a number of at least 0"),
        (lambda: MDD(margin=-4), "margin must be a number of at least 0"),
        (lambda: MDD(warm_up=None), "warm_up must be a whole number of at least 1"),
        (lambda: DAN(linear="no"), "linear must be true or false; got 'no'"),
        (lambda: DAN(trade_off=float("nan")), "trade_off must be a number of at least 0"),
        (lambda: JAN(sigma=0), "sigma must be a number above 0; got 0"),
        (lambda: SAFN(delta=-1.0), "delta must be a number of at least 0"),
        (lambda: MCC(temperature=0.0), "temperature must be a number above 0"),
        (lambda: Settings(iterations=0), "iterations must be a whole number of at least 1"),
        (lambda: Settings(batch_size=1), "batch_size must be a whole number of at least 2"),
        (lambda: Settings(bottleneck=-1), "bottleneck must be a whole number of at least 0"),
        (lambda: Settings(lr=float("nan")), "lr must be a number above 0; got nan"),
        (lambda: Settings(lr=True), "lr must be a number above 0; got True"),
        (lambda: Settings(weight_decay=-1), "weight_decay must be a number of at least 0"),
        (lambda: Settings(momentum=1.0), "momentum must be below 1"),
        (lambda: Settings(backbone_momentum=1.5), "backbone_momentum must be below 1"),
        (lambda: Settings(nesterov="yes"), "nesterov must be true or false"),
        (lambda: Settings().changed({"iteration": 5}), "Did you mean 'iterations'"),
        (lambda: choose("dan", changes={"entropy": True}), "DAN has no option 'entropy'"),
        (lambda: choose("dan", transform="none", frozen=True), "Leave out transform, or frozen"),
        (
            lambda: together(Pass(torch.ones(3, 2), torch.ones(3, 2)), Pass(*torch.ones(2, 4, 2))),
            "same number of rows; got 3 and 4",
        ),
    ],
)
def test_bad_input_raises(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "dann"}, "no trainer is called 'dann'"),
        ({"name": "dan", "recipe": "pacs"}, "DAN has no recipe 'pacs'"),
        ({"name": "dan", "transform": "mirror"}, "transform must be"),
    ],
)
def test_unknown_names_raise(options, message):
    with pytest.raises(UnknownName, match=message):
        choose(**options)
