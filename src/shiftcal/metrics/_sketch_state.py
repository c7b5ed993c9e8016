"""What a sketch holds: whole numbers only, so that any order of rows and shards gives the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError
from shiftcal.numerics.sketch.cell_sums import CellSums

_FORMAT = 1
# Fineness of the cells of a class: columns of k classes are k tables.
_CLASS_PRECISION = 3
# Sums of losses are whole multiples of these; the greatest loss times the most rows still fits.
_UNITS = {"top1_brier": 2.0**-30, "brier": 2.0**-29, "nll": 2.0**-23}
_TOTALS = ("rows", "whole_rows", "columns", *_UNITS)
_SETTINGS = ("format", "precision", "width_bins", "n_classes")
_MOST_ROWS = (1 << 33) - 1


@dataclass(eq=False)
class SketchState:
    """Cell sums and totals.

    Attributes:
        top1: Cells of the top-1 confidence.
        classes: Cells of every class's column, if they are kept.
        totals: Rows, rows seen whole, columns they have, and sums of losses in their units.
    """

    top1: CellSums
    classes: CellSums | None
    totals: dict[str, int]

    @classmethod
    def empty(cls, precision: int, width_bins: int, n_classes: int) -> Self:
        """Nothing counted yet."""
        classes = (
            CellSums.empty(precision=_CLASS_PRECISION, width_bins=width_bins, series=n_classes)
            if n_classes
            else None
        )
        return cls(
            top1=CellSums.empty(precision=precision, width_bins=width_bins),
            classes=classes,
            totals=dict.fromkeys(_TOTALS, 0),
        )

    @property
    def rows(self) -> int:
        """Rows counted."""
        return self.totals["rows"]

    @property
    def settings(self) -> tuple[int, ...]:
        """What two states must share to be added."""
        n_classes = 0 if self.classes is None else len(self.classes.count)
        return (_FORMAT, self.top1.precision, self.top1.width.shape[2], n_classes)

    def add_rows(self, n: int) -> None:
        """Count ``n`` rows more, if the sums cannot overflow by it."""
        if self.rows + n > _MOST_ROWS:
            raise InputError(
                f"a sketch counts at most {_MOST_ROWS:,} rows, and this would make "
                f"{self.rows + n:,}. Keep several and average what they say."
            )
        self.totals["rows"] += n

    def add_top1_losses(self, losses: NDArray[np.float64]) -> None:
        """Sum the squared losses of the top-1 confidence."""
        self.totals["top1_brier"] += _fixed_sum(losses, "top1_brier")

    def add_losses(self, nll: NDArray[np.float64], brier: NDArray[np.float64]) -> None:
        """Sum the losses of whole rows."""
        self.totals["whole_rows"] += len(nll)
        self.totals["nll"] += _fixed_sum(nll, "nll")
        self.totals["brier"] += _fixed_sum(brier, "brier")

    def mean_loss(self, name: str) -> float:
        """A sum of losses over the rows it was made of."""
        if name == "top1_brier":
            self.require_rows()
        else:
            self.require_whole_rows(name)
        return self.totals[name] / self.rows * _UNITS[name]

    def require_rows(self) -> None:
        """Refuse to judge nothing."""
        if self.rows == 0:
            raise InputError("this sketch has counted no rows yet; call update first.")

    def require_whole_rows(self, name: str) -> None:
        """Refuse what the rows counted cannot tell."""
        self.require_rows()
        whole = self.totals["whole_rows"]
        if whole != self.rows:
            raise InputError(
                f"{name} needs whole rows of probabilities; of the {self.rows:,} rows counted "
                f"{self.rows - whole:,} came by update_top1. Use update(probs, labels)."
            )

    def require_columns(self, k: int) -> None:
        """Refuse rows of another number of classes than before."""
        known = self.totals["columns"] or (self.settings[3] or k)
        if k != known:
            raise InputError(
                f"probabilities must have {known} columns like the rows before; got {k}. "
                "Keep a sketch for each model."
            )
        self.totals["columns"] = k

    def merge(self, other: SketchState) -> None:
        """Add another state to this one."""
        if self.settings != other.settings:
            raise InputError(
                "sketches can be added if they were made alike; these have "
                f"{_named(self.settings)} and {_named(other.settings)}."
            )
        if other.totals["columns"]:
            self.require_columns(other.totals["columns"])
        self.add_rows(other.rows)
        for name in ("whole_rows", *_UNITS):
            self.totals[name] += other.totals[name]
        self.top1.merge(other.top1)
        if self.classes is not None and other.classes is not None:
            self.classes.merge(other.classes)

    def copy(self) -> SketchState:
        """An independent copy."""
        return self.from_arrays({name: a.copy() for name, a in self.to_arrays().items()})

    def same(self, other: SketchState) -> bool:
        """Whether both hold the same, bit for bit."""
        mine, theirs = self.to_arrays(), other.to_arrays()
        return self.settings == other.settings and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays, by name."""
        arrays: dict[str, NDArray[Any]] = {
            "settings": np.array(self.settings, dtype=np.int64),
            "totals": np.array([self.totals[name] for name in _TOTALS], dtype=np.int64),
        }
        arrays |= {f"top1_{name}": a for name, a in self.top1.arrays().items()}
        if self.classes is not None:
            arrays |= {f"classes_{name}": a for name, a in self.classes.arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The state that :meth:`to_arrays` gave."""
        settings = arrays["settings"].tolist() if "settings" in arrays else []
        if len(settings) != len(_SETTINGS) or settings[0] != _FORMAT:
            raise InputError(
                f"these are not the arrays of a MetricSketch of format {_FORMAT}: settings are "
                f"{settings}. They must come from to_arrays of this version or an older one."
            )
        state = cls.empty(*settings[1:])
        wanted = state.to_arrays()
        for name, array in wanted.items():
            given = arrays.get(name)
            if given is None or given.shape != array.shape or given.dtype != array.dtype:
                raise InputError(
                    f"array {name!r} of a MetricSketch is missing or damaged; it must have shape "
                    f"{array.shape} and dtype {array.dtype}."
                )
        state.totals = dict(zip(_TOTALS, arrays["totals"].tolist(), strict=True))
        for table, prefix in ((state.top1, "top1_"), (state.classes, "classes_")):
            if table is not None:
                for name in table.arrays():
                    setattr(table, name, np.array(arrays[prefix + name]))
        return state


def _fixed_sum(losses: NDArray[np.float64], name: str) -> int:
    return int(np.rint(losses / _UNITS[name]).astype(np.int64).sum())


def _named(settings: tuple[int, ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(_SETTINGS, settings, strict=True))
