"""ATC against a search over every threshold, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.special import softmax
from scipy.stats import entropy

from shiftcal import estimates, maps

BANK = make_bank(400)
TARGET, _ = draw(300, STEPS[3], seed=77)
ATC = estimates.get("atc")


def scores_of(logits, score, temperature):
    probs = softmax(logits / temperature, axis=1)
    return probs.max(axis=1) if score == "confidence" else -entropy(probs, axis=1)


@pytest.mark.parametrize("score", ["confidence", "entropy"])
@pytest.mark.parametrize("calibrated", [True, False])
def test_no_threshold_of_all_fits_the_errors_better(score, calibrated):
    clean = BANK.clean
    temperature = 1.0
    if calibrated:
        temperature = maps.get("temperature")().fit(clean.logits, clean.labels).temperature_
    known = scores_of(clean.logits, score, temperature)
    wrong = (clean.logits.argmax(axis=1) != clean.labels).sum()
    misfits = [abs((known < t).sum() - wrong) for t in known]
    threshold = known[int(np.argmin(misfits))]
    assert min(misfits) == 0
    expected = (scores_of(TARGET, score, temperature) >= threshold).mean()
    atc = ATC(score=score, calibrated=calibrated).fit(BANK)
    found = atc.estimate(TARGET)
    # scores are rounded in another order here: a row at the threshold may change its side
    assert found.value == pytest.approx(expected, abs=1 / len(TARGET))
    assert found.details["temperature"] == pytest.approx(temperature)
    assert found.details["threshold"] == pytest.approx(threshold, rel=1e-9)


@pytest.mark.parametrize("score", ["confidence", "entropy"])
def test_the_clean_set_as_target_has_its_own_accuracy(score):
    clean = BANK.clean
    accuracy = (clean.logits.argmax(axis=1) == clean.labels).mean()
    assert ATC(score=score).fit(BANK).estimate(clean.logits).value == pytest.approx(accuracy)


def test_by_hand():
    # Six clean rows of two classes with growing confidence, two of them wrong; of four target rows
    # three are at least as sure as the third clean row.
    margins = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    logits = np.column_stack([margins, np.zeros(6)])
    labels = np.array([0, 1, 0, 0, 1, 0])
    target = np.column_stack([[2.9, 3.0, 3.1, 7.0], np.zeros(4)])
    assert ATC(calibrated=False).fit(logits, labels).estimate(target).value == 0.75
