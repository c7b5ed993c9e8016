"""How a bank shows itself: lines of text, or a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from shiftcal._html import piece, table
from shiftcal.surrogates.summary import SetSummary
from shiftcal.surrogates.surrogate_set import SurrogateSet

# Sets that are shown where nobody asked for all of them.
MOST = 24
_HEAD = ("set", "name", "rows", "mean confidence", "accuracy", "gap")


def bank_text(title: str, sets: Sequence[SurrogateSet], *, most: int | None = None) -> str:
    """A line for every set, or for the first ``most`` of them.

    Only the sets that are shown are computed.
    """
    shown = list(islice(_summaries(sets), most))
    digits = len(str(len(shown)))
    lines = [
        f"  {j:>{digits}}  {s.name:<28} n = {s.n:<7} mean p_max {s.mean_confidence:.3f}  "
        f"accuracy {s.accuracy:.3f}"
        for j, s in enumerate(shown, start=1)
    ]
    if len(shown) < len(sets):
        lines.append(f"  ... {len(sets) - len(shown)} more; print shows all of them")
    return "\n".join([title, *lines])


def bank_html(title: str, sets: Sequence[SurrogateSet]) -> str:
    """A table of the first sets, with how sure and how right the model is on each."""
    rows = (
        (
            j,
            s.name,
            f"{s.n:,}",
            f"{s.mean_confidence:.3f}",
            f"{s.accuracy:.3f}",
            f"{s.mean_confidence - s.accuracy:+.3f}",
        )
        for j, s in enumerate(_summaries(sets), start=1)
    )
    return piece(title, table(_HEAD, rows, total=len(sets), most=MOST, words=2))


def _summaries(sets: Sequence[SurrogateSet]) -> Iterator[SetSummary]:
    return (one.summary() for one in sets)
