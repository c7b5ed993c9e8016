"""The chart module: a method keeps its look, which stands out; kernel densities."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from scipy import stats
from scipy.integrate import trapezoid

from shiftcal import methods
from shiftcal.charts import METHODS, kernel_density, looks, visible


def contrast(colour, behind):
    """The ratio of WCAG 2."""

    def luminance(shown):
        srgb = np.array(to_rgb(shown))
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    dark, light = sorted(map(luminance, (colour, behind)))
    return (light + 0.05) / (dark + 0.05)


def axes_on(style):
    with plt.style.context(style):
        return Figure().add_subplot()


def test_a_method_looks_the_same_whatever_is_next_to_it_and_others_differ():
    assert set(METHODS) == {*methods.names(), "oracle"}
    assert looks(["SAC"])["SAC"] == looks(["x", "ts", "y", "sac"])["sac"] == METHODS["sac"]
    assert looks(["x", "sac", "y"])["y"] == looks(["u", "v"])["v"]
    assert len(set(looks([*METHODS, *map(str, range(20))]).values())) == len(METHODS) + 20


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_its_colour_on_white_and_stands_out_on_black(name):
    colour = METHODS[name].colour
    assert visible(colour, axes_on("default")) == colour.lower()
    assert contrast(visible(colour, axes_on("dark_background")), "#333333") >= 3


@pytest.mark.parametrize("stretched", [False, True])
def test_a_density_is_scipys_estimate_of_the_data_with_its_mirror_images(stretched):
    confidence = 1 - np.random.default_rng(3).beta(0.3, 2.0, 500).clip(1e-15)
    values, x = (-np.log10(1 - confidence), np.linspace(0, 6, 400)) if stretched else (
        confidence, np.linspace(0, 1, 400)
    )  # fmt: skip
    mirrors = [values, -values] if stretched else [values, -values, 2 - values]
    width = values.std(ddof=1) * stats.gaussian_kde(values).scotts_factor() / (1 + stretched)
    data = np.concatenate(mirrors)
    theirs = stats.gaussian_kde(data, bw_method=width / data.std(ddof=1))
    ours = kernel_density(confidence, 1 - 10**-x if stretched else x, stretched=stretched)
    # 1e-6: a grid of confidences near 1 holds its distance from 1 to ten digits
    assert ours == pytest.approx(len(mirrors) * theirs(x), rel=1e-6)


@pytest.mark.parametrize("n", [2, 10, 3000])
def test_a_density_has_area_one_even_if_all_is_near_one(n):
    grid = np.linspace(0, 1, 2001)
    confidence = 1 - np.random.default_rng(4).exponential(0.02, n).clip(0, 1)
    assert trapezoid(kernel_density(confidence, grid), grid) == pytest.approx(1, abs=1e-3)
