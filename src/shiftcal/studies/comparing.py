"""Two variants on the same targets of the same splits: which has the larger ECE, and how surely."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal.studies.catalog._pairs import ece_difference, paired
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean

# With fewer splits, all of them on one side is no rare event.
_ENOUGH = 5
CLEARLY = (
    "Of two ECEs one is clearly larger if the 95 % interval of their difference, taken within each "
    f"split, lies above 0, or if it is larger in each of {_ENOUGH} splits or more."
)


def difference(records: Sequence[Record], others: Sequence[Record]) -> Mean | None:
    """How much more ECE the records have than their partners; ``None`` if none has a partner."""
    return paired(records, others, ece_difference)


def clearly_above(found: Mean) -> bool:
    """Whether a difference is above 0 beyond what splits do by chance.

    Its interval lies above 0, or each of five splits or more does: where a method chooses one set
    in some splits and another in others, one large difference widens the interval and must not
    hide that all are above 0. One split alone tells nothing.
    """
    if found.low is None:
        return False
    return found.low > 0 or (len(found.splits) >= _ENOUGH and min(found.splits) > 0)


def below(found: Mean) -> bool:
    """Whether a difference, with its whole interval if it has one, is below 0."""
    return found.value < 0 if found.high is None else found.high < 0


def verdict(kept: Sequence[bool]) -> str:
    """Whether a claim holds, from whether each part of it does."""
    if all(kept):
        return "holds"
    return "holds partly" if any(kept) else "does not hold"
