"""What a corruption is known by in files that outlast a run."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable

from shiftcal.corruptions._strengths import Strengths
from shiftcal.corruptions.base import Corruption
from shiftcal.corruptions.frost import Frost
from shiftcal.errors import InputWarning


def lasting_identity(corruption: Corruption, *, lasting: bool = True) -> str:
    """The identity of a corruption, or a random one, so that nothing of it is ever used again.

    Args:
        corruption: The corruption.
        lasting: Whether results may be used by a later run; that they cannot is warned of then.
    """
    found = corruption.identity
    if found is not None:
        return found
    if lasting:
        warnings.warn(
            f"it cannot be told whether the corruption {corruption.name!r} is the same as in an "
            "earlier run, so that nothing it makes in this run can be used by a later one. Give it "
            f"a name that changes with it: Custom(function, name={corruption.name!r}, "
            f"key='{corruption.name}-v1'), or the attribute key to a class of your own.",
            InputWarning,
            stacklevel=4,
        )
    return f"{corruption.description} (unknown {secrets.token_hex(16)})"


def identities(
    corruptions: Iterable[Corruption | None], *, lasting: bool = True
) -> dict[Corruption, str]:
    """What corruptions are known by for a whole run.

    A function or an object may keep something of its calls, so it is asked at the start. Frost
    looks at its photographs whenever it is asked and is left out: they may be exchanged meanwhile.
    """
    asked = {c: None for c in corruptions if c is not None and not _is_frost(c)}
    return {corruption: lasting_identity(corruption, lasting=lasting) for corruption in asked}


def _is_frost(corruption: Corruption) -> bool:
    inner = corruption.corruption if isinstance(corruption, Strengths) else corruption
    return isinstance(inner, Frost)
