"""Which sets a bank shall have: the clean one, then each corruption at each severity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shiftcal._checks import check_count
from shiftcal.corruptions import Corruption, as_corruption
from shiftcal.errors import InputError
from shiftcal.scoring.shard import Condition


def conditions_of(corruption: object, severities: Sequence[int] | int | None) -> list[Condition]:
    """Conditions of the sets, the clean one first.

    Args:
        corruption: A name, a corruption or a function; or a list of names and corruptions. A list
            of functions is one corruption, a function for each severity.
        severities: Which ones, in rising order; ``None`` is all that a corruption has.

    Raises:
        InputError: If a corruption is named twice, or has no such severity.
    """
    several = isinstance(corruption, (list, tuple)) and all(
        isinstance(each, (str, Corruption)) for each in corruption
    )
    made = [as_corruption(each) for each in (corruption if several else [corruption])]  # type: ignore[attr-defined]
    names = [each.name for each in made]
    if not names or len(set(names)) < len(names):
        raise InputError(f"corruption must be given, each once; got {names}.")
    levels = None if severities is None else _levels(severities)
    found = [Condition()]
    for each in made:
        wanted = range(1, each.severities + 1) if levels is None else levels
        found += [
            Condition(each, check_count(level, name="severity", most=each.severities))
            for level in wanted
        ]
    return found


def _levels(severities: object) -> list[int]:
    given = list(severities) if isinstance(severities, Iterable) else [severities]
    if not given:
        raise InputError("severities must name one at least, or be left out for all of them.")
    return sorted({check_count(level, name="severity") for level in given})
