"""One choice per group, shrunk: the guarantees, for every method that adapts to outputs."""

from __future__ import annotations

from itertools import permutations

import gaussian_world
import numpy as np
import pytest
from gaussian_world import bank_of, draw_domain
from ladder_data import draw, make_bank
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

import shiftcal as sc
from shiftcal.errors import InputWarning, NotFittedError
from shiftcal.grouping import GroupedCalibration
from shiftcal.scores import Scores

BANK = make_bank(800)
SETTINGS = {
    "sac": {},
    "sac by isotonic maps": {"map": "isotonic"},
    "sac by vector maps": {"map": "vector"},
    "sac by ks": {"distance": "ks"},
    "sac by atc": {"distance": "atc"},
    "rehearsal": {},
    "ace": {},
}


@pytest.fixture(scope="module", params=SETTINGS)
def method(request):
    return sc.methods.get(request.param.split()[0])(**SETTINGS[request.param]).fit(BANK)


@pytest.fixture(scope="module")
def sac():
    return sc.SAC().fit(BANK)


def mixture(*parts, seed=0):
    """Logits, labels and groups of ``(name, rows, strength)``, shuffled."""
    drawn = [draw(n, strength, seed=seed + i) for i, (_, n, strength) in enumerate(parts)]
    logits, labels = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
    groups = np.repeat([name for name, _, _ in parts], [n for _, n, _ in parts])
    order = np.random.default_rng(seed).permutation(len(groups))
    return logits[order], labels[order], groups[order]


TWO = (("north", 1500, 1.3), ("south", 1500, 0.5))
UNEVEN = (("north", 900, 1.2), ("south", 400, 0.5), ("tiny", 6, 0.9))


def test_a_target_of_one_group_is_calibrated_as_the_method_does_it(method):
    z, _, _ = mixture(*TWO)
    grouped = GroupedCalibration(method)
    chosen = grouped.adapt(z, ["all"] * len(z))
    assert chosen.everything == method.adapt(z)
    assert chosen.groups["all"].own == chosen.everything
    assert chosen.groups["all"].temperature == method.selection_.temperature
    np.testing.assert_array_equal(
        grouped.predict_proba(z, ["all"] * len(z)), method.predict_proba(z)
    )


def test_unshrunk_every_group_is_calibrated_as_the_method_does_it_alone(method):
    z, _, groups = mixture(*UNEVEN)
    grouped = GroupedCalibration(method, shrink=False)
    chosen = grouped.adapt(z, groups)
    probs = grouped.predict_proba(z, groups)
    assert {choice.weight for choice in chosen.groups.values()} == {1.0}
    for name in chosen.groups:
        method.adapt(z[groups == name])
        np.testing.assert_array_equal(
            probs[groups == name], method.predict_proba(z[groups == name])
        )


def test_groups_that_do_not_differ_get_the_choice_for_all_rows(method):
    z = np.repeat(draw(200, 0.9, seed=3)[0], 4, axis=0)  # every group has the same rows
    groups = np.arange(800) % 4
    grouped = GroupedCalibration(method)
    chosen = grouped.adapt(z, groups)
    assert chosen.between == 0
    assert chosen.borrowed == float("inf")
    assert [flag.code for flag in chosen.flags] == ["no-difference"]
    method.adapt(z)
    np.testing.assert_array_equal(grouped.predict_proba(z, groups), method.predict_proba(z))


def test_the_probabilities_are_the_geometric_mixture_of_both_choices(method):
    z, _, groups = mixture(*UNEVEN)
    grouped = GroupedCalibration(method)
    chosen = grouped.adapt(z, groups)
    probs = grouped.predict_proba(z, groups)
    rows = groups == "tiny"
    choice = chosen.groups["tiny"]
    assert 0.1 < choice.weight < 0.95
    method.adapt(z)
    whole = method.predict_proba(z[rows])
    method.adapt(z[rows])
    own = method.predict_proba(z[rows])
    logs = choice.weight * np.log(own.clip(1e-300)) + (1 - choice.weight) * np.log(
        whole.clip(1e-300)
    )
    np.testing.assert_allclose(probs[rows], softmax(logs, axis=1), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-12)


def test_the_weight_is_that_of_the_random_effects_model(sac):
    z, _, groups = mixture(*UNEVEN)
    chosen = GroupedCalibration(sac).adapt(z, groups)
    confidence = softmax(z, axis=1).max(axis=1)
    names = list(chosen.groups)
    parts = [confidence[groups == name] for name in names]
    n = np.array([len(part) for part in parts])
    within = sum(((p - p.mean()) ** 2).sum() for p in parts) / (n.sum() - len(parts))
    means = np.array([p.mean() for p in parts])

    def excess(between):
        w = 1 / (between + within / n)
        return (w * (means - (w * means).sum() / w.sum()) ** 2).sum() - (len(parts) - 1)

    between = brentq(excess, 0, 1, xtol=1e-14)
    assert chosen.within == pytest.approx(within**0.5, rel=1e-9)
    assert chosen.between == pytest.approx(between**0.5, rel=1e-6)
    assert chosen.borrowed == pytest.approx(within / between, rel=1e-6)
    weights = [choice.weight for choice in chosen.groups.values()]
    np.testing.assert_allclose(weights, n / (n + within / between), rtol=1e-6)


@pytest.fixture(scope="module")
def world():
    return gaussian_world.world()


