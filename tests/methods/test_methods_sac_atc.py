"""SAC by estimated accuracy: the estimate, the choice, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import draw, make_bank
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy

from shiftcal import SAC, TS, SurrogateBank, load
from shiftcal.errors import FitWarning, InputError
from shiftcal.scoring.statistics import ScoreStatistics

BANK = make_bank(4000)
ATC = ["atc", "atc-entropy"]


def score(logits, distance):
    probs = softmax(logits, axis=1)
    return probs.max(axis=1) if distance == "atc" else -scipy_entropy(probs, axis=1)


def estimate_by_counting(clean, target, distance):
    """Share of the target not below the threshold, by sorting and counting."""
    n_wrong = sum(clean.logits.argmax(axis=1) != clean.labels)
    ranked = sorted(score(clean.logits, distance).tolist())
    threshold = ranked[n_wrong] if n_wrong else -np.inf
    return sum(s >= threshold for s in score(target, distance).tolist()) / len(target)


@pytest.mark.parametrize("distance", ATC)
@pytest.mark.parametrize("strength", [1.2, 0.8, 0.4])
def test_the_choice_is_that_of_counting(distance, strength):
    target, _ = draw(1300, strength, seed=5)
    sac = SAC(distance=distance).fit(BANK)
    selection = sac.adapt(target)
    estimated = estimate_by_counting(BANK.clean, target, distance)
    accuracies = [(s.logits.argmax(axis=1) == s.labels).mean() for s in BANK]
    distances = [abs(estimated - a) for a in accuracies]
    assert selection.details == {"estimated_accuracy": pytest.approx(estimated, abs=1e-12)}
    np.testing.assert_allclose(selection.distances, distances, atol=1e-12)
    assert selection.index == int(np.argmin(distances))
    assert selection.temperature == sac.maps_[selection.index].temperature_
    assert selection.distance == distance


@pytest.mark.parametrize("distance", ATC)
def test_the_clean_set_has_its_own_accuracy_exactly_and_gets_ts(distance):
    sac = SAC(distance=distance).fit(BANK)
    selection = sac.adapt(BANK.clean.logits)
    assert selection.details["estimated_accuracy"] == BANK.clean.summary().accuracy
    assert selection.index == 0
    assert selection.distances[0] == 0
    np.testing.assert_array_equal(
        sac.predict_proba(BANK.clean.logits), TS().fit(BANK).predict_proba(BANK.clean.logits)
    )


@pytest.mark.filterwarnings("ignore:.* was fitted on one set")
@pytest.mark.parametrize("distance", ATC)
def test_a_clean_set_without_mistakes_finds_everything_right(distance, tmp_path):
    z, _ = draw(300, 1.0, seed=4)
    with pytest.warns(FitWarning, match="error-free"):
        sac = SAC(distance=distance).fit(z, z.argmax(axis=1))
    assert sac.threshold_ == -np.inf
    selection = sac.adapt(0.1 * z)
    assert selection.details["estimated_accuracy"] == 1.0
    sac.save(tmp_path / "sac.json")
    assert load(tmp_path / "sac.json").adapt(0.1 * z) == selection


@pytest.mark.parametrize("distance", ATC)
def test_statistics_are_refused(distance):
    sac = SAC(distance=distance).fit(BANK)
    statistics = ScoreStatistics.of_rows(BANK[1].logits)
    with pytest.raises(InputError, match=f'fitted with distance="{distance}".*adapt to the rows'):
        sac.adapt_statistics(statistics)


def two_classes(confidences):
    """Logits of two classes, the first the predicted one, of these confidences."""
    c = np.asarray(confidences)
    return np.column_stack([np.log(c / (1 - c)), np.zeros(len(c))])


def ladder_of_accuracies(accuracies, n=1000):
    """Sets with one spread of confidences; the accuracies are exact."""
    z = two_classes(np.linspace(0.55, 0.95, n))
    labels = [(np.arange(n) < round((1 - a) * n)).astype(int) for a in accuracies]
    return SurrogateBank.from_arrays([z] * len(accuracies), labels)


def target_of(estimated, bank, n):
    """A target of which this share lies at or above the threshold of the bank's clean set."""
    threshold = SAC(distance="atc").fit(bank).threshold_
    high = round(estimated * n)
    return two_classes([threshold + 0.01] * high + [threshold - 0.01] * (n - high))


@pytest.mark.parametrize(("errors", "doubt"), [(1.9, True), (2.1, False)])
def test_doubt_ends_two_standard_errors_from_the_middle(errors, doubt):
    n, n_target = 1000, 400
    accuracies = (0.8, 0.6)
    bank = ladder_of_accuracies(accuracies, n)
    of_sets = sum(a * (1 - a) / n for a in accuracies)
    # of the three shares 0.6 varies most: the estimate lies farther from a half
    noise = np.sqrt(0.24 / n_target + of_sets / 4)
    estimated = 0.7 + errors * noise
    rows = np.ceil(estimated * n_target) if not doubt else np.floor(estimated * n_target)
    selection = SAC(distance="atc").fit(bank).adapt(target_of(rows / n_target, bank, n_target))
    assert selection.index == 0
    assert selection.has("indistinguishable") is doubt
