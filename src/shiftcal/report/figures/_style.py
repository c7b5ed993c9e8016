"""The fixed look of a page of results: how large letters are, how axes are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shiftcal._drawing.palette import GRID, INK, MUTED
from shiftcal._optional import require

# Points at the printed width of a page, which is that of every figure.
SMALL, NORMAL, LARGE = 8.0, 8.5, 10.0

SETTINGS: dict[str, Any] = {
    "font.size": SMALL,
    "axes.labelsize": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "text.color": INK,
    "text.parse_math": False,  # a dollar or an underscore in a label is itself
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "none",  # text stays text: it can be searched and edited
    "svg.hashsalt": "shiftcal",  # without it every file has other ids
}


@contextmanager
def applied() -> Iterator[None]:
    """The look within the block, whatever the user's own settings; they are back after it."""
    styles = require("matplotlib.style", extra="plot", needed_by="a figure")
    with styles.context(["default", SETTINGS]):
        yield


def with_grid(axes: Any) -> None:
    """Light lines across, for reading values."""
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.tick_params(axis="y", length=0)
