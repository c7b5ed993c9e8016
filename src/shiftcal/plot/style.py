"""Colours, markers, axes and inputs that all plots share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_confidence, check_labels, check_scores, label_indices, to_array
from shiftcal.errors import InputError, require
from shiftcal.metrics import check_top1
from shiftcal.numerics.softmax import p_max
from shiftcal.scores import Scores
from shiftcal.types import Confidence, Correct, Labels

# Colours are Okabe and Ito's (2008), which colour-blind readers can tell apart; the grey is darker
# than usual, to differ from the purple and the green, and navy, olive and brown are added for later
# methods. Methods differ in their markers as well, for print without colour.

INK, MUTED, GRID = "#222222", "#555555", "#E2E2E2"
# What is true and what is claimed, as in Salvador et al., 2021.
BLUE, ORANGE = "#0072B2", "#E69F00"
# The same two where blue and orange have another meaning above them.
DARK, LIGHT = "#4D4D4D", "#B8B8B8"
CHOSEN = "#FFF3D6"


@dataclass(frozen=True)
class Look:
    """How one series is drawn.

    Attributes:
        colour: As ``#RRGGBB``.
        marker: matplotlib's letter.
        dashes: matplotlib's line style.
    """

    colour: str
    marker: str
    dashes: str = "-"


METHODS = {
    "vanilla": Look("#666666", "o"),
    "ts": Look("#56B4E9", "^"),
    "cpcs": Look("#CC79A7", "v"),
    "transcal": Look("#009E73", "D"),
    "sts": Look("#0072B2", "s"),
    "sac": Look("#D55E00", "o"),
    "rehearsal": Look("#003366", "*"),
    "ace": Look("#CCCC00", "d"),
    "pseudocal": Look("#7F3C00", "P"),
    "oracle": Look("#000000", "X", "--"),
}
# One hue from light to dark, which no method has: what has an order is seen in its order.
SEVERITIES = {
    "severity-0": Look("#C3B3E6", "o"),
    "severity-1": Look("#A68FD6", "^"),
    "severity-2": Look("#896BC4", "s"),
    "severity-3": Look("#6C48AE", "D"),
    "severity-4": Look("#4E2A8C", "v"),
    "severity-5": Look("#2C1157", "<"),
}
# Ways to train, which never stand beside methods: the same colours serve again.
TRAINERS = {
    "source-only": Look("#666666", "o"),
    "dan": Look("#56B4E9", "^"),
    "jan": Look("#009E73", "D"),
    "cdan": Look("#E69F00", "v"),
    "mdd": Look("#0072B2", "s"),
    "safn": Look("#CC79A7", "<"),
    "mcc": Look("#D55E00", "P"),
}
_FIXED = {**METHODS, **SEVERITIES, **TRAINERS}
# Lengths without a common factor: twenty more series before one looks like another.
_COLOURS = ("#E69F00", "#332288", "#117733", "#661100", "#AA4499")
_MARKERS = ("h", "<", "p", ">")
_DASHES = ("-", "--", ":", "-.")


def looks(keys: Iterable[str]) -> dict[str, Look]:
    """The look of every key: a method's or a severity's own, or else the next of a fixed cycle.

    Args:
        keys: In the order of the figure; a repeated one counts once.
    """
    keys = list(dict.fromkeys(keys))
    others = [key for key in keys if key not in _FIXED]
    cycled = {
        key: Look(
            _COLOURS[i % len(_COLOURS)],
            _MARKERS[i % len(_MARKERS)],
            _DASHES[i // len(_COLOURS) % len(_DASHES)],
        )
        for i, key in enumerate(others)
    }
    return {key: _FIXED.get(key) or cycled[key] for key in keys}


def tint(colour: str) -> str:
    """A third of the colour on white, not seen through."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) / 3):02X}" for part in parts)


def beside(x: Sequence[float], share: float, *, log: bool) -> list[float]:
    """Every x moved by a share of the least distance between two, as seen on the axis.

    Args:
        x: Rising.
        share: Between -1/2 and 1/2.
        log: Whether distances on the axis are those of the logarithms.
    """
    seen = [math.log(value) if log else value for value in x]
    least = min((b - a for a, b in pairwise(seen)), default=1.0)
    moved = [value + share * least for value in seen]
    return [math.exp(value) for value in moved] if log and share else list(moved if share else x)


