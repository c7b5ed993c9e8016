"""Draw the figures of Home and How it works, each for light and for dark pages."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "benchmarks" / "accuracy" / "results"
FILES = ("beyond-resnet20", "digits")
# Okabe and Ito's colours, told apart by all common kinds of colour vision, and by brightness.
COLOURS = {
    "light": ("#D55E00", "#0072B2", "#222222", "#6b6b6b"),
    "dark": ("#F08A4B", "#56B4E9", "#e6e6e6", "#a8a8a8"),
}
METHODS = {
    "vanilla": "raw softmax",
    "ts": "temperature scaling",
    "sts": "STS",
    "sac": "SAC",
    "rehearsal": "Rehearsal",
    "oracle": "with labels (oracle)",
}


def style(ink):
    names = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
    return {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "svg.hashsalt": "shiftcal",  # the same drawing gives the same file
        **dict.fromkeys(names, ink),
    }


def draw_results(axes, data, colours):
    """Mean ECE over the twelve corruptions at five severities and five splits, by method."""
    before, after, _, grey = colours
    errors = [100 * statistics.fmean(data["ece"]["full"][name].values()) for name in METHODS]
    shade = [before, before, after, after, after, grey]
    axes.barh(list(METHODS.values()), errors, color=shade, height=0.68)
    for row, error in enumerate(errors):
        axes.annotate(
            f"{error:.1f} %", (error, row), (4, 0), textcoords="offset points", va="center"
        )
    axes.invert_yaxis()
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xticks([])


def draw_ladder(axes, data, colours):
    """Mean confidence of every surrogate set against its accuracy, and where the target lies."""
    before, after, ink, grey = colours
    ladder, chosen, target = data["ladder"], data["chosen"], data["target_mean_confidence"]
    x = [step["mean_confidence"] for step in ladder]
    y = [step["accuracy"] for step in ladder]
    axes.axvline(target, color=before, lw=1.6)
    axes.plot(x, y, color=after, lw=1, marker="o", ms=6)
    axes.plot(x[chosen], y[chosen], "o", ms=14, mfc="none", mec=after, mew=1.6)
    for j, step in enumerate(ladder):
        left = x[j] < target
        axes.annotate(
            f"{'clean' if j == 0 else f'noise {j}'}, T = {step['temperature']:.1f}",
            (x[j], y[j]),
            xytext=(-12 if left else 12, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="bottom" if j == 0 else "center",
            fontsize=9,
            color=ink if j == chosen else grey,
            fontweight="bold" if j == chosen else "normal",
        )
    axes.annotate(
        "new data: no labels,\nbut a mean confidence",
        (target, min(y) - 0.04),
        xytext=(7, 0),
        textcoords="offset points",
        color=before,
        va="bottom",
    )
    axes.set(xlim=(min(x) - 0.06, max(x) + 0.04), ylim=(min(y) - 0.05, 1.01))
    axes.set(xlabel="mean confidence of the raw softmax", ylabel="accuracy")
    axes.xaxis.set_major_locator(MultipleLocator(0.05))
    axes.set_title("Which surrogate set is the new data like?")


def draw_reliability(axes, data, colours):
    """Accuracy against confidence of the target in bins of equal size, before and after."""
    before, after, _, grey = colours
    axes.plot([0, 1], [0, 1], color=grey, lw=1, ls=(0, (4, 3)))
    for name, word, colour, marker, height in (
        ("sac", "after, with that set's T", after, "o", 0.97),
        ("vanilla", "before, raw softmax", before, "s", 0.84),
    ):
        table = data["tables"][name]
        axes.plot(table["confidence"], table["accuracy"], color=colour, lw=1, alpha=0.45)
        axes.plot(table["confidence"], table["accuracy"], marker, color=colour, ms=5)
        axes.text(
            0.04,
            height,
            f"{word}\nECE {table['ece']:.3f}",
            transform=axes.transAxes,
            color=colour,
            va="top",
        )
    axes.text(0.36, 0.27, "on the line, confidence = accuracy", color=grey, fontsize=9)
    axes.set(xlim=(0.2, 1.02), ylim=(0.2, 1.02), xlabel="confidence", ylabel="accuracy")
    axes.set_aspect("equal")
    axes.set_title("The new data, before and after")


def main() -> None:
    read = {name: json.loads((RESULTS / f"{name}.json").read_text("utf-8")) for name in FILES}
    for scheme, colours in COLOURS.items():
        with mpl.rc_context(style(colours[2])):
            figure = Figure(figsize=(5.6, 2.4), layout="constrained")
            draw_results(figure.subplots(), read["beyond-resnet20"], colours)
            save(figure, f"results-{scheme}.svg")
            figure = Figure(figsize=(9.2, 3.9), layout="constrained")
            left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
            draw_ladder(left, read["digits"]["figure"], colours)
            draw_reliability(right, read["digits"]["figure"], colours)
            figure.get_layout_engine().set(wspace=0.06)
            save(figure, f"overview-{scheme}.svg")


def save(figure, name):
    FigureCanvasAgg(figure)
    figure.savefig(HERE / name, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
