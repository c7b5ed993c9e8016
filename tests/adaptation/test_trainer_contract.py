"""What every trainer promises, over all that are found."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest
import torch

from shiftcal import adaptation
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Pass
from shiftcal.adaptation.settings import Settings
from shiftcal.errors import InputError, UnknownName

NAMES = adaptation.names()
ADAPTING = [name for name in NAMES if adaptation.get(name).adapts]
RECIPES = ["digits", "frozen", "office-home", "visda"]
EVERY = pytest.mark.parametrize("name", NAMES)


def passes(n=6, d=5, k=3, seed=0, dtype=torch.float32):
    rng = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(n, width, generator=rng, dtype=dtype) for width in (d, k, d, k)]
    for each in drawn:
        each.requires_grad_()
    return Pass(*drawn[:2]), Pass(*drawn[2:])


def test_there_are_the_papers_six_and_the_baseline():
    assert NAMES == ["cdan", "dan", "jan", "mcc", "mdd", "safn", "source-only"]


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


def test_labels_are_different():
    labels = [adaptation.get(name).label for name in NAMES]
    assert len(set(labels)) == len(labels)


@EVERY
def test_no_option_is_called_as_a_setting(name):
    own = {field.name for field in dataclasses.fields(adaptation.get(name))}
    assert not own & set(Settings().to_dict())


@EVERY
def test_recipes_are_the_same_four_and_say_only_what_there_is(name):
    trainer = adaptation.get(name)
    assert sorted(trainer.recipes) == RECIPES
    for recipe, changes in trainer.recipes.items():
        made, settings = trainer.prepared(recipe)
        found = {**made.to_dict(), **settings.to_dict()}
        assert {key: found[key] for key in changes} == changes


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


@EVERY
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "much", True])
def test_a_trade_off_that_cannot_be_used_is_refused(name, value):
    with pytest.raises(InputError, match="trade_off must be a number of at least 0"):
        adaptation.get(name)(trade_off=value)


@EVERY
def test_bottleneck_and_head_have_the_widths_asked_for(name):
    trainer = adaptation.get(name)()
    features = trainer.bottleneck(9, 5)(torch.randn(4, 9))
    assert features.shape == (4, 5)
    assert (features >= 0).all()
    assert trainer.head(5, 3)(features).shape == (4, 3)


@pytest.mark.parametrize("name", ADAPTING)
def test_the_transfer_loss_is_a_finite_scalar_with_gradients(name):
    trainer = adaptation.get(name)()
    source, target = passes()
    torch.manual_seed(0)
    loss = trainer.transfer(source, target, trainer.extra(5, 3), 500)
    assert loss.shape == ()
    assert torch.isfinite(loss)
    loss.backward()
    given = [each.grad for each in (*source, *target) if each.grad is not None]
    assert given
    assert all(torch.isfinite(grad).all() for grad in given)
    assert any(grad.any() for grad in given)


@pytest.mark.parametrize("name", ADAPTING)
def test_the_transfer_loss_leaves_its_inputs_as_they_were(name):
    trainer = adaptation.get(name)()
    source, target = passes()
    before = [each.detach().clone() for each in (*source, *target)]
    trainer.transfer(source, target, trainer.extra(5, 3), 3)
    assert all(torch.equal(a, b) for a, b in zip(before, (*source, *target), strict=True))


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
