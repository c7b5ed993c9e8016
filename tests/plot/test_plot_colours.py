"""Colours stay those of the palette on white, and can be seen on black."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from shiftcal._drawing.palette import METHODS
from shiftcal.plot._colours import background, categories, luminance, ramp, series_looks, visible


def axes_on(colour, figure="white"):
    axes = Figure(facecolor=figure).add_subplot()
    axes.set_facecolor(colour)
    return axes


def contrast(first, second):
    light, dark = sorted((luminance(to_rgb(first)), luminance(to_rgb(second))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(
    ("pair", "ratio"), [(("white", "black"), 21.0), (("#777777", "white"), 4.48)]
)
def test_contrast_is_that_of_the_guidelines(pair, ratio):
    assert contrast(*pair) == pytest.approx(ratio, abs=0.01)  # WCAG's own examples


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_its_colour_on_white_and_stands_out_on_black(name):
    colour = METHODS[name].colour
    assert visible(colour, axes_on("white")) == colour.lower()
    for dark in ("black", "#111111", "#333333"):
        assert contrast(visible(colour, axes_on(dark)), dark) >= 3


@pytest.mark.parametrize("behind", ["white", "black"])
def test_sets_in_order_stand_out_more_and_more(behind):
    colours = ramp(6, axes_on(behind))
    assert len(set(colours)) == 6
    seen = [contrast(colour, behind) for colour in colours]
    assert seen == sorted(seen)
    assert len(ramp(1, axes_on(behind))) == 1
    assert ramp(0, axes_on(behind)) == []


def test_names_without_an_order_have_colours_of_their_own():
    assert len(set(categories(list("abcdef"), axes_on("white")))) == 6


def test_many_series_differ_in_colour_or_marker_or_dashes():
    looks = series_looks(axes_on("white"), [f"mine {j}" for j in range(20)])
    assert len(set(looks.values())) == 20


def test_what_is_behind_is_seen_through_what_is_clear():
    assert background(axes_on("none", figure="#222222")) == pytest.approx(to_rgb("#222222"))
    hidden = axes_on("red", figure="black")
    hidden.patch.set_visible(False)
    assert background(hidden) == to_rgb("black")
    part = Figure(facecolor="black").subfigures(1, 2)[1].add_subplot(facecolor="none")
    assert background(part) == to_rgb("black")


@pytest.mark.parametrize(("style", "expected"), [("default", 1.0), ("dark_background", 0.0)])
def test_where_nothing_is_painted_it_is_what_the_words_are_read_on(style, expected):
    with plt.style.context(style):
        assert background(axes_on("none", figure="none")) == (expected,) * 3


def test_a_grey_background_is_no_endless_search():
    for level in np.linspace(0, 1, 21):
        behind = (level, level, level)
        assert visible("black", axes_on(behind)).startswith("#")
