"""Numbers after calibration come from fits that did not see their rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ladder_data import make_bank

import shiftcal as sc
from shiftcal import maps
from shiftcal.cards import Judging, make_card
from shiftcal.cards._crossfit import folds_of_rows, held_out

FAST = Judging(n_resamples=0, folds=3)


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=80),
    st.integers(2, 6),
    st.integers(0, 5),
)
def test_folds_are_even_over_all_rows_and_in_every_class(labels, folds, seed):
    labels = np.array(labels)
    found = folds_of_rows(labels, folds, seed=seed)
    sizes = np.bincount(found, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for own in np.unique(labels):
        of_class = np.bincount(found[labels == own], minlength=folds)
        assert of_class.max() - of_class.min() <= 1


def test_the_seed_decides_the_folds():
    labels = np.arange(60) % 3
    first, same, other = (folds_of_rows(labels, 4, seed=s) for s in (1, 1, 2))
    assert (first == same).all()
    assert (first != other).any()


@pytest.mark.parametrize("name", ["sac", "ts", "sts", "ace", "vanilla"])
def test_every_row_is_calibrated_by_a_fit_on_the_other_folds(name):
    bank = make_bank(150)
    found = held_out(sc.methods.get(name)(), bank, FAST, None)
    fold_of = folds_of_rows(bank.clean.labels, 3, seed=0)
    assert (found.folds, found.missing) == (3, ("",) * 6)
    for fold in range(3):
        kept, out = fold_of != fold, fold_of == fold
        rest = sc.SurrogateBank.from_arrays(
            [s.logits[kept] for s in bank], bank.clean.labels[kept], corruption="fading"
        )
        method = sc.methods.get(name)().fit(rest)
        for s, judged in zip(bank, found.judged, strict=True):
            method.adapt(s.logits[out])
            probs = method.predict_proba(s.logits[out])
            np.testing.assert_array_equal(judged.confidence[out], probs.max(axis=1))
            told = judged.rows[out].mean(axis=0)
            own = [metric(probs, s.labels[out]) for metric in (sc.accuracy, sc.nll, sc.brier)]
            assert told == pytest.approx(own, rel=1e-12)


def test_a_map_that_learns_rows_by_heart_does_not_look_good():
    rng = np.random.default_rng(0)
    logits, labels = 3 * rng.standard_normal((200, 4)), rng.integers(0, 4, 200)
    bank = sc.SurrogateBank.from_arrays([logits], labels)
    method = sc.SAC(map=maps.get("isotonic")())
    card = make_card(method, bank, estimator=None, judging=Judging(n_resamples=0))
    fitted = method.fit(bank)
    fitted.adapt(logits)
    by_heart = sc.ece(fitted.confidence(logits), logits.argmax(axis=1) == labels)
    assert by_heart < 0.01
    assert card.on_bank[0].after["ece"].value > 3 * by_heart
    assert card.on_bank[0].after["ece"].value > 0.02


def test_a_sample_is_in_the_same_fold_in_all_sets():
    """A method fitted on copies of its target would be sure of them; none of these was."""
    bank = make_bank(100)
    seen = []

    class Watched(sc.TS):
        def _fit(self, given, source_features):
            seen.append([s.labels.copy() for s in given])
            super()._fit(given, source_features)

    held_out(Watched(), bank, FAST, None)
    assert len(seen) == 3
    for labels in seen:
        assert all((own == labels[0]).all() for own in labels)


@pytest.mark.parametrize(("n", "folds"), [(1999, 5), (2000, 2), (3, 3)])
def test_many_rows_are_halved_and_few_are_not_parted_further_than_they_go(n, folds):
    logits = np.random.default_rng(0).standard_normal((n, 3))
    bank = sc.SurrogateBank.from_arrays([logits], np.arange(n) % 3)
    assert held_out(sc.Vanilla(), bank, Judging(), None).folds == folds


def test_one_row_cannot_be_held_out():
    bank = sc.SurrogateBank.from_arrays([[[2.0, -1.0]]], [0])
    card = make_card("vanilla", bank, estimator=None)
    assert card.on_bank[0].after is None
    assert "set of one row" in card.on_bank[0].missing
    assert any(limit.code == "not-measured" for limit in card.limits)
    assert "There are no numbers after calibration" in card.to_markdown()


def test_sets_of_other_rows_are_parted_by_themselves_and_the_card_says_so():
    bank = make_bank(120)
    other = sc.SurrogateSet(bank[1].logits[:90], bank[1].labels[:90], "short", "fading", 1)
    card = make_card(
        "sac", sc.SurrogateBank([bank[0], other]), estimator=None, judging=Judging(n_resamples=0)
    )
    assert not card.calibration.same_rows
    assert [one.n for one in card.on_bank] == [120, 90]
    assert any(limit.code == "rows-unmatched" for limit in card.limits)


def test_a_method_that_needs_features_is_measured_where_there_are_some():
    bank = make_bank(150)
    rng = np.random.default_rng(0)
    clean = sc.SurrogateSet(
        bank[0].logits, bank[0].labels, "clean", severity=0, features=rng.normal(size=(150, 3))
    )
    both = sc.SurrogateBank([clean, bank[1]])
    card = make_card(
        "cpcs",
        both,
        estimator=None,
        judging=FAST,
        source_features=rng.normal(size=(150, 3)),
    )
    assert card.on_bank[0].after is not None
    assert card.on_bank[1].after is None
    assert "needs features" in card.on_bank[1].missing


def test_fits_that_warn_are_counted_and_not_shown():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 60)
    logits = 5.0 * np.eye(3)[labels] + 0.1 * rng.standard_normal((60, 3))  # always right
    bank = sc.SurrogateBank.from_arrays([logits], labels)
    with pytest.warns(sc.errors.FitWarning):  # of the card's own fit
        card = make_card("ts", bank, estimator=None, judging=FAST)
    (limit,) = (one for one in card.limits if one.code == "fold-warnings")
    assert "3 of the 3 fits" in limit.message
    assert not card.bank[0].converged
    assert any(one.code == "temperature-at-end" for one in card.limits)


def test_folds_that_cannot_be_fitted_leave_the_reason():
    bank = make_bank(60)

    class Fails(sc.TS):
        def _fit(self, given, source_features):
            if len(given.clean) < 60:
                raise sc.errors.FitError("too few rows for this.")
            super()._fit(given, source_features)

    found = held_out(Fails(), bank, FAST, None)
    assert found.judged == (None,) * 6
    assert "fold 1 of 3 could not be calibrated: too few rows for this." in found.missing[0]
