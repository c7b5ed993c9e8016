"""How long a training will take is measured without what only the first step takes."""

from __future__ import annotations

import pytest
from toy_adaptation import toy_plan

from shiftcal.studies.adapting.pace import Inputs, training_seconds

pytest.importorskip("torch")


def test_the_first_step_is_not_timed(monkeypatch):
    from shiftcal.adaptation.training.course import Trained
    from shiftcal.studies.adapting import pace

    steps, rates = [], iter([1.0, 200.0])

    def train(objective, feed, settings, folder, course, *, identity):
        steps.append(settings.iterations)
        return Trained(settings.iterations, None, 0, next(rates), settings.iterations)

    monkeypatch.setattr(pace, "train", train)
    plan = toy_plan("/data")
    inputs = Inputs((4,), None, 4, 3)
    found = training_seconds(plan, plan.trainers[1:2], inputs, scored=0, threads=1)
    assert steps == [1, pace._HEADS]
    # 30 steps of eight images of each domain, and what comes beside.
    assert found == {"dan": pytest.approx(30 * 16 / 200 + pace._BESIDE)}
