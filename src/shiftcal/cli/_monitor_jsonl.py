"""JSON lines: each line a row, a batch of rows, or an object with either."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shiftcal.cli._monitor_batches import Batch, Broken, Item, Limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shiftcal._types import InputKind
    from shiftcal.cli._monitor_intake import Intake

_FORMS = (
    'a line must be a row [1.5, -0.3, ...], a batch [[...], [...]], or an object {"logits": ...}'
)
MARK = b"\xef\xbb\xbf"  # some editors begin UTF-8 with it
_KINDS: tuple[InputKind, ...] = ("logits", "probabilities")


def jsonl_batches(intake: Intake, limits: Limits) -> Iterator[Item]:
    """Every line that is not blank, as a batch or as broken; the next line can always be read."""
    number = 0
    while True:
        line, whole = intake.line(limits.line)
        if not line:
            return
        number += 1
        where = f"line {number}"
        if not whole:
            yield Broken(
                where,
                f"a line must have at most {limits.line:,} bytes; this one has more. Send smaller "
                "batches, or raise --max-batch-rows.",
            )
        elif text := (line.removeprefix(MARK) if number == 1 else line).strip(b" \t\r\n"):
            yield _parsed(text, limits, where)


def _parsed(text: bytes, limits: Limits, where: str) -> Item:
    try:
        return _batch(json.loads(text.decode("utf-8")), limits, where)
    except UnicodeDecodeError as error:
        return Broken(where, f"a line must be UTF-8 text; byte {error.start} of it is not.")
    except RecursionError:
        return Broken(where, f"{_FORMS}; this one is nested too deep.")
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}, at character {error.pos + 1}"
        return Broken(where, f"{_FORMS}; this is no JSON ({reason}).")
    except ValueError as error:
        return Broken(where, str(error))


def _batch(found: Any, limits: Limits, where: str) -> Batch:
    if isinstance(found, list):
        return Batch(_matrix(found, limits)[0], where)
    if not isinstance(found, dict):
        raise ValueError(f"{_FORMS}; this one is {_shown(found)}.")
    kinds = [kind for kind in _KINDS if kind in found]
    if len(kinds) != 1:
        names = ", ".join(repr(str(key)[:40]) for key in list(found)[:8]) or "none"
        raise ValueError(
            "an object must have either 'logits' or 'probabilities', as a row or a batch; its "
            f"names are {names}."
        )
    if not isinstance(found[kinds[0]], list):
        raise ValueError(
            f"{kinds[0]!r} must be a row or a batch of them; it is {_shown(found[kinds[0]])}."
        )
    values, is_row = _matrix(found[kinds[0]], limits)
    return Batch(
        values,
        where,
        kind=kinds[0],
        at=_at(found.get("at")),
        ids=_ids(found.get("id"), len(values), is_row=is_row),
    )


def _matrix(found: list[Any], limits: Limits) -> tuple[NDArray[np.generic], bool]:
    """The rows, and whether it was one without brackets of its own."""
    import numpy as np

    try:
        values = np.array(found)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"every row must have {limits.classes} numbers, one per class; these rows differ in "
            "length or depth, or a number is too large."
        ) from error
    if values.dtype.kind not in "iuf" and values.size:
        raise ValueError(
            "a row must be numbers; this batch also holds something else (text, null, true or "
            "false, or a number too large)."
        )
    is_row = values.ndim == 1
    values = values.reshape(1, -1) if is_row and values.size else values
    if reason := limits.refused(values.shape):
        raise ValueError(reason)
    return values, is_row


def _at(at: Any) -> float | None:
    if at is None:
        return None
    is_number = isinstance(at, (int, float)) and not isinstance(at, bool)
    # A whole number in JSON may have hundreds of digits, more than any float.
    if not is_number or not abs(at) <= sys.float_info.max:
        raise ValueError(f"'at' must be a number of seconds; it is {_shown(at)}.")
    return float(at)


def _ids(ids: Any, n: int, *, is_row: bool) -> tuple[str | int, ...] | None:
    if ids is None:
        return None
    given = [ids] if is_row else ids
    if not isinstance(given, list) or len(given) != n:
        came = f"a list of {len(given)}" if isinstance(given, list) else _shown(given)
        raise ValueError(
            f"'id' must name every row: one name for a row, a list of {n} for this batch; it is "
            f"{came}."
        )
    for name in given:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise ValueError(f"'id' must be text or a whole number; one is {_shown(name)}.")
    return tuple(given)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
