"""Axes that several kinds of figure share: where ticks stand, how labels fit, where y starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from shiftcal._drawing.palette import GRID
from shiftcal.report.figures._page import letters, wrapped

_SLANT = 30
# Inches between slanted lines of small print, measured along the axis.
_SLANTED_APART = 0.24


def columns_for(panels: int, most: int = 3) -> int:
    """How many panels stand in a row, so that few places of the last row stay empty."""
    rows = math.ceil(panels / most)
    return math.ceil(panels / rows)


def mark_numbers(axes: Any, x: Sequence[float], *, log: bool, width: float) -> None:
    """Ticks at the numbers themselves: all, slanted if need be, or those that fit side by side.

    Of those that do not fit on a logarithmic axis, powers of ten are the last to be left out.

    Args:
        axes: To be marked.
        x: Rising.
        log: Whether the axis is logarithmic.
        width: Of the axes, in inches.
    """
    seen = [math.log(value) if log else value for value in x]
    span = (seen[-1] - seen[0]) * 1.1 or 1.0
    places = [(value - seen[0]) / span * width for value in seen]
    words = [in_words(value) for value in x]
    kept = _apart(places, words, first=[log and _is_power_of_ten(value) for value in x])
    apart = min((b - a for a, b in pairwise(places)), default=width)
    turned = {}
    if len(kept) < len(x) and apart >= _SLANTED_APART:
        kept = list(range(len(x)))
        turned = {"rotation": _SLANT, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks([x[i] for i in kept], [words[i] for i in kept], **turned)
    axes.minorticks_off()


def _apart(places: Sequence[float], words: Sequence[str], *, first: Sequence[bool]) -> list[int]:
    """Which words can be written at places, in inches, without touching; some are tried first."""
    kept: list[int] = []
    for index in sorted(range(len(places)), key=lambda i: not first[i]):
        near = (
            letters(abs(places[index] - places[other]))
            < (len(words[index]) + len(words[other])) / 2 + 1.5
            for other in kept
        )
        if not any(near):
            kept.append(index)
    return sorted(kept)


def _is_power_of_ten(number: float) -> bool:
    return math.log10(number).is_integer()


def in_words(number: float) -> str:
    """A number as a tick says it: ``5,000``, ``0.25``."""
    return f"{number:,.10g}"


def mark_categories(axes: Any, names: Sequence[str], *, width: float) -> None:
    """Names at 0, 1, 2, ..., in lines where that is enough, else slanted; parted by light lines."""
    room = 0.95 * width / len(names)
    lines = [wrapped(name, room, hyphens=True) for name in names]
    longest = max(len(part) for name in lines for part in name.split("\n"))
    places = range(len(names))
    if longest <= letters(room):
        axes.set_xticks(places, lines)
    else:
        axes.set_xticks(places, names, rotation=_SLANT, ha="right", rotation_mode="anchor")
    for place in places[1:]:
        axes.axvline(place - 0.5, color=GRID, linewidth=0.6, zorder=0)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.tick_params(axis="x", length=0)


def from_zero(axes: Any, values: Sequence[float]) -> None:
    """Let y start at 0 if nothing is below it and the values are not all far above it."""
    if values and 0 <= min(values) < 0.6 * max(values):
        axes.set_ylim(bottom=0)
