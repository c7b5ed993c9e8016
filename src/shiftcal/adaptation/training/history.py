"""``history.csv``: how the losses went."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from shiftcal._files import atomic_write
from shiftcal.errors import FileError

FILE = "history.csv"


class Row(NamedTuple):
    """Means over the iterations since the row before.

    Attributes:
        step: Iterations done.
        lr: Learning rate of the last of them, of what was added to the backbone.
        classification: Cross-entropy on the source.
        transfer: Transfer loss, before it is multiplied.
        total: What is minimised.
        source_validation: Accuracy on validation images of the source at that moment, if measured.
    """

    step: int
    lr: float
    classification: float
    transfer: float
    total: float
    source_validation: float | None = None


@dataclass
class Tally:
    """Sums of the losses since the last row, one iteration after the other.

    Attributes:
        steps: How many iterations.
        sums: Of the three losses, in the order of a row.
    """

    steps: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def add(self, losses: Sequence[float]) -> None:
        """Count one more iteration."""
        self.steps += 1
        for i, loss in enumerate(losses):
            self.sums[i] += loss

    def means(self) -> tuple[float, float, float]:
        """Means of the three losses; 0 if there was no iteration."""
        classification, transfer, total = (one / max(self.steps, 1) for one in self.sums)
        return classification, transfer, total


class History:
    """The file, a line more for every row.

    Args:
        folder: Where it is; ``None`` if another process writes it.
        rows: Those that there are; whatever else is in the file is of iterations that will be done
            again, and is dropped.

    Raises:
        FileError: If it cannot be written.
    """

    def __init__(self, folder: Path | None, rows: Iterable[Row] = ()) -> None:
        self.rows = list(rows)
        self._path = None if folder is None else folder / FILE
        if self._path is None:
            return
        with atomic_write(self._path, durable=False) as temporary:
            lines = [",".join(Row._fields), *map(_line, self.rows)]
            temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def append(self, row: Row) -> None:
        """Add a row.

        Raises:
            FileError: If it cannot be written.
        """
        self.rows.append(row)
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8", newline="") as file:
                file.write(_line(row) + "\n")
        except OSError as error:
            raise FileError(
                f"{self._path} could not be written: {error.strerror or error}. "
                "Make room, and start the training again: it goes on from its last checkpoint."
            ) from error


def read_history(folder: Path) -> list[Row]:
    """The rows of a training.

    Raises:
        FileError: If the file is missing or damaged.
    """
    path = folder / FILE
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_row(cells) for cells in csv.DictReader(file)]
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror or error}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{path} is not a training's history, or it is damaged: {type(error).__name__}: "
            f"{error}."
        ) from error


def _line(row: Row) -> str:
    # Nine digits tell all float32 numbers apart.
    told = [f"{number:.9g}" for number in row[1:5]]
    accuracy = row.source_validation
    return ",".join([str(row.step), *told, "" if accuracy is None else f"{accuracy:.9g}"])


def _row(cells: dict[str, str]) -> Row:
    accuracy = cells["source_validation"]
    lr, classification, transfer, total = (float(cells[name]) for name in Row._fields[1:5])
    measured = float(accuracy) if accuracy else None
    return Row(int(cells["step"]), lr, classification, transfer, total, measured)
