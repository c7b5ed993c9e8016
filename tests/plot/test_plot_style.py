"""The look: a method keeps its colour, and colours stay apart for every eye."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from skimage.color import deltaE_ciede2000, rgb2lab

from shiftcal import methods
from shiftcal.charts import METHODS, SEVERITIES, looks, ramp, visible

# Machado, Oliveira and Fernandes, 2009, severity 1, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def seen(colour, eye):
    """CIELAB of a colour as an eye sees it."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    light = np.clip(EYES[eye] @ linear, 0, 1)
    shown = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return rgb2lab(shown)


def least_difference(colours, eye):
    return min(
        float(deltaE_ciede2000(seen(one, eye), seen(other, eye)))
        for one, other in combinations(colours, 2)
    )


def test_every_method_of_the_library_has_a_look_of_its_own():
    assert set(METHODS) == {*methods.names(), "oracle"}
    assert METHODS["oracle"].colour == "#000000"
    assert METHODS["oracle"].dashes == "--"
    red, green, blue = (METHODS["vanilla"].colour[i : i + 2] for i in (1, 3, 5))
    assert red == green == blue


# A difference of 2.3 is just noticed; 10 is seen at a glance.
@pytest.mark.parametrize("eye", EYES)
def test_the_colours_of_the_methods_stay_apart_for_every_eye(eye):
    assert least_difference([look.colour for look in METHODS.values()], eye) > 10


@pytest.mark.parametrize("eye", EYES)
def test_the_first_other_colours_stay_apart_for_every_eye(eye):
    assert least_difference([look.colour for look in looks("abcde").values()], eye) > 10


def test_a_method_looks_the_same_whatever_stands_beside_it():
    assert looks(["sac"])["sac"] == looks(["x", "ts", "y", "sac"])["sac"] == METHODS["sac"]


def test_other_keys_are_told_apart_by_their_order():
    assert looks(["x", "sac", "y"])["y"] == looks(["u", "v"])["v"]
    assert looks(["x", "x", "y"]) == looks(["x", "y"])
    made = looks([*METHODS, *map(str, range(20))])
    assert len(set(made.values())) == len(METHODS) + 20
    assert not {made[str(i)].colour for i in range(20)} & {look.colour for look in METHODS.values()}


def hue_and_lightness(colour):
    lightness, a, b = seen(colour, "usual")
    return np.degrees(np.arctan2(b, a)), lightness


def test_severities_go_from_light_to_dark_in_one_hue():
    made = looks([f"severity-{s}" for s in range(6)])
    assert list(made) == list(SEVERITIES)
    hues, lightness = zip(*(hue_and_lightness(look.colour) for look in made.values()), strict=True)
    assert max(hues) - min(hues) < 20
    assert max(np.diff(lightness)) < -8
    assert len({look.marker for look in made.values()}) == 6


@pytest.mark.parametrize("eye", EYES)
def test_severities_stay_apart_from_their_neighbours_for_every_eye(eye):
    colours = [look.colour for look in SEVERITIES.values()]
    assert min(least_difference(pair, eye) for pair in pairwise(colours)) > 5


def axes_on(style):
    with plt.style.context(style):
        return Figure().add_subplot()


def contrast(colour, behind):
    """The ratio of WCAG 2."""

    def luminance(name):
        parts = np.array(to_rgb(name))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    light, dark = sorted((luminance(colour), luminance(behind)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_its_colour_on_white_and_stands_out_on_black(name):
    colour = METHODS[name].colour
    assert visible(colour, axes_on("default")) == colour.lower()
    assert contrast(visible(colour, axes_on("dark_background")), "#333333") >= 3


@pytest.mark.parametrize(("style", "behind"), [("default", "white"), ("dark_background", "black")])
def test_sets_in_order_stand_out_more_and_more(style, behind):
    colours = ramp(6, axes_on(style))
    seen = [contrast(colour, behind) for colour in colours]
    assert len(set(colours)) == 6
    assert seen == sorted(seen)
    assert (len(ramp(1, axes_on(style))), ramp(0, axes_on(style))) == (1, [])
