"""ACE: two temperatures, and where between them a target gets its own."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from shiftcal import TS, load
from shiftcal.errors import FitWarning, InputError
from shiftcal.methods.simple import ACE

LOGITS, LABELS = draw(6000, 0.9, seed=1)
RIGHT = LOGITS.argmax(axis=1) == LABELS
TARGET, _ = draw(3000, STEPS[4], seed=2)


def temperature_by_search(logits, labels, weights=None):
    def loss(log_t):
        of_label = log_softmax(logits / np.exp(log_t), axis=1)[np.arange(len(labels)), labels]
        return -np.average(of_label, weights=weights)

    found = minimize_scalar(loss, bounds=(-3, 4), method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x))


def fitted(**options):
    return ACE(**options).fit(LOGITS, LABELS)


def test_the_output_is_the_papers_formula():
    ace = fitted()
    selection = ace.adapt(TARGET)
    easy = temperature_by_search(LOGITS, LABELS)
    wrong = np.flatnonzero(~RIGHT)
    drawn = np.random.default_rng(0).choice(np.flatnonzero(RIGHT), len(wrong) // 10)
    rows = np.concatenate([wrong, drawn])
    hard = temperature_by_search(LOGITS[rows], LABELS[rows])
    alpha = softmax(TARGET, axis=1).max(axis=1).mean() / softmax(LOGITS, axis=1).max(axis=1).mean()
    assert 0.5 < alpha < 0.95
    expected = softmax(alpha * TARGET / easy + (1 - alpha) * TARGET / hard, axis=1)
    # what the bounded search leaves open
    np.testing.assert_allclose(ace.predict_proba(TARGET), expected, atol=1e-6)
    assert selection.details == pytest.approx(
        {"alpha": alpha, "t_easy": easy, "t_hard": hard}, rel=1e-5
    )


def test_the_calibration_set_as_target_is_ts():
    ace, ts = fitted(), TS().fit(LOGITS, LABELS)
    selection = ace.adapt(LOGITS)
    assert selection.details["alpha"] == 1.0
    assert not selection.has("alpha-clipped")
    np.testing.assert_allclose(
        ace.predict_proba(LOGITS), ts.predict_proba(LOGITS), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_draw_agrees_with_weights_on_all_rows(ratio):
    weights = np.where(RIGHT, ratio * (~RIGHT).sum() / RIGHT.sum(), 1.0)
    expected = temperature_by_search(LOGITS, LABELS, weights)
    found = [fitted(ratio=ratio, seed=s).hard_.temperature_ for s in range(20)]
    # twenty draws of a thousand rows and more: the mean is good to about 1 %
    assert np.mean(found) == pytest.approx(expected, rel=0.04)


def test_a_more_confident_target_gets_the_clean_sets_temperature_and_a_flag():
    ace = fitted()
    selection = ace.adapt(LOGITS * 1.5)
    assert selection.has("alpha-clipped")
    assert "times that of the clean set" in str(selection.flags[0])
    assert selection.details["alpha"] == 1.0
    assert selection.temperature == pytest.approx(ace.easy_.temperature_, rel=1e-14)


def test_one_wrong_row_is_joined_by_one_right_one():
    few = np.concatenate([np.flatnonzero(RIGHT)[:40], np.flatnonzero(~RIGHT)[:1]])
    ace = ACE().fit(LOGITS[few], LABELS[few])
    two = few[[np.random.default_rng(0).choice(40), 40]]
    expected = temperature_by_search(LOGITS[two], LABELS[two])
    assert ace.hard_.temperature_ == pytest.approx(expected, rel=1e-5)
    assert not ace.adapt(TARGET).has("no-hard-set")


@pytest.mark.parametrize(("wrong", "word"), [(False, "right"), (True, "wrong")])
def test_without_right_or_wrong_rows_there_is_one_temperature_and_a_flag(wrong, word, tmp_path):
    labels = LOGITS.argmin(axis=1) if wrong else LOGITS.argmax(axis=1)
    with pytest.warns(FitWarning) as caught:
        ace = ACE().fit(LOGITS, labels)
    said = [str(w.message) for w in caught]
    assert any(f"predicted {word}, so no harder set can be drawn" in text for text in said)
    assert [w.filename for w in caught] == [__file__] * len(caught)
    selection = ace.adapt(TARGET)
    assert selection.has("no-hard-set")
    assert selection.temperature == pytest.approx(ace.easy_.temperature_)
    ace.save(tmp_path / "ace.json")
    assert load(tmp_path / "ace.json").adapt(TARGET) == selection


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_binary_problem_brings_no_warning_and_no_flag(seed):
    # With two classes most rows of the hard resample are wrong: worse than chance, as intended.
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal(2000)
    labels = (rng.random(2000) < 1 / (1 + np.exp(-3.5 * z))).astype(int)
    logits = np.column_stack([np.zeros(2000), 4 * z])
    assert 0.9 < (logits.argmax(axis=1) == labels).mean() < 0.96
    ace = ACE().fit(logits, labels)  # a warning is an error here
    selection = ace.adapt(0.5 * logits)
    assert not selection.flags
    assert selection.details["t_hard"] == 100.0


def test_a_clean_set_no_better_than_chance_is_reported_and_flagged():
    with pytest.warns(FitWarning, match="no better than chance"):
        ace = ACE().fit(
            LOGITS, np.where(np.arange(len(LOGITS)) % 20, LOGITS.argmin(axis=1), LABELS)
        )
    assert ace.adapt(TARGET).has("map-not-converged")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ratio": 0}, "ratio must be a number above 0; got 0"),
        ({"ratio": "much"}, "ratio must be a number above 0; got 'much'"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_wrong_settings_are_named(options, words):
    with pytest.raises(InputError, match=words):
        fitted(**options)
