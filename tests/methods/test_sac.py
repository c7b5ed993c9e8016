"""SAC and STS: what is chosen, and what is said about the choice."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.special import softmax as scipy_softmax
from scipy.stats import entropy as scipy_entropy

from shiftcal import SAC, STS, TS, SurrogateBank, load, maps
from shiftcal.errors import FitWarning

BANK = make_bank(4000)


@pytest.mark.parametrize("distance", ["mean", "ks", "wasserstein"])
def test_the_clean_set_as_target_picks_the_first_set_and_equals_ts(distance):
    sac = SAC(distance=distance).fit(BANK)
    selection = sac.adapt(BANK.clean.logits)
    assert selection.index == 0
    assert selection.severity == 0
    np.testing.assert_array_equal(
        sac.predict_proba(BANK.clean.logits),
        TS().fit(BANK).predict_proba(BANK.clean.logits),
    )


@pytest.mark.parametrize("distance", ["mean", "ks", "wasserstein"])
@pytest.mark.parametrize("j", range(len(STEPS)))
def test_a_surrogate_set_as_target_picks_itself_at_distance_zero(distance, j):
    sac = SAC(distance=distance).fit(BANK)
    selection = sac.adapt(BANK[j].logits)
    assert selection.index == j
    assert selection.severity == j
    assert selection.distances[j] == pytest.approx(0.0, abs=1e-15)
    assert selection.temperature == sac.maps_[j].temperature_


def test_the_choice_is_the_argmin_of_the_papers_formula():
    target, _ = draw(700, 0.5, seed=5)
    mu = scipy_softmax(target, axis=1).max(axis=1).mean()
    means = [scipy_softmax(s.logits, axis=1).max(axis=1).mean() for s in BANK]
    selection = SAC().fit(BANK).adapt(target)
    assert selection.index == int(np.argmin(np.abs(mu - np.array(means))))
    np.testing.assert_allclose(selection.distances, np.abs(mu - np.array(means)), rtol=1e-9)
    assert selection.mean_confidence == pytest.approx(mu, rel=1e-12)


def test_a_tie_goes_to_the_least_corrupted_set():
    z, y = draw(300, 1.0, seed=3)
    bank = SurrogateBank.from_arrays([z, z, z], y)
    assert SAC().fit(bank).adapt(z).index == 0


def test_a_bank_of_one_set_is_ts():
    one = SurrogateBank([BANK.clean])
    target, _ = draw(400, 0.3, seed=8)
    with pytest.warns(FitWarning, match="sac was fitted on one set, .* it equals TS") as caught:
        sac = SAC().fit(one)
    assert caught[0].filename == __file__
    sac.adapt(target)
    expected = TS().fit(BANK).predict_proba(target)
    np.testing.assert_array_equal(sac.predict_proba(target), expected)


def test_peek_looks_at_that_many_seeded_target_rows():
    target, _ = draw(4000, 0.5, seed=21)
    first = SAC(peek=100, seed=3).fit(BANK).adapt(target)
    again = SAC(peek=100, seed=3).fit(BANK).adapt(target)
    other = SAC(peek=100, seed=4).fit(BANK).adapt(target)
    assert first == again
    assert first.n_target == 100
    assert first.mean_confidence != other.mean_confidence


def test_a_target_beyond_the_ladder_is_flagged_outside():
    target, _ = draw(2000, 0.0, seed=31)
    selection = SAC().fit(make_bank_of_first(3)).adapt(target)
    assert selection.has("outside-range")
    assert "outside what was calibrated" in str(selection.flags[0])
    assert "OUTSIDE" in str(selection)


def make_bank_of_first(j: int) -> SurrogateBank:
    return SurrogateBank(BANK.sets[:j])


def test_a_target_just_outside_is_flagged_at_three_standard_errors_and_not_at_two():
    sac = SAC().fit(BANK)
    clean, logits = sac.ladder_[0], np.array(BANK[0].logits)
    noise = clean.sd_confidence * np.sqrt(2 / len(logits))
    raw = scipy_softmax(logits, axis=1).max(axis=1)
    for errors, outside in ((2.0, False), (4.0, True)):
        wanted = clean.mean_confidence + errors * noise
        scale = brentq(
            lambda s, m=wanted: scipy_softmax(s * logits, axis=1).max(1).mean() - m, 1, 3
        )
        assert sac.adapt(scale * logits).has("outside-range") is outside
    assert raw.mean() == pytest.approx(clean.mean_confidence)


def test_each_corruption_is_a_ladder_of_its_own():
    # fading 1, 2 then fading of another name 1, 2: confidence rises between the two ladders only
    sets = [BANK[0], BANK[1], BANK[3]]
    other = [
        type(s)(s.logits, s.labels, f"mist, severity {i}", "mist", i)
        for i, s in enumerate((BANK[1], BANK[2]), start=1)
    ]
    selection = SAC().fit(SurrogateBank([*sets, *other])).adapt(BANK.clean.logits)
    assert not selection.has("not-monotone")


@pytest.mark.parametrize("distance", ["mean", "ks", "wasserstein"])
def test_two_equal_sets_are_flagged_indistinguishable(distance):
    z, y = draw(500, 0.6, seed=51)
    again, _ = draw(500, 0.6, seed=52)
    clean, _ = draw(500, 1.0, seed=51)
    _, labels_again = draw(500, 0.6, seed=52)
    bank = SurrogateBank.from_arrays([clean, z, again], [y, y, labels_again])
    target, _ = draw(500, 0.6, seed=53)
    selection = SAC(distance=distance).fit(bank).adapt(target)
    assert selection.has("indistinguishable")


@pytest.mark.parametrize("map_name", maps.names())
def test_any_map_can_stand_in_the_place_of_temperature(map_name, tmp_path):
    small = make_bank(500)
    target = small[2].logits
    alone = maps.get(map_name)().fit(target, small[2].labels)
    sac = SAC(map=map_name).fit(small)
    selection = sac.adapt(target)
    assert (selection.temperature is None) is not alone.is_temperature
    np.testing.assert_allclose(sac.predict_proba(target), alone.predict_proba(target), atol=1e-12)
    sts = STS(map=map_name).fit(small)
    union = maps.get(map_name)().fit(*small.union())
    np.testing.assert_allclose(sts.predict_proba(target), union.predict_proba(target), atol=1e-12)
    for method in (sac, sts):
        method.save(tmp_path / "method.json")
        again = load(tmp_path / "method.json")
        np.testing.assert_array_equal(again.predict_proba(target), method.predict_proba(target))


def test_a_map_at_its_bound_is_named_with_its_set_and_flagged():
    template = maps.get("temperature")(t_range=(0.5, 3.2))
    with pytest.warns(FitWarning, match=r"set 6 of 6 \(fading, severity 5\)"):
        sac = SAC(map=template).fit(BANK)
    assert sac.adapt(BANK[5].logits).has("map-not-converged")


def test_sts_is_the_map_of_the_union():
    logits = np.concatenate([s.logits for s in BANK])
    labels = np.concatenate([s.labels for s in BANK])
    alone = maps.get("temperature")().fit(logits, labels)
    assert STS().fit(BANK).map_.temperature_ == alone.temperature_
    assert STS().fit(BANK).adapt(logits).temperature == alone.temperature_


def test_sets_of_one_mean_and_two_shapes_are_told_apart_by_wasserstein():
    rng = np.random.default_rng(0)
    labels = (rng.random(3000) < 0.75).astype(int)
    narrow = 0.75 + 0.01 * rng.standard_normal(3000)
    wide = np.where(np.arange(3000) % 2 == 0, 0.56, 0.94) + 0.005 * rng.standard_normal(3000)
    bank = SurrogateBank.from_arrays(
        [two_classes(narrow)[:, ::-1], two_classes(wide)[:, ::-1]], labels
    )
    target = two_classes(rng.permutation(wide))[:, ::-1]
    selection = SAC(distance="wasserstein").fit(bank).adapt(target)
    assert selection.index == 1
    assert not selection.has("indistinguishable")


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
