"""Columns by severity, and one for all severities from 1 on."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal.studies.showing import in_words


def spans(severities: Sequence[int]) -> dict[str, list[int]]:
    """Which severities stand under which header: each by itself, then those from 1 on together.

    The last is left out if it would repeat a column.
    """
    found = {f"severity {s}": [s] for s in severities}
    shifted = [s for s in severities if s]
    if len(shifted) > 1:
        found[f"mean of {in_words(shifted)}"] = shifted
    return found
