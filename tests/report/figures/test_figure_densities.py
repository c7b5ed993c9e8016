"""Densities of p_max: no mass lost at the ends, and drawn as they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sample_figures import densities
from scipy import stats

from shiftcal._drawing.palette import BLUE, CHOSEN, ORANGE
from shiftcal.errors import InputError
from shiftcal.report.figures import density
from shiftcal.report.figures._kernel_density import stretched_grid

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


def test_stretched_it_is_scipys_estimate_of_the_digits_mirrored_at_zero():
    p_max = 1 - np.random.default_rng(3).beta(0.3, 2.0, 500).clip(1e-15)
    digits, x = -np.log10(1 - p_max), np.linspace(0, 6, 400)
    width = digits.std(ddof=1) * stats.gaussian_kde(digits).scotts_factor() / 2
    mirrored = np.concatenate([digits, -digits])
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    # 1e-6: a grid of p_max near 1 holds its distance from 1 to ten digits
    assert density(p_max, 1 - 10**-x, stretched=True) == pytest.approx(2 * theirs(x), rel=1e-6)


def test_stretched_it_integrates_to_the_share_within_the_grid():
    p_max = np.concatenate([np.full(300, 0.9), np.full(100, 1.0)])
    grid = stretched_grid(601)
    made = density(p_max, grid, stretched=True)
    assert grid[0] == 0
    assert grid[-1] == pytest.approx(1 - 1e-6, abs=1e-15)
    # Both peaks are wide: they spread over 15 digits.
    assert np.trapezoid(made, -np.log10(1 - grid)) == pytest.approx(0.75, abs=0.01)


def test_stretched_a_network_that_is_always_sure_has_a_density():
    made = density(np.array([1.0, 1.0]), stretched_grid(11), stretched=True)
    assert np.isfinite(made).all()
    assert made.max() < 1e-6


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


def stretched():
    """Half of the target beyond the axis, and a quarter or none of the surrogates."""
    first, second = densities().surrogates
    flat = tuple([1 / 6] * 7)
    return replace(
        densities(),
        grid=tuple(stretched_grid(7).tolist()),
        target=tuple(y / 2 for y in flat),
        target_mean=0.99,
        surrogates=(
            replace(first, density=tuple(0.75 * y for y in flat), mean=0.9),
            replace(second, density=flat),
        ),
        stretched=True,
    )


def test_on_a_stretched_axis_values_and_means_stand_at_their_digits():
    axes = stretched().draw().axes[0]
    theirs, their_mean, ours, our_mean = axes.lines
    assert theirs.get_xdata() == pytest.approx(np.arange(7.0), abs=1e-9)
    assert ours.get_ydata() == pytest.approx([1 / 12] * 7)
    assert list(their_mean.get_xdata()) == pytest.approx([1.0, 1.0])
    assert list(our_mean.get_xdata()) == pytest.approx([2.0, 2.0])
    assert axes.get_xlim() == (0, 6)
    told = {
        tick.get_text(): at
        for tick, at in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
    }
    assert told["0.5"] == pytest.approx(np.log10(2))
    assert told["0.999"] == pytest.approx(3)


def test_the_small_print_explains_the_axes_and_what_lies_beyond():
    target, others = stretched().beyond()
    assert target == pytest.approx(0.5)
    assert others == pytest.approx((0.25, 0.0), abs=1e-9)
    (note,) = replace(stretched(), note="A note.").draw().texts
    said = " ".join(note.get_text().split())
    assert said.startswith("A note. Axis: equal distances are equal factors of 1 - p_max;")
    assert "50 % of the target and 0 to 25 % of the surrogate sets" in said
    (plain,) = densities().draw().texts
    assert plain.get_text() == "Densities: per unit of p_max."


def test_ticks_of_a_stretched_axis_do_not_touch():
    figure = replace(stretched(), surrogates=stretched().surrogates * 3).draw()
    figure.draw_without_rendering()
    assert len(figure.axes) == 12
    for axes in figure.axes[:3]:
        extents = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert all(a.x1 < b.x0 for a, b in pairwise(extents))


def test_densities_have_a_scale():
    for figure in (densities(), stretched()):
        assert len(figure.draw().axes[0].get_yticks()) > 1


def test_the_bars_have_other_colours_than_the_curves():
    for axes in densities().draw().axes[2:]:
        colours = [to_hex(bar.get_facecolor()).upper() for bar in axes.patches]
        assert len(set(colours)) == 2
        assert not {BLUE, ORANGE} & set(colours)


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
