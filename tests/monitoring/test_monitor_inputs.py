"""What a monitor refuses, and how it says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from monitored import bank, monitor, rows

from shiftcal import CPCS, SAC, TS, PseudoCal, SurrogateBank, TransCal, estimates
from shiftcal.errors import FitWarning, InputError, InputWarning, UnknownName
from shiftcal.monitoring import Exponential, Monitor, Sliding
from shiftcal.scores import Scores

GOOD = rows(300, seed=1)


def with_nan(row):
    bad = GOOD.copy()
    bad[row, 2] = np.nan
    return bad


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (with_nan(250), "logits must be finite; row 250 holds nan"),
        (np.where(GOOD > 5, np.inf, GOOD), "must be finite"),
        (GOOD * 1e40, "within"),
        (GOOD[:, :5], "must have 6 columns, one per class it was fitted with; got 5"),
        (GOOD[0], r"shape \(n, k\)"),
        (GOOD[:0], "at least one row"),
        ([], "shape"),
        (GOOD.astype(complex), "real numbers"),
        (GOOD.astype(str), "real numbers"),
        (None, "must be an array"),
        ("logits.npy", "Read a file first"),
        (np.full((50, 6), 1 / 6), 'say input="probabilities"'),
        (Scores(GOOD, classes=list("abcdef")), None),
    ],
)
def test_a_batch_that_cannot_be_used_changes_nothing(bad, words):
    watch = monitor("sac", rows=200, blocks=5)
    watch.feed(GOOD)
    before = watch.state_dict()
    if words is None:  # names where the bank has none tell nothing
        watch.feed(bad)
        return
    with pytest.raises(InputError, match=f"(?i){words}"):
        watch.feed(bad)
    assert watch.state_dict() == before


def test_classes_in_another_order_are_refused():
    named = SurrogateBank(bank().sets, classes=list("abcdef"))
    watch = Monitor(TS(), estimator=None, false_alarms=10.0).fit(named)
    assert watch.class_names_ == tuple("abcdef")
    with pytest.raises(InputError, match="column 0 is 'b' here and 'a' there"):
        watch.feed(Scores(GOOD, classes=list("bacdef")))


def test_a_few_rows_that_look_like_probabilities_are_taken_with_a_warning():
    watch = monitor("sac")
    with pytest.warns(InputWarning, match="look like probabilities"):
        watch.feed(np.full((3, 6), 1 / 6))
    assert watch.rows == 3


@pytest.mark.parametrize(
    "given",
    [
        GOOD.astype(np.float16),
        np.asfortranarray(GOOD),
        GOOD[::-1],
        GOOD.tolist(),
        np.round(GOOD).astype(np.int16),
    ],
    ids=["half", "fortran", "strided", "list", "whole"],
)
def test_numbers_come_in_any_container(given):
    watch, other = (monitor("sac", rows=200, blocks=5) for _ in range(2))
    one = watch.feed(given)
    two = other.feed(np.array(given, dtype=np.float64))
    np.testing.assert_allclose(one.confidence, two.confidence, rtol=1e-12)
    assert one.selection.index == two.selection.index


@pytest.mark.parametrize("at", [float("nan"), float("inf"), "noon", True, [1.0], 10**400])
def test_the_clock_must_be_seconds(at):
    with pytest.raises(InputError, match="at must be a finite number of seconds"):
        monitor("sac").feed(GOOD, at)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (SAC(distance="ks"), 'distance="ks" compares rows.*Take rehearsal'),
        (SAC(distance="wasserstein"), "keeps sums over rows, not the rows, and sac"),
        (SAC(distance="atc"), 'distance="mean" needs sums only'),
        (SAC(peek=100), "peek=100 draws rows"),
        (CPCS(), "cpcs cannot choose by them: it needs features"),
        (TransCal(), "transcal .* features"),
        (PseudoCal(), "pseudocal .* mixed images"),
        (SAC, "got the class SAC"),
        (3, "name of a method or a method; got 3"),
    ],
    ids=str,
)
def test_a_method_that_needs_rows_is_refused(method, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        Monitor(method).fit(bank())


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        ("atc", "atc cannot estimate from them.*Take rehearsed or surrogate-curve"),
        ("doc", "doc cannot estimate"),
        ("mean-confidence", "cannot estimate"),
        (estimates.get("rehearsed")(input="probabilities"), "made for probabilities"),
        (True, "an estimator, or None; got True"),
        (7, "got 7"),
    ],
    ids=str,
)
def test_an_estimator_that_needs_rows_is_refused(estimator, words):
    with pytest.raises(InputError, match=words):
        Monitor("ts", estimator=estimator).fit(bank())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"false_alarms": 0}, "false_alarms must be a number above 0"),
        ({"false_alarms": 1e-6}, "between 0.001 and 100 per 100,000 rows; got 1e-06"),
        ({"false_alarms": 200}, "between 0.001 and 100"),
        ({"false_alarms": float("nan")}, "false_alarms"),
        ({"patience": 0}, "patience must be a whole number of at least 1"),
        ({"patience": 1.5}, "patience"),
        ({"level": 1.0}, "level must lie strictly between"),
        ({"seed": -1}, "seed"),
        ({"window": 2000}, r"window must be Sliding\(rows=...\) or Exponential"),
        ({"window": Sliding(rows=2010, blocks=20)}, "Take 2000 or 2020 rows"),
        ({"window": Sliding(rows=5, blocks=10)}, "rows must be a whole number of at least 10"),
        ({"window": Sliding(rows=2000, blocks=0)}, "blocks must be"),
        ({"window": Sliding(rows=2_000_000, blocks=10)}, "at most 1,000,000"),
        ({"window": Sliding(rows=2001, blocks=2001)}, "at most 1,000"),
        ({"window": Exponential(half_life=101)}, "half_life must be a multiple of blocks"),
        ({"window": Exponential(half_life=0)}, "half_life"),
        ({"input": "probabilities"}, "method was made for logits"),
        ({"input": "numbers"}, "method was made for logits"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        Monitor(TS(), estimator=None, **settings).fit(bank())


def test_a_bank_of_another_kind_is_refused():
    with pytest.raises(InputError, match="expects probabilities"):
        Monitor("ts", input="probabilities").fit(bank())
    with pytest.raises(InputError, match="fitted on a SurrogateBank"):
        Monitor("ts").fit(GOOD)
    with pytest.raises(UnknownName, match="input must be one of"):
        Monitor("ts", input="numbers").fit(bank())


def test_warnings_of_the_method_are_said_once_and_point_here():
    one = bank().clean
    flat = SurrogateBank.from_arrays([one.logits, one.logits * 3], one.labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Monitor(SAC(), estimator=None, false_alarms=10.0).fit(flat)
    said = [w for w in caught if issubclass(w.category, FitWarning)]
    assert len(said) == 1
    assert "mean confidence rises" in str(said[0].message)
    assert said[0].filename == __file__
