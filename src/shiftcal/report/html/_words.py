"""Numbers and names as a reader sees them."""

from __future__ import annotations

import re

# Longer names are cut: no table can show them, and a thousand of them would fill the page.
MOST = 120
# What would reorder or break the line around a name: controls, and marks that turn text round.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str, most: int = MOST) -> str:
    """A name that can stand in a line: control characters escaped, cut if it is very long."""
    plain = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def whole(text: str) -> str:
    """The same uncut, for what has to be copied; line ends stay."""
    parts = (shown(line, len(line) * 6 + 1) for line in text.split("\n"))
    return "\n".join(parts)


def percent(fraction: float, digits: int = 1) -> str:
    """``91.2 %``, with a space that does not break."""
    return f"{100 * fraction:.{digits}f}\u00a0%"


def rough(fraction: float) -> str:
    """A fraction in percent without its sign: whole ones, or a decimal near the ends."""
    value = 100 * fraction
    return f"{value:.1f}" if 0 < value < 1 or 99 < value < 100 else f"{value:.0f}"


def rough_percent(fraction: float) -> str:
    """``91 %``, ``99.6 %``."""
    return f"{rough(fraction)}\u00a0%"


def rough_range(low: float, high: float) -> str:
    """``55 to 61``."""
    return f"{rough(low)} to {rough(high)}"


def number(value: float) -> str:
    """Three digits that mean something: ``4.5``, ``0.0123``, ``12.3``."""
    return f"{value:.3g}"


def counted(n: int, noun: str) -> str:
    """``1 row``, ``1,024 rows``."""
    return f"{n:,} {noun}{'s' * (n != 1)}"
