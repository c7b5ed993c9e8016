"""Columns by severity, and one for all severities from 1 on."""

from __future__ import annotations

from collections.abc import Sequence


def spans(severities: Sequence[int]) -> dict[str, list[int]]:
    """Which severities stand under which header: each by itself, then those from 1 on together.

    The last is left out if it would repeat a column.
    """
    found = {f"severity {s}": [s] for s in severities}
    shifted = [s for s in severities if s]
    if len(shifted) > 1:
        found[f"mean of {shifted[0]} to {shifted[-1]}"] = shifted
    return found


def in_words(shifted: Sequence[int]) -> str:
    """The severities from 1 on, for a sentence or a title."""
    if len(shifted) == 1:
        return f"severity {shifted[0]}"
    return f"severities {shifted[0]} to {shifted[-1]}"
