"""Draw the overview figure from benchmarks/accuracy/results/digits.json."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "benchmarks" / "accuracy" / "results" / "digits.json"
# Okabe and Ito's colours, told apart by all common kinds of colour vision, and by brightness.
BEFORE, AFTER, INK, GREY = "#D55E00", "#0072B2", "#222222", "#6b6b6b"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "text.color": INK,
    "svg.hashsalt": "shiftcal",  # the same drawing gives the same file
}


def draw_ladder(axes, data):
    """Mean confidence of every surrogate set against its accuracy, and where the target lies."""
    ladder, chosen, target = data["ladder"], data["chosen"], data["target_mean_confidence"]
    x = [step["mean_confidence"] for step in ladder]
    y = [step["accuracy"] for step in ladder]
    axes.axvline(target, color=BEFORE, lw=1.6)
    axes.plot(x, y, color=AFTER, lw=1, marker="o", ms=6)
    axes.plot(x[chosen], y[chosen], "o", ms=14, mfc="none", mec=AFTER, mew=1.6)
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
            color=INK if j == chosen else GREY,
            fontweight="bold" if j == chosen else "normal",
        )
    axes.annotate(
        "new data: no labels,\nbut a mean confidence",
        (target, min(y) - 0.04),
        xytext=(7, 0),
        textcoords="offset points",
        color=BEFORE,
        va="bottom",
    )
    axes.set(xlim=(min(x) - 0.06, max(x) + 0.04), ylim=(min(y) - 0.05, 1.01))
    axes.set(xlabel="mean confidence of the raw softmax", ylabel="accuracy")
    axes.xaxis.set_major_locator(MultipleLocator(0.05))
    axes.set_title("Which surrogate set is the new data like?")


def draw_reliability(axes, data):
    """Accuracy against confidence of the target in bins of equal size, before and after."""
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)))
    for name, word, colour, marker, height in (
        ("sac", "after, with that set's T", AFTER, "o", 0.97),
        ("vanilla", "before, raw softmax", BEFORE, "s", 0.84),
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
    axes.text(0.36, 0.27, "on the line, confidence = accuracy", color=GREY, fontsize=9)
    axes.set(xlim=(0.2, 1.02), ylim=(0.2, 1.02), xlabel="confidence", ylabel="accuracy")
    axes.set_aspect("equal")
    axes.set_title("The new data, before and after")


def main() -> None:
    data = json.loads(RESULTS.read_text("utf-8"))["figure"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 3.9), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
        draw_ladder(left, data)
        draw_reliability(right, data)
        figure.get_layout_engine().set(wspace=0.06)
        figure.savefig(HERE / "overview.svg", facecolor="white", metadata={"Date": None})
        figure.savefig(HERE / "overview.png", facecolor="white", dpi=180)


if __name__ == "__main__":
    main()