def check_axes(ax: object, *, plot: str) -> None:
    """Refuse what cannot be drawn on, before anything is computed.

    Args:
        ax: A matplotlib ``Axes``, or ``None``.
        plot: Who asks, for messages.

    Raises:
        MissingExtra: If matplotlib is not installed.
        InputError: If ``ax`` is something else.
    """
    axes = require("matplotlib.axes", extra="plot", needed_by=f"plot.{plot}")
    if ax is None or isinstance(ax, axes.Axes):
        return
    hint = ""
    if hasattr(ax, "shape") or isinstance(ax, list | tuple):
        hint = " plt.subplots(2, 2) gives an array of them: pass one, such as ax=axes[0, 0]."
    elif hasattr(ax, "add_subplot"):
        hint = " Pass one of its axes: figure.add_subplot()."
    raise InputError(f"ax must be a matplotlib Axes; got {type(ax).__name__}.{hint}")


def axes_for(ax: Any, *, size: tuple[float, float]) -> Any:
    """``ax`` itself, or the axes of a new figure.

    A new figure is one of pyplot's, so that notebooks show it; where pyplot cannot have the window
    that it is set to, a figure without one, which can be saved all the same. It is made when all
    is computed: bad input leaves no empty figure behind.

    Args:
        ax: A matplotlib ``Axes``, or ``None``.
        size: Of a new figure, in inches.
    """
    if ax is not None:
        return ax
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    try:
        return pyplot.figure(figsize=size, layout="constrained").add_subplot()
    except ImportError:  # MPLBACKEND or matplotlibrc asks for a window that cannot be opened
        return Figure(figsize=size, layout="constrained").add_subplot()


def name_axes(axes: Any, *, x: str, y: str) -> None:
    """Say what is on the axes, where the user has not."""
    if not axes.get_xlabel():
        axes.set_xlabel(x)
    if not axes.get_ylabel():
        axes.set_ylabel(y)


def show_legend(axes: Any, *, where: str = "best") -> None:
    """The legend of everything on the axes that has a label; a dollar in a label is a dollar."""
    handles, labels = axes.get_legend_handles_labels()
    legend = axes.legend(handles, labels, loc=where)
    legend.set_in_layout(False)  # a long one must not press small axes to nothing
    for text in legend.get_texts():
        text.set_parse_math(False)


def legend_text(label: object) -> str:
    """A label that matplotlib takes into a legend: it leaves out those that begin with ``_``."""
    text = str(label)
    return f" {text}" if text.startswith("_") else text


RGB = tuple[float, float, float]

# Raw and calibrated, the two curves that are compared most, then others that stay apart from them.
_CURVES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_COLOURS_MARKERS = "os^Dvp"
# From the easiest set to the hardest, on light axes and on dark ones.
_RAMPS = (((0.72, 0.65, 0.88), (0.17, 0.07, 0.34)), ((0.42, 0.30, 0.66), (0.93, 0.89, 1.0)))
# Least contrast of a line with what is behind it, as WCAG 2.2 has it for graphics.
_CONTRAST = 3.0
_DARK = 0.2


def ink(axes: Any) -> Any:
    """The colour of the axes' own words."""
    return axes.xaxis.label.get_color()


def curve_look(axes: Any, label: str, index: int, *, used: frozenset[str] = frozenset()) -> Look:
    """How a curve is drawn: a method's own look if it is named after one, else the next.

    Args:
        axes: Where.
        label: Name of the curve.
        index: How many there are before it.
        used: Their colours in hexadecimal digits, which it does not get while others are left.
    """
    turns = [(index + j) % len(_CURVES) for j in range(len(_CURVES))]
    wanted = [Look(_CURVES[j], _COLOURS_MARKERS[j]) for j in turns]
    own = METHODS.get(label.lower())
    seen = [
        Look(visible(look.colour, axes), look.marker, look.dashes)
        for look in ([] if own is None else [own]) + wanted
    ]
    return next((look for look in seen if look.colour not in used), seen[0])


def series_looks(axes: Any, labels: Sequence[str]) -> dict[str, Look]:
    """The looks of several series by label: a method's own, or the next of a cycle."""
    found = looks(label.lower() for label in labels)
    return {
        label: Look(visible(look.colour, axes), look.marker, look.dashes)
        for label in labels
        for look in [found[label.lower()]]
    }


def visible(colour: str, axes: Any) -> str:
    """The colour, made lighter on dark axes until it stands out from them.

    The colours are chosen for white paper, where they stay as they are.
    """
    from matplotlib.colors import to_hex, to_rgb

    behind = luminance(background(axes))
    rgb, seen, share = to_rgb(colour), to_hex(colour), 0.0
    # A background of 0.2 and less has room for three times its brightness above it.
    while behind <= _DARK and (luminance(to_rgb(seen)) + 0.05) / (behind + 0.05) < _CONTRAST:
        share += 0.05
        seen = to_hex([(1 - share) * part + share for part in rgb])
    return seen


