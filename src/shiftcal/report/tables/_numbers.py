"""Numbers as they are printed, the same in every format."""

from __future__ import annotations

# Two half-widths that differ by less than this share of the numbers they come from are one
# half-width: ``mean - h`` and ``mean + h`` do not give back the same ``h`` to the last bit.
_NOISE = 1e-12


def printed(value: float, digits: int) -> str:
    """The number with ``digits`` digits after the point.

    Rounded as Python's ``format`` does: the exact binary value is rounded to the nearest, and
    half-way cases to the even digit, so 2.675 (which is a little less) gives 2.67, and 0.125
    gives 0.12. What rounds to zero has no sign: -0.001 gives 0.00.

    >>> printed(2.675, 2), printed(0.125, 2), printed(-0.001, 2), printed(float("inf"), 2)
    ('2.67', '0.12', '0.00', '∞')
    """
    return format(value, f"z.{digits}f").replace("inf", "∞")


def half_width(value: float, low: float, high: float, *, digits: int) -> str | None:
    """What stands after ±, or None if the two sides differ in the printed digits.

    Args:
        value: What the interval is about.
        low: Its lower end.
        high: Its upper end.
        digits: After the point.
    """
    below, above = value - low, high - value
    if printed(below, digits) == printed(above, digits):
        return printed((below + above) / 2, digits)
    if abs(below - above) <= _NOISE * max(abs(value), abs(low), abs(high)):
        return printed((below + above) / 2, digits)
    return None
