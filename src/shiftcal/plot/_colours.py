"""Colours that can be seen on the axes they are drawn on, be those light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shiftcal._drawing.palette import METHODS, Look, looks

RGB = tuple[float, float, float]

# Raw and calibrated, the two curves that are compared most, then others that stay apart from them.
_CURVES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = "os^Dvp"
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
    wanted = [Look(_CURVES[j], _MARKERS[j]) for j in turns]
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
        seen = to_hex(_towards_white(rgb, share))
    return seen


def categories(names: Sequence[str], axes: Any) -> list[str]:
    """A colour for each of a few names that have no order; none is that of the first curve."""
    kept = [*_CURVES[1:], "#332288"]
    return [visible(kept[j % len(kept)], axes) for j in range(len(names))]


def ramp(count: int, axes: Any) -> list[str]:
    """Colours in an order: what is drawn last stands out most."""
    from matplotlib.colors import to_hex

    first, last = _RAMPS[luminance(background(axes)) <= _DARK]
    shares = [j / (count - 1) if count > 1 else 1.0 for j in range(count)]
    return [
        to_hex(tuple((1 - share) * a + share * b for a, b in zip(first, last, strict=True)))
        for share in shares
    ]


def background(axes: Any) -> RGB:
    """The colour behind the axes: theirs, or what is seen through them.

    Where nothing is painted at all it is what their words are meant to be read on.
    """
    from matplotlib.colors import to_rgba

    inner = axes.get_figure()  # a part of the whole figure, perhaps
    for patch in (axes.patch, inner.patch, inner.canvas.figure.patch):
        red, green, blue, alpha = to_rgba(patch.get_facecolor())
        if patch.get_visible() and alpha >= 0.5:
            return (red, green, blue)
    return _opposite(ink(axes))


def luminance(rgb: RGB) -> float:
    """Relative luminance, 0 of black and 1 of white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _opposite(colour: Any) -> RGB:
    """What letters of a colour are meant to be read on."""
    from matplotlib.colors import to_rgb

    return (0.0, 0.0, 0.0) if luminance(to_rgb(colour)) > 0.5 else (1.0, 1.0, 1.0)


def _towards_white(rgb: RGB, share: float) -> RGB:
    red, green, blue = ((1 - share) * part + share for part in rgb)
    return (red, green, blue)
