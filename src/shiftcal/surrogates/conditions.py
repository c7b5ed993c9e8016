"""Which sets a bank shall have: the clean one, then each corruption at each severity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shiftcal._checks import check_count
from shiftcal.corruptions import Corruption, InputCorruption, as_corruption
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
    found = [Condition()]
    for each in made:
        found += [Condition(each, level) for level in levels_of(each, severities)]
    return found


def levels_of(corruption: Corruption | InputCorruption, severities: object) -> list[int]:
    """Which severities of a corruption are wanted, in rising order.

    Args:
        corruption: The corruption.
        severities: One or several; ``None`` is all that it has.

    Raises:
        InputError: If it has no such severity.
    """
    most = corruption.severities
    if severities is None:
        return list(range(1, most + 1))
    return [check_count(level, name="severity", most=most) for level in _levels(severities)]


def _levels(severities: object) -> list[int]:
    given = list(severities) if isinstance(severities, Iterable) else [severities]
    if not given:
        raise InputError("severities must name one at least, or be left out for all of them.")
    return sorted({check_count(level, name="severity") for level in given})
