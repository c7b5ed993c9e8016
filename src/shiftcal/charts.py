"""The one chart module: looks, axes and drawing functions of plots, reports and studies.

Drawing functions take a matplotlib ``Axes`` and numbers that are checked already. matplotlib comes
with the extras ``plot`` and ``report`` and is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shiftcal.errors import require
from shiftcal.numerics.samples import folded_density, gathered, scott_width, stretch
from shiftcal.types import Floats

if TYPE_CHECKING:
    from shiftcal.methods.method import Selection

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
    "realign": Look("#E69F00", "p"),
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
_FIXED = {**METHODS, **SEVERITIES}
# Lengths without a common factor: twenty more series before one looks like another.
_COLOURS = ("#882255", "#332288", "#117733", "#661100", "#AA4499")
_MARKERS = ("h", "<", "p", ">")
_DASHES = ("-", "--", ":", "-.")
# Raw and calibrated, the two curves that are compared most, then others that differ from them.
_CURVES = [METHODS[name] for name in ("sac", "sts", "transcal", "cpcs", "ts", "pseudocal")]


def looks(keys: Iterable[str]) -> dict[str, Look]:
    """The look of every key: that of a method or severity, else the next of a cycle."""
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
    """Colours in an order, from the easiest set to the hardest, which has the most contrast."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    ends = (0.7, 0.1) if _is_dark(axes) else (0.45, 1.0)
    return [to_hex(colour) for colour in colormaps["Purples"](np.linspace(*ends, count))]


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
    }
    for axis in "xy":
        look |= {f"{axis}tick.color": MUTED, f"{axis}tick.labelcolor": INK}
        look |= {f"{axis}tick.major.width": 0.6, f"{axis}tick.major.size": 2.5}
    with styles.context(["default", {**look, **settings}]):
        yield


def picture(figure: Any, suffix: str, *, salt: str = "shiftcal") -> bytes:
    """The file of a figure as ``png`` (200 dpi) or ``svg``, without a date: the same every time.

    Args:
        figure: What to save.
        suffix: Which of the two.
        salt: The ids in an SVG depend on it, which must differ on one page.
    """
    from matplotlib import rc_context

    silent = {"png": ("Software",), "svg": ("Creator", "Date", "Format", "Type")}
    content = BytesIO()
    with rc_context({"svg.hashsalt": salt}):
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


def kernel_density(
    confidence: Floats,
    grid: Floats,
    *,
    least: float = 0.0,
    stretched: bool = False,
    cells: int | None = None,
) -> Floats:
    """Kernel density ``(m,)`` of confidences on a grid, with no mass lost at the ends.

    Gaussian kernels with Scott's bandwidth, ``std * n**(-1/5)``, but at least 0.005 and at most a
    quarter of the range; what a kernel puts below ``least`` or above 1 is folded back. Stretched,
    it is the density of :func:`stretch` of the confidence, per unit of that scale: half of Scott's
    bandwidth, since values spread far to the right of a steep edge, but at least 0.05, folded back
    at ``least`` only.

    Args:
        confidence: ``(n,)``.
        grid: ``(m,)`` confidences where the density is wanted.
        least: The smallest confidence possible.
        stretched: On which axis.
        cells: Gather the values into so many cells first, for millions of rows.
    """
    values: Floats = np.maximum(np.asarray(confidence, np.float64), least)  # rounding may be below
    low, points = least, grid
    width = min(scott_width(values, least=0.005), (1 - least) / 4)
    if stretched:
        values, points = stretch(values), stretch(grid)
        low = float(stretch(np.array(least)))
        width = scott_width(values, least=2 * 0.05) / 2
    counts = None
    if cells is not None:
        values, counts = gathered(values, cells=cells)
    high = None if stretched else 1.0
    return folded_density(values, points, width=width, low=low, high=high, counts=counts)


def draw_density(
    axes: Any,
    x: Any,
    y: Any,
    mean: float,
    colour: Any,
    *,
    fill: bool = False,
    with_mean: bool = True,
    **style: Any,
) -> None:
    """A density, and a dotted line at the mean; both x and the mean are places on the axis."""
    if fill:
        axes.fill_between(x, y, color=colour, alpha=0.2, linewidth=0, zorder=2)
    axes.plot(x, y, **{"color": colour, "zorder": 4 if fill else 3, **style})
    if with_mean:
        height = float(np.interp(mean, x, y))
        axes.vlines(mean, 0, height, color=colour, linestyle=(0, (1, 2)), linewidth=1.2, zorder=3)


def mark_stretched(axes: Any, ticks: Sequence[float]) -> None:
    """Ticks of a stretched axis at these confidences."""
    axes.set_xticks(stretch(np.array(ticks)), [f"{tick:g}" for tick in ticks])


def draw_bins(
    axes: Any, x: Any, y: Any, low: Any, high: Any, look: Look, *, label: str = "", end: float = 1.0
) -> None:
    """Accuracy ``y`` of every bin over its confidence ``x``, and the diagonal up to ``end``."""
    if not any(line.get_gid() == "diagonal" for line in axes.get_lines()):
        style = {"color": ink(axes), "alpha": 0.6, "linewidth": 1.0, "linestyle": (0, (4, 3))}
        axes.plot([0, end], [0, end], gid="diagonal", zorder=1, **style)
    bars = np.maximum([np.subtract(y, low), np.subtract(high, y)], 0.0)  # not below by rounding
    style = {"color": look.colour, "marker": look.marker, "markersize": 5 if len(x) <= 40 else 2}
    axes.errorbar(x, y, yerr=bars, linewidth=1.0, label=label, zorder=3, **style)
    # Markers at the ends are seen whole.
    axes.set(xlim=(0, 1.02 * end), ylim=(0, 1.02 * end))


def draw_strip(axes: Any, counts: Any, edges: Any, colour: str) -> None:
    """Where the rows lie, at the bottom of the axes; the highest step always has one height."""
    across = axes.get_xaxis_transform()  # x as the data, y as a share of the axes
    style = {"fill": True, "color": colour, "alpha": 0.25, "zorder": 2}
    axes.stairs(0.1 * counts / counts.max(), edges, transform=across, **style)


def draw_target(
    axes: Any, selection: Selection, confidence: float, colour: str, *, more: str = ""
) -> None:
    """A vertical line at the mean confidence, and on it the temperature with its interval."""
    axes.axvline(confidence, color=colour, linestyle=":", linewidth=1.0, zorder=1)
    t, around = selection.temperature, selection.temperature_interval
    if t is not None:
        bars = None if around is None else ([t - around.low], [around.high - t])
        style = {"marker": "D", "markersize": 7, "linestyle": "none", "capsize": 4, "zorder": 4}
        label = f"target: T = {t:.3g}{more}"
        axes.errorbar([confidence], [t], bars, color=colour, label=label, **style)


def mark_temperatures(axes: Any) -> None:
    """A logarithmic axis with round numbers; equal steps if the range is too narrow for factors."""
    from matplotlib.ticker import AutoLocator, LogLocator, NullLocator, StrMethodFormatter

    least, most = axes.dataLim.intervaly
    axes.set_yscale("log")
    locator = AutoLocator() if most < 4 * least else LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.08, y=0.12)
