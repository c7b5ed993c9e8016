"""Accuracy and calibration as a torchmetrics metric of fixed size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shiftcal.checks import check_choice, check_count
from shiftcal.errors import InputError, require
from shiftcal.scores import Scores
from shiftcal.scoring import ScoreStatistics

_NEEDED_BY = "CalibrationMetrics"
torch: Any = require("torch", extra="torchmetrics", needed_by=_NEEDED_BY)
torchmetrics: Any = require("torchmetrics", extra="torchmetrics", needed_by=_NEEDED_BY)

# Sums are whole numbers of up to 1,208 bits: 2**33 logits up to 1e30 in units of 2**-1074. As
# digits of 32 bits in tensors of 64 they add up without a carry, two billion updates long.
_DIGITS = 40


class CalibrationMetrics(torchmetrics.Metric):
    """Accuracy, mean confidence, ECE, NLL and Brier score of all rows, without keeping the rows.

    The states are those of :class:`~shiftcal.ScoreStatistics`, as whole numbers: 0.5 MB for any
    number of rows, and any split into batches and processes gives the same bits.

    Args:
        num_classes: Number of classes.
        input: What ``update`` gets: ``"logits"`` or ``"probabilities"``.
        **options: As for every ``torchmetrics.Metric``.
    """

    full_state_update = False
    is_differentiable = False
    digits: Any
    counts: Any
    minimum: Any
    maximum: Any

    def __init__(self, num_classes: int, *, input: str = "logits", **options: Any) -> None:
        super().__init__(**options)
        self.num_classes = check_count(num_classes, name="num_classes", least=2)
        self.input = check_choice(input, ("logits", "probabilities"), name="input")
        one = ScoreStatistics.of_rows(np.zeros((1, 2)), np.zeros(1, np.int64))
        self._names, self._rungs = list(one.sums), len(one.ladder)
        self._cells = one.cells.shape[1]
        digits = torch.zeros((len(one.sums) + self._rungs, _DIGITS), dtype=torch.int64)
        self.add_state("digits", digits, "sum")
        width = self._cells + one.width.shape[1]
        self.add_state("counts", torch.zeros((3, width), dtype=torch.int64), "sum")
        # Floats from 0 to 1 are in the order of their bits; Apple's devices have no float64.
        for name, empty in (("min", 2.0), ("max", -1.0)):
            bits = np.full(self._cells, empty).view(np.int64)
            self.add_state(f"{name}imum", torch.from_numpy(bits), name)

    def update(self, preds: Any, target: Any) -> None:
        """Count rows: ``preds`` ``(n, num_classes)`` and ``target`` ``(n,)`` class indices."""
        values = preds.detach().cpu()
        values = values.double() if values.dtype == torch.bfloat16 else values
        labels = target.detach().cpu().numpy()
        part = ScoreStatistics.of(Scores(values.numpy(), self.input, labels=labels))
        if part.k != self.num_classes:
            raise InputError(f"preds must have {self.num_classes} columns; got {part.k}.")
        digits = np.stack([_digits_of(x) for x in (*part.sums.values(), *part.ladder)])
        counts = np.concatenate([part.cells, part.width], axis=1)
        least, most = (
            torch.from_numpy(ends.copy().view(np.int64)).to(self.counts.device)
            for ends in part.ends
        )
        self.digits += torch.from_numpy(digits).to(self.digits.device)
        self.counts += torch.from_numpy(counts).to(self.counts.device)
        self.minimum = torch.minimum(self.minimum, least)
        self.maximum = torch.maximum(self.maximum, most)

    def compute(self) -> dict[str, Any]:
        """``accuracy``, ``mean_confidence``, ``ece``, ``nll`` and ``brier``; NaN without rows."""
        s = self._read()
        names = ("accuracy", "mean_confidence", "ece", "nll", "brier")
        values = [s.accuracy(), s.mean_confidence, s.ece(), s.nll(), s.brier()] if s.n else []
        device = self.counts.device
        return {
            name: torch.tensor(value, dtype=torch.float32, device=device)
            for name, value in zip(names, values or [math.nan] * len(names), strict=True)
        }

    def statistics(self) -> ScoreStatistics:
        """The statistics of the rows of all processes, for other metrics and diagrams.

        Every process has to call it.
        """
        with self.sync_context():
            return self._read()

    def _read(self) -> ScoreStatistics:
        totals = [sum(int(x) << 32 * j for j, x in enumerate(row)) for row in self.digits.tolist()]
        counts = self.counts.cpu().numpy().copy()
        ends = np.stack([self.minimum.cpu().numpy(), self.maximum.cpu().numpy()])
        return ScoreStatistics(
            self.num_classes,
            None,
            dict(zip(self._names, totals[: len(self._names)], strict=True)),
            tuple(totals[len(self._names) :]),
            counts[:, : self._cells],
            ends.view(np.float64),
            counts[:, self._cells :],
        )


def _digits_of(value: int) -> Any:
    """Digits of 32 bits, the lowest first, each with the sign of the number."""
    digits = np.frombuffer(abs(value).to_bytes(4 * _DIGITS, "little"), "<u4").astype(np.int64)
    return -digits if value < 0 else digits
