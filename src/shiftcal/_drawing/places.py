"""Where series stand beside one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


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
