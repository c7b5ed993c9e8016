"""Boxes: their numbers agree with numpy, scipy and matplotlib, and are what is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.cbook import boxplot_stats
from matplotlib.colors import to_hex
from sample_figures import boxes
from scipy import stats

from shiftcal._drawing.palette import METHODS
from shiftcal.errors import InputError
from shiftcal.report.figures import Boxes, BoxSeries
from shiftcal.report.figures.boxes import box_numbers


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 15, 100])
@pytest.mark.parametrize("seed", range(5))
def test_the_numbers_of_a_box_are_those_of_others(n, seed):
    values = np.random.default_rng(seed).standard_t(2, n)
    made = box_numbers(tuple(values.tolist()))
    assert made.quartiles == pytest.approx(tuple(np.percentile(values, [25, 50, 75])))
    assert made.quartiles[2] - made.quartiles[0] == pytest.approx(stats.iqr(values))
    assert made.mean == pytest.approx(values.mean())
    theirs = boxplot_stats(values, whis=1.5)[0]
    assert made.whiskers == pytest.approx((theirs["whislo"], theirs["whishi"]))
    assert made.beyond == pytest.approx(tuple(sorted(theirs["fliers"])))


def test_by_hand():
    made = box_numbers((3.0, 1.0, 50.0, 2.0, 4.0))
    assert made.quartiles == (2.0, 3.0, 4.0)
    assert made.whiskers == (1.0, 4.0)
    assert made.beyond == (50.0,)
    assert made.mean == 12.0


def test_a_group_without_values_has_no_box():
    ts, own = boxes().numbers()
    assert ts[1] is not None
    assert own[0].quartiles == (5.0, 5.0, 5.0)
    assert own[1] is None


def test_what_is_drawn_is_the_data():
    figure = boxes().draw()
    (axes,) = figure.axes
    level = [
        line
        for line in axes.lines
        if len(set(line.get_ydata())) == 1 and len(line.get_ydata()) == 2
    ]
    medians = [line.get_ydata()[0] for line in level if line.get_linewidth() == 2.0]
    assert medians == [3.0, 7.0, 5.0]
    means = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert means == [12.0, 7.0, 5.0]
    ends = [sorted({y for _, y in patch.get_path().vertices}) for patch in axes.patches]
    assert ends[0][-1] == 4.0
    assert 2.0 in ends[0]
    beyond = [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "o"]
    assert beyond == [[50.0], [], []]
    assert [to_hex(patch.get_edgecolor()).upper() for patch in axes.patches][:2] == [
        METHODS["ts"].colour
    ] * 2


def test_groups_are_named_and_the_legend_names_the_series():
    figure = boxes().draw()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["TS", "my own"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("severity", "ECE (%)")


def test_the_small_print_says_what_the_parts_are_after_the_note():
    (plain,) = boxes().draw().texts
    assert plain.get_text().startswith("Boxes: quartiles; whiskers: values within 1.5 times")
    (noted,) = replace(boxes(), note="One value per corruption.").draw().texts
    assert noted.get_text().startswith("One value per corruption. Boxes: quartiles;")
    assert "diamonds: means." in " ".join(noted.get_text().split())


def test_a_note_that_tells_of_whiskers_stands_alone():
    (noted,) = replace(boxes(), note="The whiskers are the extremes.").draw().texts
    assert noted.get_text() == "The whiskers are the extremes."


def test_seven_boxes_of_a_group_do_not_touch_and_stay_in_their_group():
    made = tuple(BoxSeries(key=key, label=key, values=((1.0, 2.0, 4.0),)) for key in METHODS)
    (axes,) = Boxes(groups=("0",), series=made, x_label="x", y_label="y").draw().axes
    sides = [patch.get_path().vertices[:, 0] for patch in axes.patches]
    lefts, rights = [side.min() for side in sides], [side.max() for side in sides]
    assert all(right < left for right, left in zip(rights, lefts[1:], strict=False))
    assert -0.5 < lefts[0] < rights[-1] < 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": ()}, "at least one group and one series"),
        ({"series": ()}, "at least one group and one series"),
        ({"groups": ("0", "1", "2")}, "'TS' must have as many.*groups has 3, values has 2"),
        ({"series": boxes().series[:1] * 2}, r"different keys, not \['ts', 'ts'\]"),
    ],
)
def test_values_that_do_not_go_together_are_refused(change, words):
    given = {"groups": ("0", "1"), "series": boxes().series, "x_label": "x", "y_label": "y"}
    with pytest.raises(InputError, match=words):
        Boxes(**{**given, **change})
