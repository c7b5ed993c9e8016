"""The running state: all that has to be kept for a stream to go on as if nothing had happened."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError
from shiftcal.monitoring._choices import Choice
from shiftcal.monitoring._columns import n_columns
from shiftcal.monitoring._update import STATES, State

FORMAT = "shiftcal-monitor-state"
VERSION = 1
_COUNTS = ("rows", "head", "filled", "pending", "calm", "crossed")
# No sum of a block is larger.
_LARGEST = 1 << 62


@dataclass
class Running:
    """Sums, counts and the state.

    Attributes:
        ring: ``(b, 2 k + 4)`` sums of the last blocks.
        partial: ``(2 k + 4,)`` of the block that is not full yet.
        rows: Rows that came, in all.
        head: Where in the ring the next block goes.
        filled: Blocks in the ring.
        pending: Rows in the block that is not full yet.
        state: The state.
        calm: See :class:`~shiftcal.monitoring._phases.Phase`.
        crossed: See there.
        statistic: Of the last look.
        temperature: In use; ``None`` if the map is no temperature.
        which: Number of the map in use, if there are several.
        outside: Of the last look.
    """

    ring: NDArray[np.int64]
    partial: NDArray[np.int64]
    rows: int
    head: int
    filled: int
    pending: int
    state: State
    calm: int
    crossed: int
    statistic: float
    temperature: float | None
    which: int | None
    outside: float

    @classmethod
    def fresh(cls, blocks: int, k: int, start: Choice) -> Self:
        """Before the first row."""
        columns = n_columns(k)
        return cls(
            ring=np.zeros((blocks, columns), np.int64),
            partial=np.zeros(columns, np.int64),
            rows=0,
            head=0,
            filled=0,
            pending=0,
            state="filling",
            calm=0,
            crossed=0,
            statistic=0.0,
            temperature=start.temperature,
            which=start.which,
            outside=0.0,
        )

    def copy(self) -> Self:
        """One that the stream does not change."""
        other = copy.copy(self)
        other.ring, other.partial = self.ring.copy(), self.partial.copy()
        return other

    def to_plain(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "ring": self.ring.tolist(), "partial": self.partial.tolist()}

    def check(self, *, blocks: int, block: int, k: int, maps: int) -> None:
        """Refuse what no stream leads to.

        Args:
            blocks: Blocks of the window.
            block: Rows of each.
            k: Number of classes.
            maps: How many maps there are to choose from; 0 if there is no choice among maps.

        Raises:
            InputError: That names the part.
        """
        self._check_sums(blocks, n_columns(k))
        self._check_counts(blocks, block)
        if self.state not in STATES:
            raise _wrong("state", f"one of {', '.join(STATES)}", self.state)
        self._check_choice(maps)

    def _check_sums(self, blocks: int, columns: int) -> None:
        for name, shape in (("ring", (blocks, columns)), ("partial", (columns,))):
            array = getattr(self, name)
            if array.shape != shape or array.dtype != np.int64:
                raise _wrong(name, f"whole numbers of shape {shape}", array.shape)
            if array.min() < 0 or array.max() > _LARGEST:
                raise _wrong(name, "sums of a block, not negative", int(array.min()))

    def _check_counts(self, blocks: int, block: int) -> None:
        most = {"head": blocks - 1, "filled": blocks, "pending": block - 1}
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= most.get(name, 1 << 62):
                raise _wrong(name, f"a whole number of 0 to {most.get(name, 'any')}", value)
        seen = min(self.rows // block, blocks)
        if self.rows % block != self.pending or self.filled != seen:
            raise _wrong("rows", f"those of {self.filled} blocks and {self.pending}", self.rows)
        if self.head != self.rows // block % blocks:
            raise _wrong("head", f"that of {self.rows} rows", self.head)

    def _check_choice(self, maps: int) -> None:
        for name in ("statistic", "outside"):
            value = getattr(self, name)
            if type(value) is not float or not 0 <= value < math.inf:
                raise _wrong(name, "a number of at least 0", value)
        t, which = self.temperature, self.which
        if t is not None and (type(t) is not float or not 0 < t < math.inf):
            raise _wrong("temperature", "a number above 0", t)
        chosen = which is None if not maps else type(which) is int and 0 <= which < maps
        if not chosen:
            raise _wrong("which", f"one of {maps} maps" if maps else "None", which)


def from_plain(values: object) -> Running:
    """A running state from plain values; not checked yet to be that of a monitor.

    Raises:
        InputError: If they are none.
    """
    names = [f.name for f in fields(Running)]
    if not isinstance(values, Mapping) or set(values) != set(names):
        raise InputError(
            "a monitor's state must have the parts that state_dict gives: "
            f"{', '.join(names)}; got {_parts(values)}."
        )
    arrays = {name: _whole_numbers(name, values[name]) for name in ("ring", "partial")}
    return Running(**{**values, **arrays})


def _whole_numbers(name: str, values: object) -> NDArray[np.int64]:
    try:
        array = np.array(values)
    except ValueError:
        raise _wrong(name, "rows of one length", "others") from None
    if array.dtype != np.int64:
        raise _wrong(name, "whole numbers", f"numbers of type {array.dtype}")
    return array


def _parts(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, Mapping) else type(values).__name__


def _wrong(name: str, rule: str, got: object) -> InputError:
    return InputError(
        f"{name} of a monitor's state must be {rule}; got {got}. "
        "The state is damaged, or that of another monitor."
    )