@pytest.mark.parametrize("name", ["sac", "rehearsal"])
def test_it_beats_one_choice_on_mixtures_of_two_corruptions(name, world):
    method = sc.methods.get(name)().fit(world)
    ratios = []
    # Every pair there is, the one mild and the other severe, so that none is picked.
    for seed, (mild, severe) in enumerate(permutations(gaussian_world.CORRUPTIONS, 2), start=50):
        drawn = [
            gaussian_world.outputs(1500, mild, 1, seed=seed),
            gaussian_world.outputs(1500, severe, 5, seed=seed + 100),
        ]
        z, y = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
        groups = np.repeat(["mild", "severe"], 1500)
        right = z.argmax(axis=1) == y
        method.adapt(z)
        grouped = GroupedCalibration(method)
        grouped.adapt(z, groups)
        one, each = (
            np.mean([sc.ece(c[groups == g], right[groups == g]) for g in ("mild", "severe")])
            for c in (method.confidence(z), grouped.confidence(z, groups))
        )
        ratios.append(each / one)
        predicted = grouped.predict_proba(z, groups).argmax(axis=1)
        np.testing.assert_array_equal(predicted, z.argmax(axis=1))
    assert max(ratios) < 1
    assert np.mean(ratios) < 0.7


def test_rows_are_predicted_one_by_one_as_together(method):
    z, _, groups = mixture(*UNEVEN)
    grouped = GroupedCalibration(method)
    grouped.adapt(z, groups)
    probs = grouped.predict_proba(z, groups)
    some = np.random.default_rng(2).permutation(len(z))[:200]
    np.testing.assert_array_equal(grouped.predict_proba(z[some], groups[some]), probs[some])
    one = some[0]
    single = grouped.predict_proba(z[one : one + 1], groups[one : one + 1])
    np.testing.assert_array_equal(single[0], probs[one])
    np.testing.assert_array_equal(grouped.confidence(z, groups), probs.max(axis=1))


def test_a_group_that_was_not_there_gets_the_choice_for_all_rows_and_a_warning(method):
    z, _, groups = mixture(*UNEVEN)
    grouped = GroupedCalibration(method)
    grouped.adapt(z, groups)
    with pytest.warns(InputWarning, match=r"2 of 3 rows .* not seen \('east', 'west'\)") as caught:
        probs = grouped.predict_proba(z[:3], ["east", "west", groups[2]])
    assert caught[0].filename == __file__
    method.adapt(z)
    np.testing.assert_array_equal(probs[:2], method.predict_proba(z[:2]))
    np.testing.assert_array_equal(probs[2:], grouped.predict_proba(z[2:3], groups[2:3]))


def test_groups_of_one_row_each_get_the_choice_for_all_rows(method):
    z, _, _ = mixture(*UNEVEN)
    grouped = GroupedCalibration(method)
    chosen = grouped.adapt(z[:40], range(40))
    assert {choice.weight for choice in chosen.groups.values()} == {0.0}
    assert chosen.within is None
    assert chosen.borrowed is None
    assert [flag.code for flag in chosen.flags] == ["one-row-groups"]
    method.adapt(z[:40])
    np.testing.assert_array_equal(
        grouped.predict_proba(z[:40], range(40)), method.predict_proba(z[:40])
    )


def test_scores_and_probabilities_are_taken_as_the_method_takes_them():
    z, _, groups = mixture(*UNEVEN)
    p = softmax(z, axis=1)
    by_logits = GroupedCalibration(sc.SAC().fit(BANK))
    sets = [softmax(s.logits, axis=1) for s in BANK]
    probability_bank = sc.SurrogateBank.from_arrays(sets, BANK.clean.labels, input="probabilities")
    by_probs = GroupedCalibration(sc.SAC(input="probabilities").fit(probability_bank))
    by_logits.adapt(Scores(z, "logits"), groups)
    by_probs.adapt(p, groups)
    np.testing.assert_allclose(
        by_logits.confidence(log_softmax(z, axis=1), groups),
        by_probs.confidence(Scores(p, "probabilities"), groups),
        atol=1e-6,  # the two banks are fitted by themselves
    )


@pytest.mark.parametrize("name", ["cpcs", "transcal"])
def test_a_method_with_features_gets_those_of_the_group(name):
    source, near, far = (
        draw_domain(n, s, seed=i) for i, (n, s) in enumerate([(600, 0), (300, 0), (300, 1.5)])
    )
    train = draw_domain(600, 0.0, seed=9).features
    method = sc.methods.get(name)().fit(bank_of(source), source_features=train)
    z, f = np.concatenate([near.logits, far.logits]), np.concatenate([near.features, far.features])
    groups = ["near"] * 300 + ["far"] * 300
    chosen = GroupedCalibration(method).adapt(z, groups, f)
    assert chosen.groups["near"].own == method.adapt(near.logits, near.features)
    assert chosen.groups["far"].own == method.adapt(far.logits, far.features)
    from_scores = GroupedCalibration(method).adapt(Scores(z, "logits", features=f), groups)
    assert from_scores == chosen


def test_it_has_to_be_adapted_first(sac, tmp_path):
    grouped = GroupedCalibration(sac)
    for use in (
        lambda: grouped.predict_proba(np.ones((2, 6)), [1, 2]),
        lambda: grouped.confidence(np.ones((2, 6)), [1, 2]),
        lambda: grouped.save(tmp_path / "x.json"),
    ):
        with pytest.raises(NotFittedError, match="has seen no target yet; call adapt"):
            use()
