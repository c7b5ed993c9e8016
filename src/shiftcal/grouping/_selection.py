"""What was chosen for every group of a target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from shiftcal._types import Flag
from shiftcal.methods._selection import Selection

# Flags of methods that the target is unlike all of the bank.
OUTSIDE = ("outside-range", "outside-bank")
# Groups printed before the rest is counted only.
_SHOWN = 50


@dataclass(frozen=True)
class GroupChoice:
    """How one group is calibrated.

    Attributes:
        rows: Rows of it that were seen.
        weight: Of its own choice, from 0 to 1; the rest is that of the choice for all rows.
        temperature: The temperature that will be applied, if the maps are such.
        own: What the method chose from these rows alone.
    """

    rows: int
    weight: float
    temperature: float | None
    own: Selection

    @property
    def outside(self) -> bool:
        """Whether the method said that the group is unlike all of the bank."""
        return any(map(self.own.has, OUTSIDE))


@dataclass(frozen=True)
class GroupedSelection:
    """The outcome of ``adapt`` with groups.

    Attributes:
        everything: What the method chose from all rows together: what a group of no weight gets,
            and one that was not there.
        groups: What was chosen for every group, by name, in the order they came.
        within: Standard deviation of the raw confidence of the rows of a group; ``None`` if no
            group has two rows.
        between: Standard deviation of the groups' true mean confidences.
        shrunk: Whether small groups lean on all rows; else every weight is 1.
        flags: What should be known of the groups as a whole.
    """

    everything: Selection
    groups: dict[str, GroupChoice]
    within: float | None
    between: float
    shrunk: bool
    flags: tuple[Flag, ...] = ()

    @property
    def borrowed(self) -> float | None:
        """Rows that every group borrows from the whole, ``s² / τ²``.

        A group of as many rows of its own has the weight one half. ``None`` where it is not known,
        infinite where groups do not differ, 0 where nothing is shrunk.
        """
        if not self.shrunk or len(self.groups) == 1:
            return 0.0
        if self.within is None:
            return None
        if self.between == 0:
            return math.inf
        return (self.within / self.between) ** 2

    @property
    def outside(self) -> tuple[str, ...]:
        """Groups that are unlike all of the bank, by what the method says of their own rows."""
        return tuple(name for name, choice in self.groups.items() if choice.outside)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {**asdict(self), "borrowed": self.borrowed, "outside": self.outside}

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """A header, and a row of text for every group."""
        header = ("group", "rows", "own T", "weight", "T", "own set", "flags")
        cells = [_cells(name, choice) for name, choice in self.groups.items()]
        empty = {i for i in (2, 4, 5) if all(row[i] == "-" for row in cells)}
        kept = [i for i in range(len(header)) if i not in empty]
        return tuple(header[i] for i in kept), [tuple(row[i] for i in kept) for row in cells]

    def __str__(self) -> str:
        header, rows = self.table()
        shown = [header, *rows[:_SHOWN]]
        widths = [max(len(row[i]) for row in shown) for i in range(len(header))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in shown
        ]
        if len(rows) > _SHOWN:
            lines.append(f"... and {len(rows) - _SHOWN:,} groups more")
        lines.append(f"all rows: {self.everything}")
        return "\n".join([*lines, *self._remarks()])

    def _remarks(self) -> Iterator[str]:
        if self.outside:
            yield f"outside the bank: {', '.join(self.outside[:_SHOWN])}"
        yield from (f"{flag.code}: {flag.message}" for flag in self.flags)

    def __repr__(self) -> str:
        return f"<{self.everything.method} selections of {len(self.groups)} groups>"


def _cells(name: str, choice: GroupChoice) -> tuple[str, ...]:
    own = choice.own
    return (
        name,
        f"{choice.rows:,}",
        _temperature(own.temperature),
        f"{choice.weight:.2f}",
        _temperature(choice.temperature),
        own.set_name or "-",
        ", ".join(flag.code for flag in own.flags),
    )


def _temperature(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
