"""What all plots promise: the given axes, no global state, any style, clear errors."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from absent_package import hide
from digits_bank import digits_bank, digits_target
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

import shiftcal as sc
from shiftcal import plot
from shiftcal.errors import InputError, MissingExtra, NotFittedError

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
ERRORS = {"ts": {0: (0.02,), 1: (0.05, 0.07)}, "sac": {0: (0.03,), 1: (0.03, 0.04)}}
PLOTS = {
    "reliability": lambda _, **at: plot.reliability(digits_target(), n_resamples=40, **at),
    "risk": lambda _, **at: plot.risk_coverage([0.5, 0.9, 0.9], [0, 1, 1], **at),
    "density": lambda _, **at: plot.confidence_density(digits_target(), digits_bank(), **at),
    "severity": lambda _, **at: plot.ece_by_severity(ERRORS, **at),
    "distances": lambda adapted, **at: plot.selection(adapted["sac"], **at),
    "temperatures": lambda adapted, **at: plot.selection(adapted["rehearsal"], **at),
}
every_plot = pytest.mark.parametrize("draw", PLOTS.values(), ids=PLOTS)


@every_plot
def test_it_is_drawn_on_the_given_axes_and_the_users_words_stay(draw, adapted):
    axes = Figure(layout="constrained").add_subplot()
    axes.set(xlabel="mine", ylabel="my own", title="above")
    assert draw(adapted, ax=axes) is axes
    assert plt.get_fignums() == []
    axes.figure.canvas.draw()  # warnings are errors
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("mine", "my own")
    assert [axes.get_title(loc=side) for side in ("left", "center", "right")] == ["", "above", ""]


@every_plot
def test_without_axes_there_is_a_figure_of_pyplot_and_lines_can_be_seen_in_the_dark(draw, adapted):
    with plt.style.context("dark_background"):
        axes = draw(adapted)
        assert plt.gcf() is axes.figure
        axes.figure.canvas.draw()
    lines = [line for line in axes.get_lines() if len(line.get_xdata())]
    assert lines
    for line in lines:
        assert max(to_rgb(line.get_color())) > 0.35


@every_plot
def test_bad_axes_and_a_missing_matplotlib_are_errors(draw, adapted, monkeypatch):
    for ax in (np.empty((2, 2), object), [1], Figure(), "axes"):
        with pytest.raises(InputError, match=rf"ax must be a matplotlib Axes.*{type(ax).__name__}"):
            draw(adapted, ax=ax)
    assert plt.get_fignums() == []
    hide(monkeypatch, "matplotlib")
    with pytest.raises(MissingExtra, match=r"plot\.\w+ needs matplotlib.*shiftcal\[plot\]"):
        draw(adapted)


def test_with_axes_pyplot_is_not_imported():
    code = (
        "import sys; from shiftcal import plot\n"
        "print('matplotlib' in sys.modules)\n"
        "from matplotlib.figure import Figure\n"
        "plot.reliability([0.5, 0.9], [True, False], ax=Figure().add_subplot())\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=-1, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_the_pictures_of_the_docs_are_what_the_code_above_them_draws(tmp_path):
    spec = importlib.util.spec_from_file_location("plots", FIGURES / "plots.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    names = script.draw(tmp_path)
    assert sorted(names) == sorted(path.name for path in FIGURES.glob("plot-*"))
    for name in names:
        made, committed = (Image.open(folder / name).convert("L") for folder in (tmp_path, FIGURES))
        assert made.size == committed.size, "run docs/figures/plots.py"
        if mpl.__version__.startswith(f"{script.DRAWN_WITH}."):
            apart = np.abs(np.asarray(made, float) - np.asarray(committed, float))
            assert apart.mean() < 2, "run docs/figures/plots.py"


EYE, TWO = 3 * np.eye(3), ([0.5, 0.9], [True, False])
BAD_RELIABILITY = [
    (([0.5, np.nan], [True, False]), {}, "confidence must be finite; row 1 holds nan"),
    (([0.5, 1.5], [True, False]), {}, r"confidence must lie in \[0, 1\]"),
    (([0.5],), {}, "confidence must come with correct"),
    (
        (np.tile(np.eye(3), (4, 1)), [0, 1, 2] * 4),
        {},
        'these logits are probabilities.*input="probabilities"',
    ),
    ((EYE, [0, 1, 3]), {}, r"labels must lie in 0\.\.2"),
    ((sc.Scores(EYE),), {}, "scores must have labels.*confidence_density"),
    (TWO, {"level": 95}, "level must lie strictly between 0 and 1"),
    ((sc.bin_table(*TWO), [True, False]), {}, "leave correct out"),
]
BAD_RISK = [
    (([0.5, np.nan],), {}, "confidence must be finite"),
    (([0.5], [0, 1]), {}, "correct must have one entry per confidence"),
    (([0.5],), {"target_accuracy": 90}, "target_accuracy must lie strictly between 0 and 1"),
    (([0.5],), {"accuracy": (0.9, 0.8)}, "accuracy must be the interval"),
]
BAD_DENSITY = [
    (([0.5, np.nan],), {}, "target must be finite"),
    ((EYE, digits_bank()), {}, "target and sets must have the same classes"),
    (([0.5], {"a": [0.5, 2]}), {}, r"the set 'a' must lie in \[0, 1\]"),
    (([0.5], [[0.5]]), {}, "sets must be a SurrogateBank or arrays by name; got list"),
    (([0.5], {"a": [0.5]}), {"chosen": "b"}, "got 'b', and the sets are 'a'"),
]
BAD_SEVERITY = [
    ((given,), {}, "ece must have numbers by label and severity")
    for given in ({}, 3, {"a": {}}, {"a": 0.1}, {"a": {1: np.nan}}, {"a": {1: [5.1]}})
]
BAD_SEVERITY.append(((ERRORS,), {"spread": "sd"}, "spread must be one of 'interval', 'range'"))


def adapted_to_digits(method):
    method.fit(digits_bank()).adapt(digits_target())
    return method


BAD_SELECTION = [
    ((digits_bank(),), {}, "method must be an adapted method; got SurrogateBank"),
    ((adapted_to_digits(sc.TS()),), {"show": "T"}, "show must be one of 'distances'"),
    ((adapted_to_digits(sc.TS()),), {}, "ts must have a temperature for every set"),
    ((adapted_to_digits(sc.TS()),), {"show": "distances"}, "ts chose between no sets"),
    (
        (adapted_to_digits(sc.SAC(map="isotonic")),),
        {"show": "temperatures"},
        "SAC with temperatures as maps",
    ),
]
UNKNOWN = sc.SurrogateBank.from_arrays([s.logits for s in digits_bank()], digits_bank()[0].labels)
BAD_ERRORS = [
    (([sc.TS()], digits_target()), {}, "targets must be a SurrogateBank; got Scores"),
    (([sc.TS()], UNKNOWN), {}, "targets must have severities"),
]


@pytest.mark.parametrize(
    ("draw", "given", "options", "match"),
    [
        (draw, *case)
        for draw, cases in (
            (plot.reliability, BAD_RELIABILITY),
            (plot.risk_coverage, BAD_RISK),
            (plot.confidence_density, BAD_DENSITY),
            (plot.ece_by_severity, BAD_SEVERITY),
            (plot.selection, BAD_SELECTION),
            (plot.errors_by_severity, BAD_ERRORS),
        )
        for case in cases
    ],
)
def test_bad_input_is_an_error_and_leaves_no_figure(draw, given, options, match):
    with pytest.raises(InputError, match=match):
        draw(*given, **options)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("method", [sc.SAC(), sc.Rehearsal(), sc.SAC().fit(digits_bank())])
def test_a_choice_that_a_method_has_not_made_cannot_be_drawn(method):
    with pytest.raises(NotFittedError, match="has chosen nothing yet"):
        plot.selection(method)
