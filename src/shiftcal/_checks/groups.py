"""Classes put together to fewer, coarser ones."""

from __future__ import annotations

from collections.abc import Mapping

from shiftcal._checks.arrays import to_array
from shiftcal._checks.names import check_classes
from shiftcal.errors import InputError


def check_groups(groups: object, *, k: int | None = None) -> dict[str, tuple[int, ...]]:
    """Two or more groups in their order: name -> its members, sorted.

    Every group has a member, and no class is in two of them; some classes may be in none.

    Args:
        groups: Mapping of names to class indices.
        k: How many classes there are, if that is known.

    Raises:
        InputError: If they are something else.
    """
    if not isinstance(groups, Mapping) or len(groups) < 2:
        came = f"{len(groups)}" if isinstance(groups, Mapping) else type(groups).__name__
        raise InputError(
            "groups must be two or more, a mapping of names to class indices such as "
            f'{{"bear": [294, 295], "bicycle": [444, 671]}}; got {came}.'
        )
    names = check_classes(list(groups), k=len(groups))
    checked: dict[str, tuple[int, ...]] = {}
    owner: dict[int, str] = {}
    for name, given in zip(names, groups.values(), strict=True):
        members = _members(name, given, k)
        for member in members:
            if owner.setdefault(member, name) != name:
                raise InputError(
                    f"a class must be in one group at most; {member} is in {owner[member]!r} and "
                    f"in {name!r}."
                )
        checked[name] = members
    return checked


def _members(name: str, given: object, k: int | None) -> tuple[int, ...]:
    found = to_array(given, name=f"group {name!r}")
    if found.ndim != 1 or not found.size or found.dtype.kind not in "iu":
        raise InputError(
            f"group {name!r} must be class indices, one or more in a row; got shape {found.shape} "
            f"of dtype {found.dtype}."
        )
    members = sorted(found.tolist())
    if len(set(members)) < len(members):
        twice = next(one for one in members if members.count(one) > 1)
        raise InputError(f"group {name!r} must name each class once; {twice} comes twice.")
    if members[0] < 0 or (k is not None and members[-1] >= k):
        limit = "0 or more" if k is None else f"from 0 to {k - 1}, since there are {k} classes"
        worst = members[0] if members[0] < 0 else members[-1]
        raise InputError(f"class indices of group {name!r} must be {limit}; got {worst}.")
    return tuple(members)
