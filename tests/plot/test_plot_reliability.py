"""The reliability diagram shows the numbers of the metrics."""

from __future__ import annotations

import numpy as np
import pytest
from digits_bank import CLASSES, digits_target
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from scipy import special, stats

import shiftcal as sc
from shiftcal import plot
from shiftcal.charts import METHODS

RNG = np.random.default_rng(5)
CONFIDENCE = RNG.beta(5, 1.5, 900)
CORRECT = RNG.random(900) < CONFIDENCE**1.5


def drawn(*given, **options):
    axes = Figure().add_subplot()
    options.setdefault("n_resamples", 0)
    plot.reliability(*given, ax=axes, **options)
    return axes


def curve(axes, index=0):
    """Places of the markers, and the ends of the bars."""
    points, _, (bars,) = axes.containers[index].lines
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    return points.get_xdata(), points.get_ydata(), ends


def words(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("binning", ["size", "width"])
@pytest.mark.parametrize("n_bins", [1, 7, 60])
def test_markers_are_the_filled_bins_and_bars_are_the_exact_intervals(binning, n_bins):
    table = sc.bin_table(CONFIDENCE, CORRECT, n_bins=n_bins, binning=binning)
    x, y, ends = curve(drawn(CONFIDENCE, CORRECT, n_bins=n_bins, binning=binning, level=0.9))
    held = table.count > 0
    assert x.tolist() == table.confidence[held].tolist()
    assert y.tolist() == table.accuracy[held].tolist()
    for accuracy, n, (low, high) in zip(y, table.count[held], ends, strict=True):
        test = stats.binomtest(round(accuracy * n), int(n))
        theirs = test.proportion_ci(0.9, method="exact")
        assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_the_legend_tells_ece_with_the_bootstraps_interval_and_the_rows():
    made = sc.bootstrap(
        sc.ece, CONFIDENCE, CORRECT, n_resamples=60, level=0.8, seed=3, n_bins=10, binning="width"
    )
    options = {"n_resamples": 60, "level": 0.8, "seed": 3, "n_bins": 10, "binning": "width"}
    axes = drawn(CONFIDENCE, CORRECT, label="raw", **options)
    assert words(axes) == [f"raw, n = 900\nECE {made}"]


def test_by_default_up_to_fifty_thousand_rows_have_an_interval():
    axes = drawn(CONFIDENCE, CORRECT, n_resamples=None)
    made = sc.bootstrap(sc.ece, CONFIDENCE, CORRECT, n_resamples=200)
    assert words(axes) == [f"n = 900\nECE {made}"]
    many = np.tile(CONFIDENCE, 56), np.tile(CORRECT, 56)
    assert words(drawn(*many, n_resamples=None)) == [f"n = 50,400\nECE {sc.ece(*many):.4f}"]


def test_a_second_call_adds_a_curve_of_another_colour_and_no_second_diagonal():
    axes = drawn(CONFIDENCE, CORRECT, label="before")
    plot.reliability(CONFIDENCE**1.4, CORRECT, ax=axes, label="after", n_resamples=0)
    assert len(axes.containers) == 2
    assert [text.partition(",")[0] for text in words(axes)] == ["before", "after"]
    assert sum(line.get_gid() == "diagonal" for line in axes.get_lines()) == 1
    first, second = (to_hex(axes.containers[j].lines[0].get_color()) for j in (0, 1))
    assert first != second
    markers = {axes.containers[j].lines[0].get_marker() for j in (0, 1)}
    assert len(markers) == 2


def test_no_two_of_the_first_curves_have_one_colour_whatever_they_are_called():
    axes = drawn(CONFIDENCE, CORRECT, label="raw")
    for label in ("SAC", "ts", "sac", "vanilla", "mine"):
        plot.reliability(CONFIDENCE, CORRECT, ax=axes, label=label, n_resamples=0)
    assert len({to_hex(one.lines[0].get_color()) for one in axes.containers}) == 6


def test_a_method_has_its_colour_and_any_colour_can_be_asked_for():
    point = drawn(CONFIDENCE, CORRECT, label="SAC").containers[0].lines[0]
    assert to_hex(point.get_color()) == METHODS["sac"].colour.lower()
    point = drawn(CONFIDENCE, CORRECT, color="C3").containers[0].lines[0]
    assert to_rgba(point.get_color()) == to_rgba("C3")


@pytest.mark.parametrize("label", ["_hidden", "$x", "a_b^c$d$"])
def test_a_label_is_shown_as_it_is(label):
    axes = drawn(CONFIDENCE, CORRECT, label=label)
    axes.figure.canvas.draw()
    (text,) = axes.get_legend().get_texts()
    assert text.get_text().strip().startswith(label)
    assert not text.get_parse_math()


def test_scores_rows_and_confidences_are_one_picture():
    target = digits_target()
    z, y = target.logits(), target.labels
    probs = special.softmax(z, axis=1)
    given = [
        (target,),
        (sc.Scores(z, classes=CLASSES), np.array(CLASSES)[y]),
        (z, y),
        (probs, y, "probabilities"),
        (probs.max(axis=1), z.argmax(axis=1) == y),
    ]
    first = curve(drawn(target))
    for values, *rest in given:
        truth = rest[0] if rest else None
        kind = rest[1] if len(rest) > 1 else "logits"
        other = curve(drawn(values, truth, input=kind))
        for ours, theirs in zip(first, other, strict=True):
            # p_max and the softmax of scipy differ in the last digits
            assert ours == pytest.approx(theirs, abs=1e-9)


def test_a_table_is_drawn_as_it_is():
    table = sc.bin_table(CONFIDENCE, CORRECT)
    axes = drawn(table, label="seen")
    x, y, _ = curve(axes)
    assert x.tolist() == table.confidence.tolist()
    assert y.tolist() == table.accuracy.tolist()
    assert words(axes) == [f"seen, n = 900\nECE {table.ece:.4f}"]
    assert not axes.patches


def test_one_row_is_drawn_with_all_its_uncertainty():
    axes = drawn([0.7], [True], n_resamples=None)
    _, _, ends = curve(axes)
    assert ends[0] == pytest.approx([0.025, 1.0])
    assert words(axes) == ["n = 1\nECE 0.3000"]
