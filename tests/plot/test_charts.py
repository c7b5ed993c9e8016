"""The chart module: a method keeps its colour, colours differ for every eye, kernel densities."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from scipy import stats
from scipy.integrate import trapezoid
from skimage.color import deltaE_ciede2000, rgb2lab

from shiftcal import methods
from shiftcal.charts import METHODS, SEVERITIES, kernel_density, looks, visible

# Machado, Oliveira and Fernandes, 2009, severity 1, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour):
    srgb = np.array(to_rgb(colour))
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def seen(colour, eye):
    """CIELAB of a colour as an eye sees it."""
    light = np.clip(np.array(EYES[eye]) @ linear(colour), 0, 1)
    return rgb2lab(np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055))


def contrast(colour, behind):
    """The ratio of WCAG 2."""
    dark, light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (colour, behind))
    return (light + 0.05) / (dark + 0.05)


def axes_on(style):
    with plt.style.context(style):
        return Figure().add_subplot()


# A difference of 2.3 is just noticed; 10 is seen at a glance.
@pytest.mark.parametrize("eye", EYES)
def test_colours_differ_for_every_eye(eye):
    def least(pairs):
        return min(float(deltaE_ciede2000(seen(a, eye), seen(b, eye))) for a, b in pairs)

    assert least(combinations([look.colour for look in METHODS.values()], 2)) > 10
    assert least(combinations([look.colour for look in looks("abcde").values()], 2)) > 10
    assert least(pairwise(look.colour for look in SEVERITIES.values())) > 5


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
