"""Colours, markers, axes and inputs that all charts share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_confidence, check_scores, to_array
from shiftcal.errors import InputError, require
from shiftcal.metrics import check_top1
from shiftcal.numerics.softmax import p_max
from shiftcal.scores import Scores
from shiftcal.types import Confidence, Correct, Floats, InputKind

INK, MUTED, GRID = "#222222", "#555555", "#E2E2E2"


class Look(NamedTuple):
    """How one series is drawn: its colour, matplotlib's marker and line style."""

    colour: str
    marker: str
    dashes: str = "-"


# Colours are Okabe and Ito's (2008), which colour-blind readers can tell apart; the grey is darker
# than usual, to differ from the purple and the green, and navy, olive and brown are added for later
# methods. Methods differ in their markers as well, for print without colour.
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
# One hue from light to dark, which no method has.
SEVERITIES = {
    "severity-0": Look("#C3B3E6", "o"),
    "severity-1": Look("#A68FD6", "^"),
    "severity-2": Look("#896BC4", "s"),
    "severity-3": Look("#6C48AE", "D"),
    "severity-4": Look("#4E2A8C", "v"),
    "severity-5": Look("#2C1157", "<"),
}
# Trainers never stand next to methods, so they have the same colours.
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
# Raw and calibrated, the two curves that are compared most, then others that differ from them.
_CURVES = [
    Look(colour, marker)
    for colour, marker in zip(
        ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"), "os^Dvp", strict=True
    )
]
# From the easiest set to the hardest, on light axes and on dark ones.
_RAMPS = (((0.72, 0.65, 0.88), (0.17, 0.07, 0.34)), ((0.42, 0.30, 0.66), (0.93, 0.89, 1.0)))


def looks(keys: Iterable[str]) -> dict[str, Look]:
    """The look of every key: that of a method, severity or trainer, else the next of a cycle."""
    found: dict[str, Look] = {}
    cycled = 0
    for key in dict.fromkeys(keys):
        if key.lower() in _FIXED:
            found[key] = _FIXED[key.lower()]
            continue
        turn, colour = divmod(cycled, len(_COLOURS))
        marker = _MARKERS[cycled % len(_MARKERS)]
        found[key] = Look(_COLOURS[colour], marker, _DASHES[turn % len(_DASHES)])
        cycled += 1
    return found


def next_look(axes: Any, label: str = "", *, first: int = 0) -> Look:
    """The look of one more curve: its method's, else the first whose colour is not on the axes."""
    from matplotlib.colors import to_hex

    used = {to_hex(line.get_color()) for line in axes.get_lines()}
    own = [METHODS[label.lower()]] if label.lower() in METHODS else []
    wanted = [
        look._replace(colour=visible(look.colour, axes))
        for look in (*own, *_CURVES[first:], *_CURVES[:first])
    ]
    return next((look for look in wanted if look.colour not in used), wanted[0])


def ink(axes: Any) -> Any:
    """The colour of the text on the axes."""
    return axes.xaxis.label.get_color()


def _is_dark(axes: Any) -> bool:
    """Whether the background is dark, as light text says."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ink(axes))) > 1.5


def visible(colour: str, axes: Any) -> str:
    """The colour, which is chosen for white paper, mixed with white on dark axes."""
    from matplotlib.colors import to_hex, to_rgb

    share = 0.5 if _is_dark(axes) else 0.0
    return to_hex([(1 - share) * part + share for part in to_rgb(colour)])


def ramp(count: int, axes: Any) -> list[str]:
    """Colours in an order: what is drawn last has the most contrast."""
    from matplotlib.colors import to_hex

    first, last = map(np.array, _RAMPS[_is_dark(axes)])
    shares = np.linspace(0, 1, count) if count > 1 else np.ones(count)
    return [to_hex((1 - share) * first + share * last) for share in shares]


@contextmanager
def applied(settings: Mapping[str, Any], *, extra: str = "plot") -> Iterator[None]:
    """A fixed look within the block, whatever the user's own settings of matplotlib."""
    styles = require("matplotlib.style", extra=extra, needed_by="a figure")
    look = {
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.titlelocation": "left",
        "font.sans-serif": ["DejaVu Sans"],
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "text.color": INK,
        "text.parse_math": False,  # a dollar or an underscore in a label is itself
        "svg.fonttype": "none",  # text stays text: it can be searched and edited
        "svg.hashsalt": "shiftcal",  # without it every file has different ids
    }
    for axis in "xy":
        look |= {f"{axis}tick.color": MUTED, f"{axis}tick.labelcolor": INK}
        look |= {f"{axis}tick.major.width": 0.6, f"{axis}tick.major.size": 2.5}
    with styles.context(["default", {**look, **settings}]):
        yield


def picture(figure: Any, suffix: str) -> bytes:
    """The file of a figure as ``png`` (200 dpi) or ``svg``, without a date: the same every time."""
    silent = {"png": ("Software",), "svg": ("Creator", "Date", "Format", "Type")}
    content = BytesIO()
    figure.savefig(content, format=suffix, dpi=200, metadata=dict.fromkeys(silent[suffix]))
    return content.getvalue()


