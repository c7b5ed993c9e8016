"""Which method has which colour and marker, in every picture.

Colours are Okabe and Ito's (2008), which stay apart for the colour-blind; the grey is darker than
usual, so that it stays apart from the purple and the green too, and navy, olive and brown are added
for later methods. Methods differ in their markers
as well, for print without colour.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
    found: dict[str, Look] = {}
    others = 0
    for key in keys:
        if key in found:
            continue
        if key not in _FIXED:
            lap, place = divmod(others, len(_COLOURS))
            marker, dashes = _MARKERS[others % len(_MARKERS)], _DASHES[lap % len(_DASHES)]
            found[key] = Look(_COLOURS[place], marker, dashes)
            others += 1
        else:
            found[key] = _FIXED[key]
    return found


def tint(colour: str) -> str:
    """A third of the colour on white, not seen through."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) / 3):02X}" for part in parts)