def categories(names: Sequence[str], axes: Any) -> list[str]:
    """A colour for each of a few names that have no order; none is that of the first curve."""
    kept = [*_CURVES[1:], "#332288"]
    return [visible(kept[j % len(kept)], axes) for j in range(len(names))]


def ramp(count: int, axes: Any) -> list[str]:
    """Colours in an order: what is drawn last stands out most."""
    from matplotlib.colors import to_hex

    first, last = map(np.array, _RAMPS[luminance(background(axes)) <= _DARK])
    shares = np.linspace(0, 1, count) if count > 1 else np.ones(count)
    return [to_hex((1 - share) * first + share * last) for share in shares]


def background(axes: Any) -> RGB:
    """The colour behind the axes: theirs, or what is seen through them.

    Where nothing is painted at all it is what their words are meant to be read on.
    """
    from matplotlib.colors import to_rgb, to_rgba

    inner = axes.get_figure()  # a part of the whole figure, perhaps
    for patch in (axes.patch, inner.patch, inner.canvas.figure.patch):
        red, green, blue, alpha = to_rgba(patch.get_facecolor())
        if patch.get_visible() and alpha >= 0.5:
            return (red, green, blue)
    dark_ink = luminance(to_rgb(ink(axes))) <= 0.5
    return (1.0, 1.0, 1.0) if dark_ink else (0.0, 0.0, 0.0)


def luminance(rgb: RGB) -> float:
    """Relative luminance, 0 of black and 1 of white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# Of a confidence in float32 below 1/K, which a highest probability cannot be.
_BELOW = 1e-6


def given_top1(values: object, truth: object, *, input: str) -> tuple[Confidence, Correct]:
    """Confidence and correctness ``(n,)`` each, from what can be told of them.

    Args:
        values: Confidences ``(n,)``; logits or probabilities ``(n, k)``; or :class:`Scores`.
        truth: Beside confidences whether each was right; beside rows the labels. Scores have their
            own labels if it is ``None``.
        input: What rows are.

    Raises:
        InputError: If they cannot be used.
    """
    if isinstance(values, Scores):
        logits = values.logits()
        return p_max(logits), logits.argmax(axis=1) == _labels_of(values, truth)
    if truth is None:
        raise InputError(
            f"confidence must come with correct, whether each prediction was right; got "
            f"{type(values).__name__} alone. Only labelled Scores and a BinTable bring it along."
        )
    if columns(values) is None:
        return check_top1(values, truth)
    logits = check_scores(values, input=input)
    n, k = logits.shape
    return p_max(logits), logits.argmax(axis=1) == check_labels(truth, n=n, k=k)


def given_confidence(
    values: object, *, input: str, name: str, n_classes: int | None
) -> NDArray[np.float64]:
    """Confidences ``(n,)``.

    Args:
        values: Confidences ``(n,)``; logits or probabilities ``(n, k)``; or :class:`Scores`.
        input: What rows are.
        name: What they are called in messages.
        n_classes: Number of classes they must have; ``None`` if it is not known.

    Raises:
        InputError: If they cannot be used, are of another number of classes, or a confidence is
            less than one in ``n_classes``.
    """
    k = columns(values)
    if k is not None and n_classes is not None and k != n_classes:
        raise InputError(
            f"{name} must be of the {n_classes} classes that the others are of; it has {k}. "
            "All must come from one model."
        )
    if isinstance(values, Scores):
        return p_max(values.logits())
    if k is not None:
        return p_max(check_scores(values, input=input))
    confidence = check_confidence(values, name=name).astype(np.float64)
    least = float(confidence.min())
    if n_classes is not None and least < 1 / n_classes - _BELOW:
        raise InputError(
            f"{name} must be at least 1/{n_classes}, as the highest of {n_classes} probabilities "
            f"is; the least is {least:.4g}. Pass the highest probability of every row."
        )
    return confidence


def columns(values: object) -> int | None:
    """The number of classes, of scores and of rows; ``None`` of confidences."""
    if isinstance(values, Scores):
        return values.k
    shape = to_array(values, name="confidence").shape
    return int(shape[1]) if len(shape) == 2 and shape[1] > 1 else None


def _labels_of(scores: Scores, truth: object) -> Labels:
    if truth is None:
        if scores.labels is None:
            raise InputError(
                "scores must have labels, or come with them; these have none. Accuracy cannot be "
                "drawn of unlabelled data: see plot.confidence_density."
            )
        return scores.labels
    given: Any = to_array(truth, name="labels")
    if scores.classes is not None:
        given = label_indices(given, scores.classes)
    return check_labels(given, n=scores.n, k=scores.k)
