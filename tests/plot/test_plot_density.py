"""Densities of confidence: of area one between 1/K and 1, and named truly."""

from __future__ import annotations

import numpy as np
import pytest
from digits_bank import digits_bank, digits_target
from drawn_logits import draw_logits
from matplotlib.figure import Figure
from scipy import stats
from scipy.integrate import trapezoid

import shiftcal as sc
from shiftcal import plot
from shiftcal.charts import kernel_density


def drawn(*given, **options):
    axes = Figure().add_subplot()
    plot.confidence_density(*given, ax=axes, **options)
    return axes


def curves(axes):
    """Label to line, for lines that have points."""
    return {line.get_label(): line for line in axes.get_lines() if len(line.get_xdata())}


def area(line):
    return trapezoid(line.get_ydata(), line.get_xdata())


def words(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_target_and_sets_are_there_with_their_means():
    bank, target = digits_bank(), digits_target()
    axes = drawn(target, bank)
    means = [float(s.confidence().mean()) for s in bank]
    told = [f"{s.name}: mean {mean:.3f}" for s, mean in zip(bank, means, strict=True)]
    ours = sc.Vanilla().fit(bank).confidence(target).mean()
    assert words(axes) == [f"target: mean {ours:.3f}", *told]
    lines = curves(axes)
    for line in lines.values():
        assert line.get_xdata()[0] == pytest.approx(1 / 10)
        assert line.get_xdata()[-1] == 1
        # The trapezoidal rule on 400 parts, a kernel over two of them or more
        assert area(line) == pytest.approx(1, abs=2e-3)
    # fill_between comes first, then the dotted line of each mean
    places = [collection.get_segments()[0][0, 0] for collection in axes.collections[1:]]
    assert places == pytest.approx([ours, *means], abs=1e-12)
    assert axes.get_xlim() == pytest.approx((0.1, 1))
    assert axes.get_ylim()[0] == 0


def test_a_curve_is_scipys_estimate_of_the_data_with_its_mirror_images():
    confidence = 0.5 + 0.5 * np.random.default_rng(1).beta(3, 2, 800)
    (line,) = curves(drawn(confidence, n_classes=2)).values()
    mirrored = np.concatenate([confidence, 1 - confidence, 2 - confidence])
    width = confidence.std(ddof=1) * stats.gaussian_kde(confidence).scotts_factor()
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    assert line.get_ydata() == pytest.approx(3 * theirs(line.get_xdata()), rel=1e-6)


def test_the_number_of_classes_is_taken_from_whoever_has_it():
    logits, _ = draw_logits(50, 4, temperature=1.0, seed=1)
    assert drawn([0.4, 0.6], {"rows": logits}).get_xlim()[0] == 0.25
    assert drawn(logits, {"numbers": [0.4, 0.6]}).get_xlim()[0] == 0.25


def test_a_million_rows_take_no_longer_than_their_cells():
    confidence = np.random.default_rng(0).beta(5, 1, 1_000_000)
    (line,) = curves(drawn(confidence)).values()
    truth = stats.beta(5, 1).pdf(line.get_xdata())
    inside = slice(20, -40)  # kernels smooth the jump at 1
    assert line.get_ydata()[inside] == pytest.approx(truth[inside], abs=0.05)


def test_the_chosen_set_is_bold_and_said_to_be(adapted):
    chosen = adapted["sac"].selection_
    for one in (chosen, chosen.set_name):
        lines = curves(drawn(digits_target(), digits_bank(), chosen=one))
        bold = max(lines, key=lambda label: lines[label].get_linewidth())
        assert bold.startswith(f"{chosen.set_name}: mean")
        assert bold.endswith(", chosen")


def test_of_many_sets_only_the_chosen_one_is_named():
    sets = {f"set {j}": [0.5 + 0.01 * j, 0.9] for j in range(12)}
    axes = drawn([0.5, 0.6], sets, chosen="set 3")
    assert words(axes) == ["target: mean 0.550", "set 3: mean 0.715, chosen", "11 other sets"]
    assert words(drawn([0.5, 0.6], sets)) == ["target: mean 0.550", "12 sets"]
    assert len([line for line in axes.get_lines() if len(line.get_xdata())]) == 13


def test_stretched_equal_distances_are_equal_factors_of_what_is_missing_to_one():
    confidence = np.concatenate([1 - 10 ** -np.linspace(0.5, 4, 3000), np.full(1000, 1.0)])
    axes = drawn(confidence, n_classes=2, stretched=True)
    (line,) = curves(axes).values()
    assert line.get_xdata()[0] == pytest.approx(-np.log10(0.5))
    assert line.get_xdata()[-1] == 6
    assert area(line) == pytest.approx(0.75, abs=0.02)  # what is 1 lies further right
    assert words(axes) == [f"target: mean {confidence.mean():.3f}, 25% beyond"]
    told = {
        text.get_text(): x
        for text, x in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
    }
    assert told["0.9"] == pytest.approx(1)
    assert told["0.999"] == pytest.approx(3)
    assert axes.get_ylabel() == "density per factor of 10"


def test_stretched_it_is_scipys_estimate_of_the_digits_mirrored_at_zero():
    confidence = 1 - np.random.default_rng(3).beta(0.3, 2.0, 500).clip(1e-15)
    digits, x = -np.log10(1 - confidence), np.linspace(0, 6, 400)
    width = digits.std(ddof=1) * stats.gaussian_kde(digits).scotts_factor() / 2
    mirrored = np.concatenate([digits, -digits])
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    # 1e-6: a grid of confidences near 1 holds its distance from 1 to ten digits
    ours = kernel_density(confidence, 1 - 10**-x, stretched=True)
    assert ours == pytest.approx(2 * theirs(x), rel=1e-6)
