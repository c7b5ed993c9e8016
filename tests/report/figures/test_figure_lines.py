"""Lines: what is drawn is the data, beside one another where intervals would cover each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from sample_figures import lines

from shiftcal._drawing.palette import METHODS
from shiftcal._drawing.places import beside
from shiftcal.errors import InputError
from shiftcal.report.figures import Lines, Panel, Series
from shiftcal.report.figures._axes import columns_for

METHOD_KEYS = list(METHODS)


def series(key="ts", y=(1.0, 2.0), **options):
    return Series(key=key, label=key.upper(), y=y, **options)


def panel(x=(0.0, 1.0), made=None, **options):
    return Panel(x=x, series=made or (series(),), x_label="x", **options)


def drawn(*panels, **options):
    return Lines(panels=panels, y_label="ECE (%)", **options).draw()


def test_the_lines_carry_the_values_with_gaps_where_there_are_none():
    figure = lines().draw()
    left, right = figure.axes
    ts, sac = left.lines
    assert np.array_equal(ts.get_ydata(), [1.5, np.nan, 9.0], equal_nan=True)
    assert np.array_equal(sac.get_ydata(), [1.25, 2.5, 4.0])
    assert ts.get_color() == METHODS["ts"].colour
    assert sac.get_marker() == METHODS["sac"].marker
    assert right.lines[0].get_color() == METHODS["sac"].colour


def test_the_intervals_reach_from_low_to_high_at_the_place_of_the_point():
    left = lines().draw().axes[0]
    (bars,) = (c for c in left.collections if isinstance(c, LineCollection))
    places = left.lines[0].get_xdata()
    ends = [bar for bar in bars.get_segments() if bar.size]
    assert np.array_equal(
        ends, [[[places[0], 1.0], [places[0], 2.0]], [[places[2], 8], [places[2], 11]]]
    )


def test_bands_cover_the_intervals_and_move_nothing():
    made = series(y=(1.0, 2.0), low=(0.5, 1.0), high=(1.5, 4.0))
    axes = drawn(panel(made=(made, series("sac"))), intervals="bands").axes[0]
    (band,) = (c for c in axes.collections if isinstance(c, PolyCollection))
    assert {(0.0, 0.5), (1.0, 1.0), (0.0, 1.5), (1.0, 4.0)} <= set(
        map(tuple, band.get_paths()[0].vertices)
    )
    assert all(np.array_equal(line.get_xdata(), [0.0, 1.0]) for line in axes.lines)


def test_seven_series_with_bars_stand_beside_one_another_in_order_and_near_their_x():
    made = tuple(series(key, low=(0.0, 1.0), high=(2.0, 3.0)) for key in METHOD_KEYS)
    axes = drawn(panel(made=made)).axes[0]
    places = np.array([line.get_xdata() for line in axes.lines])
    assert (np.diff(places, axis=0) > 0.03).all()
    assert (np.abs(places - [0.0, 1.0]) < 0.2).all()
    assert places.mean(axis=0) == pytest.approx([0.0, 1.0])


def test_series_without_intervals_stand_at_their_x():
    axes = drawn(panel(made=(series(), series("sac")))).axes[0]
    assert all(np.array_equal(line.get_xdata(), [0.0, 1.0]) for line in axes.lines)


def test_on_a_logarithmic_axis_series_move_by_one_ratio():
    moved = beside([10.0, 100.0, 1000.0], 0.1, log=True)
    assert np.divide(moved, [10, 100, 1000]) == pytest.approx([10**0.1] * 3)
    assert beside([10.0, 100.0], 0.0, log=True) == [10.0, 100.0]
    assert drawn(panel(x=(10.0, 100.0), log_x=True)).axes[0].get_xscale() == "log"


def test_numbers_are_joined_and_names_are_not_unless_it_is_said():
    def style(**options):
        return drawn(panel(**options)).axes[0].lines[0].get_linestyle()

    assert style() == "-"
    assert style(x=("a", "b")) == "None"
    assert style(x=("a", "b"), joined=True) == "-"
    assert style(joined=False) == "None"


def test_the_numbers_themselves_are_the_ticks():
    axes = drawn(panel(x=(100.0, 5000.0), log_x=True)).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["100", "5,000"]
    assert not axes.xaxis.get_minorticklocs().size


def test_ticks_that_would_touch_are_left_out():
    x = tuple(float(i) for i in range(1000, 1200))
    axes = drawn(panel(x=x, made=(series(y=x),))).axes[0]
    assert 5 < len(axes.get_xticks()) < 40
    assert set(axes.get_xticks()) <= set(x)


def test_a_few_numbers_that_would_touch_are_slanted_and_all_there():
    x = (100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
    figure = drawn(*[panel(x=x, made=(series(y=x),), log_x=True)] * 3)
    for axes in figure.axes:
        told = axes.get_xticklabels()
        assert [tick.get_text() for tick in told] == [
            "100",
            "200",
            "500",
            "1,000",
            "2,000",
            "5,000",
        ]
        assert {tick.get_rotation() for tick in told} == {30}


def test_on_a_logarithmic_axis_powers_of_ten_are_left_out_last():
    x = tuple(float(i) for i in range(700, 1300, 10))
    ticks = drawn(panel(x=x, made=(series(y=x),), log_x=True)).axes[0].get_xticks()
    assert 1000.0 in ticks
    assert 5 < len(ticks) < 40


@pytest.mark.parametrize(("names", "slanted"), [(("edges", "a\nb"), 0), (("w" * 90, "b"), 30)])
def test_names_too_long_for_their_place_are_slanted(names, slanted):
    axes = drawn(panel(x=names)).axes[0]
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {slanted}
    assert [label.get_text() for label in axes.get_xticklabels()] == list(names)


def test_names_in_several_lines_do_not_touch():
    names = ("ImageNet-V2 matched frequency", "ImageNet-V2 threshold", "ImageNet-V2 top images")
    names += ("ImageNet-Sketch", "Tiny-ImageNet, CIFAR-10 classes", "edges", "silhouettes")
    figure = drawn(panel(x=names, made=(series(y=tuple(range(7))),)))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_panels_share_y_and_one_legend_names_each_key_once():
    figure = lines().draw()
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] == 0
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["TS", "SAC"]
    assert left.get_ylabel() == "ECE (%)"
    assert not right.get_ylabel()
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("left", "right")


@pytest.mark.parametrize(("panels", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (7, 3)])
def test_many_panels_stand_in_rows(panels, columns):
    assert columns_for(panels) == columns
    figure = drawn(*[panel()] * panels)
    assert sum(axes.get_visible() for axes in figure.axes) == panels


def test_values_far_above_zero_and_below_it_are_not_pressed_by_it():
    assert drawn(panel(made=(series(y=(90.0, 95.0)),))).axes[0].get_ylim()[0] > 80
    assert drawn(panel(made=(series(y=(-1.0, 5.0)),))).axes[0].get_ylim()[0] < -1


def test_one_x_and_a_series_without_any_value_can_be_drawn():
    figure = drawn(panel(x=(5.0,), made=(series(y=(1.0,)), series("sac", y=(None,))), log_x=True))
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: series(low=(0.0, 1.0)), "'TS' has one end of its intervals; give low and high"),
        (lambda: series(low=(0.0,), high=(2.0, 3.0)), "y has 2, low has 1, high has 2"),
        (lambda: series(low=(0.0, None), high=(2.0, 3.0)), "interval with one end: None to 3.0"),
        (lambda: series(low=(0.0, 4.0), high=(2.0, 3.0)), "interval upside down: 4.0 to 3.0"),
        (lambda: panel(x=(0.0,)), "x has 1, y has 2"),
        (lambda: panel(x=(), made=(series(y=()),)), "at least one x and one series"),
        (lambda: panel(made=(series(), series())), r"different keys, not \['ts', 'ts'\]"),
        (lambda: panel(x=(1.0, 1.0)), "rising numbers x"),
        (lambda: panel(x=(0.0, 1.0), log_x=True), "log_x, so its x must be numbers above 0"),
        (lambda: panel(x=("a", "b"), log_x=True), "log_x, so its x must be numbers above 0"),
        (lambda: Lines(panels=(), y_label="y"), "at least one panel"),
        (lambda: lines(intervals="boxes"), "'bars' or 'bands', not 'boxes'"),
    ],
)
def test_values_that_do_not_go_together_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_key_has_one_label():
    other = replace(series(), label="Temperature")
    with pytest.raises(
        InputError, match="'ts' must have one label in all panels, not 'TS' and 'Te"
    ):
        Lines(panels=(panel(), panel(made=(other,))), y_label="y")
