"""Densities of p_max: no mass lost at the ends, and drawn as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sample_figures import densities
from scipy import stats

from shiftcal.errors import InputError
from shiftcal.report.figures import density
from shiftcal.report.figures._style import BLUE, CHOSEN, ORANGE

GRID = np.linspace(0, 1, 2001)


@pytest.mark.parametrize("shape", [(9.0, 0.7), (2.0, 1.2), (0.5, 0.5)])
def test_it_is_scipys_estimate_of_the_data_with_both_mirror_images(shape):
    p_max = np.random.default_rng(3).beta(*shape, 500)
    mirrored = np.concatenate([p_max, -p_max, 2 - p_max])
    width = p_max.std(ddof=1) * stats.gaussian_kde(p_max).scotts_factor()
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    assert density(p_max, GRID) == pytest.approx(3 * theirs(GRID), rel=1e-9)


@pytest.mark.parametrize("n", [2, 10, 3000])
def test_it_integrates_to_one_even_if_all_is_near_one(n):
    p_max = 1 - np.random.default_rng(4).exponential(0.02, n).clip(0, 1)
    # The trapezoidal rule on a grid finer than the kernel.
    assert np.trapezoid(density(p_max, GRID), GRID) == pytest.approx(1, abs=1e-3)


def test_without_folding_back_mass_would_be_lost():
    p_max = 1 - np.random.default_rng(4).exponential(0.02, 1000).clip(0, 1)
    plain = stats.gaussian_kde(p_max)(GRID)
    assert np.trapezoid(plain, GRID) < 0.95


@pytest.mark.parametrize("values", [[1.0], [0.7] * 5])
def test_values_that_do_not_spread_give_a_narrow_peak_of_mass_one(values):
    made = density(np.array(values), GRID)
    assert GRID[made.argmax()] == pytest.approx(values[0])
    assert np.trapezoid(made, GRID) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("p_max", "grid", "words"),
    [
        ([0.5, 1.5], GRID, r"p_max must lie in \[0, 1\]"),
        ([0.5, np.nan], GRID, "p_max"),
        ([], GRID, "p_max"),
        ([0.5], [-0.1, 0.5], r"a density must have rising grid within \[0, 1\]"),
    ],
)
def test_values_outside_zero_to_one_are_refused(p_max, grid, words):
    with pytest.raises(InputError, match=words):
        density(np.array(p_max), np.array(grid))


def test_the_curves_and_their_means_are_the_data():
    figure = densities().draw()
    for axes, surrogate in zip(figure.axes[:2], densities().surrogates, strict=True):
        theirs, their_mean, ours, our_mean = axes.lines
        assert tuple(theirs.get_ydata()) == surrogate.density
        assert tuple(ours.get_ydata()) == densities().target
        assert set(their_mean.get_xdata()) == {surrogate.mean}
        assert set(our_mean.get_xdata()) == {densities().target_mean}
        assert (theirs.get_color(), ours.get_color()) == (ORANGE, BLUE)
        assert tuple(ours.get_xdata()) == densities().grid


def test_the_bars_are_accuracy_and_confidence_and_ece_is_written():
    figure = densities().draw()
    for axes, surrogate in zip(figure.axes[2:], densities().surrogates, strict=True):
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == [surrogate.accuracy, surrogate.confidence]
        assert axes.get_xlabel() == f"ECE {surrogate.ece:.2f} %"


def test_only_the_chosen_set_is_highlighted_and_says_so():
    clean, chosen, *below = densities().draw().axes
    assert "chosen" in chosen.get_title()
    assert "chosen" not in clean.get_title()
    grounds = [to_hex(axes.get_facecolor()).upper() for axes in (clean, chosen, *below)]
    assert grounds == ["#FFFFFF", CHOSEN, "#FFFFFF", CHOSEN]


def test_many_sets_stand_in_rows_that_share_one_scale():
    figure = replace(
        densities(), surrogates=densities().surrogates * 4 + densities().surrogates[:1]
    )
    shown = [axes for axes in figure.draw().axes if axes.get_visible()]
    assert len(shown) == 18
    tops = {axes.get_ylim()[1] for axes in shown if axes.get_ylabel() == "density"}
    assert len(tops) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"surrogates": ()}, "at least one surrogate"),
        (
            {"grid": (0.0, 1.0)},
            "'clean' must have as many.*grid has 2, target has 3, density has 3",
        ),
        ({"target": (0.0, 1.0)}, "grid has 3, target has 2"),
        ({"grid": (0.0, 0.0, 1.0)}, r"rising grid within \[0, 1\]"),
        ({"grid": (0.0, 0.5, 2.0)}, r"rising grid within \[0, 1\]"),
    ],
)
def test_values_that_do_not_go_together_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        replace(densities(), **change)
