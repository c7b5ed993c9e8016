"""One pass over the rows of a scores file, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from shiftcal._checks import GUARD_FROM, check_scores
from shiftcal._types import Labels, Logits
from shiftcal.errors import InputError
from shiftcal.scores import Scores

# Elements a block: 16 MB of double precision, enough for all threads to have their part.
_BLOCK = 1 << 21


def checked_blocks(scores: Scores) -> Iterator[tuple[Logits, Labels | None]]:
    """Finite logits of some rows at a time, with their labels; the scores may stay on disk.

    Raises:
        InputError: If values are not what they are said to be, naming the file and the row.
    """
    rows = max(1, _BLOCK // scores.k)
    for start in range(0, scores.n, rows):
        part = slice(start, min(start + rows, scores.n))
        labels = None if scores.labels is None else scores.labels[part]
        yield _logits(scores, part), labels


def _logits(scores: Scores, part: slice) -> Logits:
    values = np.asarray(scores.values[part])
    try:
        # A few rows may look like probabilities by chance, and must not fail where many pass.
        return check_scores(values, input=scores.input, guard_from=GUARD_FROM)
    except InputError:
        where = np.arange(scores.n) if scores.rows is None else scores.rows
        replace(
            scores, values=values, labels=None, features=None, ids=None, rows=where[part]
        ).logits()  # the same refusal, in terms of the file
        raise
