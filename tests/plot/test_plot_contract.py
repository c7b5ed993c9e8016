"""What all plots promise: the given axes, no global state, any style and layout, clear refusals."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from absent_package import hide
from digits_bank import digits_bank, digits_target
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from shiftcal import plot
from shiftcal.errors import InputError, MissingExtra

ERRORS = {"ts": {0: (0.02,), 1: (0.05, 0.07)}, "sac": {0: (0.03,), 1: (0.03, 0.04)}}


def reliability(_, **given):
    return plot.reliability(digits_target(), n_resamples=40, **given)


def confidence_density(_, **given):
    return plot.confidence_density(digits_target(), digits_bank(), **given)


def ece_by_severity(_, **given):
    return plot.ece_by_severity(ERRORS, **given)


def selection(adapted, **given):
    return plot.selection(adapted["sac"], **given)


def selection_of_temperatures(adapted, **given):
    return plot.selection(adapted["rehearsal"], **given)


PLOTS = (
    reliability,
    confidence_density,
    ece_by_severity,
    selection,
    selection_of_temperatures,
)
every_plot = pytest.mark.parametrize("draw", PLOTS, ids=lambda draw: draw.__name__)


@every_plot
def test_the_given_axes_come_back_and_pyplot_has_no_figure_of_it(draw, adapted):
    axes = Figure(layout="constrained").add_subplot()
    assert draw(adapted, ax=axes) is axes
    assert plt.get_fignums() == []
    axes.figure.canvas.draw()  # warnings are errors


@every_plot
def test_without_axes_there_is_a_figure_that_pyplot_shows(draw, adapted):
    axes = draw(adapted)
    assert plt.gcf() is axes.figure
    axes.figure.canvas.draw()


@every_plot
def test_words_the_user_has_put_on_the_axes_stay(draw, adapted):
    axes = Figure().add_subplot()
    axes.set(xlabel="mine", ylabel="my own", title="above")
    draw(adapted, ax=axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("mine", "my own")
    titles = [axes.get_title(loc=side) for side in ("left", "center", "right")]
    assert titles == ["", "above", ""]


@every_plot
def test_lines_can_be_seen_on_a_dark_background(draw, adapted):
    from matplotlib.colors import to_rgb

    with plt.style.context("dark_background"):
        axes = draw(adapted)
        axes.figure.canvas.draw()
    lines = [line for line in axes.get_lines() if len(line.get_xdata())]
    assert lines
    for line in lines:
        assert max(to_rgb(line.get_color())) > 0.35


@every_plot
@pytest.mark.parametrize(
    ("ax", "words"),
    [
        (np.empty((2, 2), object), r"got ndarray.*pass one, such as ax=axes\[0, 0\]"),
        ([1], "got list.*pass one"),
        (Figure(), r"got Figure.*figure\.add_subplot\(\)"),
        ("axes", "ax must be a matplotlib Axes; got str"),
    ],
)
def test_what_is_no_axes_is_refused(draw, adapted, ax, words):
    with pytest.raises(InputError, match=words):
        draw(adapted, ax=ax)
    assert plt.get_fignums() == []


@every_plot
def test_without_matplotlib_the_extra_is_named(draw, adapted, monkeypatch):
    hide(monkeypatch, "matplotlib")
    with pytest.raises(MissingExtra, match=r"plot\.\w+ needs matplotlib.*shiftcal\[plot\]"):
        draw(adapted)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_a_new_process_imports_no_more_than_it_needs_and_does_without_a_window():
    code = (
        "import sys; from shiftcal import plot\n"
        "print('matplotlib' in sys.modules)\n"
        "from matplotlib.figure import Figure\n"
        "plot.reliability([0.5, 0.9], [True, False], ax=Figure().add_subplot())\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
        "axes = plot.reliability([0.5, 0.9], [True, False])\n"
        "axes.figure.savefig('/dev/null', format='png')\n"
        "print('drawn')"
    )
    # A window of Qt is asked for, and can be had nowhere.
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": "qtagg", "DISPLAY": "", "WAYLAND_DISPLAY": ""},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "False", "drawn"]
