"""What comes in: batches of rows, and pieces of the input that are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shiftcal._types import InputKind

# The least room for a line, whatever the number of rows and classes.
_LEAST_LINE = 1 << 20
# Bytes of the longest decimal number anybody writes, and of what may stand beside a row.
_NUMBER, _BESIDE = 32, 256


@dataclass(frozen=True)
class Batch:
    """Rows that came together; their values are not looked at yet.

    Attributes:
        values: ``(n, k)`` numbers.
        where: Where they stood, for messages: ``"batch 3 (bytes 400 to 799)"``.
        kind: What the numbers are; ``None`` if nothing says so, and they are what the monitor
            takes.
        at: Seconds of the sender's clock.
        ids: A name for every row.
        classes: Names of the columns, where they have any.
        file: Name of the file they are all of, in a followed folder.
    """

    values: NDArray[np.generic]
    where: str
    kind: InputKind | None = None
    at: float | None = None
    ids: tuple[str | int, ...] | None = None
    classes: tuple[str, ...] | None = None
    file: str | None = None


@dataclass(frozen=True)
class Broken:
    """A piece of the input that is no batch.

    Attributes:
        where: As of a batch; empty if the reason says it.
        reason: The rule, what came, what to do.
        final: Why nothing after it can be read; empty if the next piece can.
        file: As of a batch.
    """

    where: str
    reason: str
    final: str = ""
    file: str | None = None

    def __str__(self) -> str:
        text = f"{self.where}: {self.reason}" if self.where else self.reason
        return f"{text} {self.final}" if self.final else text


Item: TypeAlias = Batch | Broken


@dataclass(frozen=True)
class Limits:
    """How large a batch may be.

    Attributes:
        rows: Most rows of a batch.
        classes: Columns there must be.
    """

    rows: int
    classes: int

    @property
    def line(self) -> int:
        """Most bytes of a line that holds a batch as text."""
        return max(_LEAST_LINE, self.rows * (self.classes * _NUMBER + _BESIDE))

    @property
    def body(self) -> int:
        """Most bytes of a batch in binary, with names of its rows."""
        return max(_LEAST_LINE, self.rows * (self.classes * 8 + _BESIDE))

    def refused(self, shape: tuple[Any, ...]) -> str:
        """Why an array of this shape is no batch; empty if it may be one."""
        if len(shape) != 2:
            return (
                f"a batch must have shape (rows, {self.classes}), one column per class; got shape "
                f"{shape}. Send one row as shape (1, {self.classes})."
            )
        n, k = shape
        if k != self.classes:
            return (
                f"a batch must have {self.classes} columns, one per class of the bank; got {k}. "
                "Both must come from one model."
            )
        if n < 1:
            return "a batch must have at least one row; this one is empty. Leave it out."
        if n > self.rows:
            return (
                f"a batch must have at most {self.rows:,} rows; this one says {n:,}. Send smaller "
                "batches, or raise --max-batch-rows."
            )
        return ""
