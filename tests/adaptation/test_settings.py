"""Settings: the schedule, what may be changed, and what is said of what cannot be used."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR

from shiftcal.adaptation.settings import Settings
from shiftcal.errors import InputError


def test_the_learning_rate_follows_the_formula():
    settings = Settings(lr=0.01, lr_gamma=0.001, lr_power=0.75)
    assert settings.lr_at(0) == 0.01
    assert settings.lr_at(1000) == pytest.approx(0.01 * 2**-0.75, rel=1e-12)
    assert settings.lr_at(30_000) == pytest.approx(0.01 * 31**-0.75, rel=1e-12)


def test_the_learning_rate_is_that_of_torchs_schedule_with_it_multiplied_in_once():
    settings = Settings(lr=0.004, lr_gamma=2e-4)
    weight = torch.nn.Parameter(torch.zeros(1))
    # As the reference has it: the groups' rates are 0.1 and 1, the factor holds the rate itself.
    groups = [{"params": [weight], "lr": 1.0}]
    optimiser = torch.optim.SGD(groups, lr=1.0)
    schedule = LambdaLR(optimiser, lambda t: 0.004 * (1 + 2e-4 * t) ** -0.75)
    for step in range(5):
        assert settings.lr_at(step) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-12)
        optimiser.step()
        schedule.step()


def test_without_gamma_the_learning_rate_stays():
    settings = Settings(lr=0.001, lr_gamma=0.0)
    assert {settings.lr_at(step) for step in (0, 1, 999, 10_000)} == {0.001}


def test_a_change_leaves_the_original_and_all_else_as_it_was():
    settings = Settings()
    changed = settings.changed({"lr": 0.1, "iterations": 7})
    assert (changed.lr, changed.iterations) == (0.1, 7)
    assert settings == Settings()
    assert changed.changed({"lr": 0.003, "iterations": 10_000}) == settings


def test_settings_survive_json():
    settings = Settings(backbone_momentum=0.0, nesterov=False)
    assert Settings(**json.loads(json.dumps(settings.to_dict()))) == settings


def test_numbers_of_numpy_survive_json_too():
    settings = Settings(iterations=np.int64(5), lr=np.float32(0.5), nesterov=True)
    assert json.loads(json.dumps(settings.to_dict()))["iterations"] == 5
    assert settings.to_dict()["lr"] == 0.5


def test_a_setting_that_does_not_exist_is_told_with_the_nearest():
    with pytest.raises(InputError, match=r"no setting 'iteration'\. Did you mean 'iterations'"):
        Settings().changed({"iteration": 5})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iterations": 0}, "iterations must be a whole number of at least 1; got 0"),
        ({"iterations": 10.0}, "iterations must be a whole number"),
        ({"batch_size": 1}, "batch_size must be a whole number of at least 2; got 1"),
        ({"bottleneck": -1}, "bottleneck must be a whole number of at least 0"),
        ({"lr": 0.0}, "lr must be a number above 0; got 0.0"),
        ({"lr": float("nan")}, "lr must be a number above 0; got nan"),
        ({"lr": "fast"}, "lr must be a number above 0; got 'fast'"),
        ({"lr": True}, "lr must be a number above 0; got True"),
        ({"lr_gamma": -1e-3}, "lr_gamma must be a number of at least 0"),
        ({"lr_power": float("inf")}, "lr_power must be a number of at least 0"),
        ({"weight_decay": -1}, "weight_decay must be a number of at least 0"),
        ({"backbone_lr": None}, "backbone_lr must be a number of at least 0"),
        ({"momentum": 1.0}, "momentum must be below 1"),
        ({"backbone_momentum": -0.5}, "backbone_momentum must be a number of at least 0"),
        ({"backbone_momentum": 1.5}, "backbone_momentum must be below 1"),
        ({"nesterov": "yes"}, "nesterov must be true or false; got 'yes'"),
        ({"nesterov": 1}, "nesterov must be true or false; got 1"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        Settings().changed(change)
