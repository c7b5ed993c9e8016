"""ECE by severity: the lines are the numbers, and the numbers are those of the metric."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from digits_bank import digits_bank
from matplotlib.figure import Figure
from scipy import stats

import shiftcal as sc
from shiftcal import plot

NUMBERS = {"ts": {0: 0.02, 1: [0.05, 0.08, 0.06], 2: [0.3, 0.2]}, "mine": {1: [0.01], 2: [0.04]}}


def drawn(ece, **options):
    axes = Figure().add_subplot()
    plot.ece_by_severity(ece, ax=axes, **options)
    return axes


def line(axes, label):
    """What the line of a label goes through, and the ends of its bars."""
    labels = [one.get_label() for one in axes.get_lines()]
    bars = axes.collections[labels.index(label)]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    return axes.get_lines()[labels.index(label)], ends


def test_by_default_lines_are_means_and_bars_students_intervals():
    axes = drawn(NUMBERS, level=0.5)
    points, ends = line(axes, "ts")
    values = [np.atleast_1d(v) for v in NUMBERS["ts"].values()]
    assert points.get_ydata() == pytest.approx([v.mean() for v in values])
    assert ends[0] == pytest.approx([0.02, 0.02])  # one number tells no spread
    for own, v in zip(ends[1:], values[1:], strict=True):
        theirs = stats.t.interval(0.5, len(v) - 1, v.mean(), stats.sem(v))
        assert own == pytest.approx(theirs)


def test_series_stand_side_by_side_around_their_severity():
    axes = drawn(NUMBERS)
    ts, mine = (line(axes, label)[0].get_xdata() for label in NUMBERS)
    assert np.round(ts).tolist() == [0, 1, 2]
    assert np.round(mine).tolist() == [1, 2]
    assert (ts[1:] < mine).all()
    assert axes.get_xticks().tolist() == [0, 1, 2]
    assert axes.get_ylim()[0] == 0


def test_numbers_in_order_are_those_of_the_severities():
    axes = drawn({"a": np.array([[0.1, 0.2], [0.3, 0.4]])}, severities=(2.5, 5))
    points, _ = line(axes, "a")
    assert points.get_xdata().tolist() == [2.5, 5]
    assert points.get_ydata() == pytest.approx([0.15, 0.35])
    assert line(drawn({"a": [0.1, 0.2]}), "a")[0].get_xdata().tolist() == [1, 2]


def test_errors_are_the_metrics_with_every_set_as_a_target_of_its_own():
    bank = digits_bank()
    methods = {"none": sc.Vanilla().fit(bank), "SAC": sc.SAC().fit(bank)}
    found = plot.errors_by_severity(methods, bank, n_bins=10)
    assert {label: list(numbers) for label, numbers in found.items()} == {
        "none": [0, 1, 2, 3],
        "SAC": [0, 1, 2, 3],
    }
    for label, method in methods.items():
        for severity, numbers in found[label].items():
            expected = []
            for one in bank:
                if one.severity == severity:
                    method.adapt(one.logits)
                    right = one.logits.argmax(axis=1) == one.labels
                    expected.append(sc.ece(method.confidence(one.logits), right, n_bins=10))
            assert numbers == pytest.approx(expected)
    drawn(found).figure.canvas.draw()


def test_methods_in_a_list_are_called_by_their_names_and_stay_as_they_were(adapted):
    sac = copy.copy(adapted["sac"])
    before = sac.selection_
    found = plot.errors_by_severity([sac, sc.TS().fit(digits_bank())], digits_bank())
    assert list(found) == ["sac", "ts"]
    assert sac.selection_ is before
    assert list(plot.errors_by_severity(sac, digits_bank())) == ["sac"]


def test_a_method_of_probabilities_gets_probabilities():
    probs = [np.exp(s.logits) / np.exp(s.logits).sum(axis=1, keepdims=True) for s in digits_bank()]
    labels = digits_bank().clean.labels
    bank = sc.SurrogateBank.from_arrays(
        probs[:4], labels, corruption="noise", input="probabilities"
    )
    made = plot.errors_by_severity([sc.SAC(input="probabilities").fit(bank)], bank)
    plain = sc.SurrogateBank.from_arrays(
        [s.logits for s in digits_bank()][:4], labels, corruption="noise"
    )
    other = plot.errors_by_severity([sc.SAC().fit(plain)], plain)
    for severity, numbers in other["sac"].items():
        # Probabilities that underflow to zero are raised to 1.2e-38
        assert made["sac"][severity] == pytest.approx(numbers, abs=1e-4)
