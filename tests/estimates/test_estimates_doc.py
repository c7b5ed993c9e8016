"""DoC by hand."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from shiftcal import estimates

BANK = make_bank(400)
TARGET, _ = draw(300, STEPS[3], seed=77)
DoC = estimates.get("doc")


def test_without_calibration_it_is_accuracy_and_two_means():
    clean = BANK.clean
    accuracy = (clean.logits.argmax(axis=1) == clean.labels).mean()
    here, there = (softmax(z, axis=1).max(axis=1).mean() for z in (TARGET, clean.logits))
    found = DoC(calibrated=False).fit(BANK).estimate(TARGET)
    assert found.value == pytest.approx(accuracy + here - there, rel=1e-12)


def test_with_calibration_it_is_so_after_the_temperature_of_least_nll():
    clean = BANK.clean
    rows = np.arange(len(clean))

    def nll(log_t):
        return -log_softmax(clean.logits / np.exp(log_t), axis=1)[rows, clean.labels].mean()

    temperature = np.exp(minimize_scalar(nll, bounds=(-3, 3), method="bounded").x)
    accuracy = (clean.logits.argmax(axis=1) == clean.labels).mean()
    here, there = (
        softmax(z / temperature, axis=1).max(axis=1).mean() for z in (TARGET, clean.logits)
    )
    found = DoC().fit(BANK).estimate(TARGET)
    # scipy's bounded search ends within 1e-5
    assert found.value == pytest.approx(accuracy + here - there, abs=1e-5)
    assert found.details["temperature"] == pytest.approx(temperature, rel=1e-4)


def test_a_change_that_leads_out_of_zero_to_one_is_cut():
    flat = np.zeros((50, 6))
    flat[:, 0] = 1e-3
    logits, labels = draw(400, 1.3, seed=1)
    doc = DoC(calibrated=False).fit(logits / 100, labels)
    assert doc.estimate(logits).value == 1
    under = DoC(calibrated=False).fit(logits, 5 - labels)
    assert under.estimate(flat).value == 0