def draw_series(
    axes: Any,
    x: Any,
    y: Any,
    low: Any,
    high: Any,
    look: Look,
    *,
    label: str,
    joined: bool = True,
    bands: bool = False,
) -> None:
    """Points with intervals, as bars or as a band; NaN where there is no value or no interval."""
    style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "linewidth": 1.4}
    style |= {"linestyle": look.dashes if joined else "none", "label": label, "zorder": 3}
    style |= {"markersize": 9 if look.marker == "*" else 5, "markeredgewidth": 0.5}
    axes.plot(x, y, markeredgecolor="black" if _is_dark(axes) else "white", **style)
    if bands and joined:
        axes.fill_between(x, low, high, color=look.colour, alpha=0.16, linewidth=0, zorder=1)
    else:
        axes.vlines(x, low, high, color=look.colour, linewidth=1.1, zorder=2)


def shifted(x: Sequence[float], index: int, count: int, *, spread: float, log: bool) -> Floats:
    """The x of one of ``count`` series side by side, which share ``spread`` of the least step."""
    seen = np.log(x) if log else np.asarray(x, np.float64)
    least = float(np.diff(seen).min()) if len(seen) > 1 else 1.0
    moved = seen + spread * least * (index - (count - 1) / 2) / count
    return np.exp(moved) if log else moved


def check_axes(ax: object, *, plot: str) -> None:
    """Check ``ax`` before anything is computed.

    Raises:
        MissingExtra: If matplotlib is not installed.
        InputError: If ``ax`` is neither a matplotlib ``Axes`` nor ``None``.
    """
    axes = require("matplotlib.axes", extra="plot", needed_by=f"plot.{plot}")
    if not isinstance(ax, axes.Axes | None):
        raise InputError(
            f"ax must be a matplotlib Axes; got {type(ax).__name__}. Of an array of them, pass "
            "one: axes[0, 0]; of a figure, figure.add_subplot()."
        )


def axes_for(ax: Any, *, size: tuple[float, float]) -> Any:
    """``ax`` itself, or the axes of a new figure of pyplot's, which notebooks show."""
    if ax is not None:
        return ax
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    try:
        return pyplot.figure(figsize=size, layout="constrained").add_subplot()
    except ImportError:  # MPLBACKEND asks for a window that cannot be opened
        return Figure(figsize=size, layout="constrained").add_subplot()


def name_axes(axes: Any, *, x: str, y: str) -> None:
    """Label the axes, where the user has not."""
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
    """A label for a legend; matplotlib would leave out one that begins with ``_``."""
    text = str(label)
    return f" {text}" if text.startswith("_") else text


def top1(values: object, truth: object, *, input: InputKind) -> tuple[Confidence, Correct]:
    """Confidence and correctness ``(n,)`` each.

    Args:
        values: Confidences ``(n,)``; logits or probabilities ``(n, k)``; or :class:`Scores`.
        truth: For confidences whether each is correct; for rows and scores the labels. Scores have
            their own labels if it is ``None``.
        input: What rows are.

    Raises:
        InputError: If they cannot be used.
    """
    if isinstance(values, Scores):
        scores = values if truth is None else replace(values, labels=truth)  # type: ignore[arg-type]
    elif truth is None:
        raise InputError(
            f"confidence must come with correct, whether each prediction was correct; got "
            f"{type(values).__name__} alone. Only labelled Scores and a BinTable have it."
        )
    elif columns(values) is None:
        return check_top1(values, truth)
    else:
        scores = Scores(values, input=input, labels=truth)  # type: ignore[arg-type]
    if scores.labels is None:
        raise InputError(
            "scores must have labels: accuracy cannot be drawn without them. For unlabelled data "
            "see plot.confidence_density."
        )
    logits = scores.logits()
    return p_max(logits), logits.argmax(axis=1) == scores.labels


def confidences(
    values: object, *, input: str, name: str, n_classes: int | None
) -> NDArray[np.float64]:
    """Confidences ``(n,)`` of confidences, logits or probabilities ``(n, k)``, or :class:`Scores`.

    Raises:
        InputError: If they cannot be used, have another number of classes than ``n_classes``, or
            a confidence is below ``1 / n_classes``.
    """
    k = columns(values)
    if k is not None and n_classes is not None and k != n_classes:
        raise InputError(f"{name} must have {n_classes} classes, as the others have; it has {k}.")
    if isinstance(values, Scores):
        return p_max(values.logits())
    if k is not None:
        return p_max(check_scores(values, input=input))
    confidence = check_confidence(values, name=name).astype(np.float64)
    least = float(confidence.min())
    if n_classes is not None and least < 1 / n_classes - 1e-6:  # float32 may round down
        raise InputError(
            f"{name} must be at least 1/{n_classes}, the smallest possible highest probability; "
            f"the least is {least:.4g}."
        )
    return confidence


def columns(values: object) -> int | None:
    """The number of classes of scores and of rows; ``None`` for confidences."""
    if isinstance(values, Scores):
        return values.k
    shape = to_array(values, name="confidence").shape
    return int(shape[1]) if len(shape) == 2 and shape[1] > 1 else None
