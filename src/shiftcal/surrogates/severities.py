"""How strong the corruption of each set is: 0 for the clean one, which is first, then 1 and up."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal.errors import InputError


def severities_of(
    n_sets: int, corruption: str | None, severities: Sequence[int] | None
) -> list[int | None]:
    """One severity per set, from what was said of all but the clean one.

    Args:
        n_sets: Number of sets, with the clean one.
        corruption: The name of the corruption, if there is one: its steps are then 1, 2, ...
        severities: Those of the other sets, if they were given.

    Raises:
        InputError: If there are more or fewer severities than sets.
    """
    if severities is None:
        if corruption is None:
            return [0, *[None] * (n_sets - 1)]
        return list(range(n_sets))
    if len(severities) != n_sets - 1:
        raise InputError(
            f"severities must name every set but the clean one: {n_sets - 1} sets, "
            f"{len(severities)} severities."
        )
    return [0, *severities]


def refuse_misplaced(names: Sequence[str], severities: Sequence[int | None]) -> None:
    """Raise unless severity 0 is that of the first set and of no other, as far as they are known.

    Args:
        names: What the sets are called.
        severities: Theirs, in the same order.

    Raises:
        InputError: Naming the set that is out of place.
    """
    if severities[0]:
        raise InputError(
            f"severity of the first set must be 0, since it is the clean one; {names[0]!r} has "
            f"{severities[0]}. Put the calibration samples as they are first."
        )
    if 0 in severities[1:]:
        position = severities.index(0, 1)
        raise InputError(
            "severity must be 1 or more for every set after the first, which is the clean one; "
            f"set {position + 1} ({names[position]!r}) has 0. Leave a second clean set out, or "
            "say None if the severity is not known."
        )
