"""The surrogate accuracy curve against scikit-learn's isotonic regression."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.special import softmax
from sklearn.isotonic import IsotonicRegression

from shiftcal import SurrogateBank, SurrogateSet, estimates

SurrogateCurve = estimates.get("surrogate-curve")


def tangled_bank():
    """Three corruptions that have other accuracies at the same confidence, and sets of any size."""
    sets = [SurrogateSet(*draw(500, 1.3, seed=1), "clean", severity=0)]
    for c, scale in enumerate((0.6, 1.0, 1.7)):
        for severity, strength in enumerate((1.0, 0.7, 0.4), start=1):
            n = 150 + 40 * severity + 90 * c
            logits, labels = draw(n, strength, seed=10 * c + severity)
            name = f"{c}-{severity}"
            sets.append(
                SurrogateSet(logits * scale, labels, name, corruption=str(c), severity=severity)
            )
    return SurrogateBank(sets)


def mean_p_max(logits):
    return softmax(logits, axis=1).max(axis=1).mean()


def test_it_is_isotonic_regression_over_the_sets():
    bank = tangled_bank()
    mu = [mean_p_max(s.logits) for s in bank]
    accuracy = [(s.logits.argmax(axis=1) == s.labels).mean() for s in bank]
    oracle = IsotonicRegression(out_of_bounds="clip").fit(
        mu, accuracy, sample_weight=[len(s) for s in bank]
    )
    assert (np.diff(np.array(accuracy)[np.argsort(mu)]) < 0).any()  # so that it has work to do
    curve = SurrogateCurve().fit(bank)
    for scale in (0.05, 0.3, 0.5, 0.8, 1.0, 1.5, 4.0):
        target = draw(300, 0.8, seed=3)[0] * scale
        expected = oracle.predict([mean_p_max(target)])[0]
        assert curve.estimate(target).value == pytest.approx(expected, abs=1e-9)


def test_sets_of_one_confidence_share_their_accuracy():
    logits, labels = draw(400, 1.0, seed=2)
    wrong = (labels + 1) % 6
    bank = SurrogateBank.from_arrays([logits, logits], [labels, wrong])
    right = (logits.argmax(axis=1) == labels).mean()
    also = (logits.argmax(axis=1) == wrong).mean()
    curve = SurrogateCurve().fit(bank)
    assert curve.estimate(logits).value == pytest.approx((right + also) / 2)


def test_the_target_that_is_a_set_of_a_ladder_has_its_accuracy():
    bank = make_bank(800)
    curve = SurrogateCurve().fit(bank)
    for s in bank:
        found = curve.estimate(s.logits)
        assert found.value == pytest.approx((s.logits.argmax(axis=1) == s.labels).mean())
        assert not found.has("outside-range")


def test_beyond_the_ends_it_is_clamped_and_flagged():
    bank = make_bank(800)
    summaries = bank.summaries()
    curve = SurrogateCurve().fit(bank)
    target, _ = draw(400, STEPS[2], seed=9)
    for scale, end, word in ((0.1, summaries[-1], "below"), (20.0, summaries[0], "above")):
        found = curve.estimate(target * scale)
        assert found.value == pytest.approx(end.accuracy)
        (flag,) = found.flags
        assert flag.code == "outside-range"
        assert f"lies {word} that of every surrogate set" in flag.message
        assert end.name in flag.message
