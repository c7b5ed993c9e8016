"""What a fitted method does to rows: confidences, predictions, and how they fit the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats, Labels, Logits
from shiftcal.methods import Method
from shiftcal.metrics import bin_table, bootstrap, ece
from shiftcal.numerics.softmax import softmax
from shiftcal.report.html._shares import share
from shiftcal.report.html.evidence import Bin
from shiftcal.report.html.parts import Judging, Ranged

# Elements of probabilities held at once.
_BLOCK = 1 << 20
# Rows drawn for one interval, all draws together; of more rows fewer draws tell the same, since
# their ends differ less. The fewest are what the rank test behind an interval needs, and some.
_MOST_DRAWN, _FEWEST = 10_000_000, 50
# Bins of equal width in the strip of counts below a diagram.
STRIP = 20


@dataclass(frozen=True, eq=False)
class Outputs:
    """Calibrated confidence and predicted class of every row."""

    confidence: NDArray[np.float64]
    predicted: NDArray[np.intp]

    def correct(self, labels: Labels) -> NDArray[np.bool_]:
        """Which rows are right."""
        return np.asarray(self.predicted == labels)


def outputs(method: Method, values: Floats) -> Outputs:
    """Of an adapted method, some rows at a time.

    Args:
        method: Adapted.
        values: ``(n, k)`` of the kind the method takes.
    """
    n, k = values.shape
    confidence, predicted = np.empty(n), np.empty(n, dtype=np.intp)
    rows = max(1, _BLOCK // k)
    for start in range(0, n, rows):
        probs = method.predict_proba(values[start : start + rows])
        some = slice(start, start + len(probs))
        predicted[some] = probs.argmax(axis=1)
        confidence[some] = probs.max(axis=1)
    return Outputs(confidence, predicted)


def of_kind(logits: Logits, input: str) -> Floats:
    """Logits as a method takes them that was made for ``input``."""
    return logits if input == "logits" else softmax(logits)


def diagram(made: Outputs, labels: Labels, judging: Judging) -> tuple[Bin, ...]:
    """The bins of a reliability diagram, with exact intervals of the accuracy in each."""
    table = bin_table(made.confidence, made.correct(labels), n_bins=judging.n_bins)
    return tuple(_bin(table.to_dict(), i, level=judging.level) for i in range(len(table)))


def _bin(columns: dict[str, list[float | None]], i: int, *, level: float) -> Bin:
    lower, upper, count = columns["lower"][i], columns["upper"][i], columns["count"][i]
    assert lower is not None
    assert upper is not None
    assert count is not None
    confidence, accuracy = columns["confidence"][i], columns["accuracy"][i]
    if accuracy is None:
        return Bin(lower, upper, int(count), None, None, None, None)
    told = share(accuracy * count, count, level=level)
    return Bin(lower, upper, int(count), confidence, accuracy, told.low, told.high)


def strip(confidence: NDArray[np.float64]) -> tuple[float, ...]:
    """Shares of rows in bins of equal width."""
    counts, _ = np.histogram(confidence, bins=STRIP, range=(0.0, 1.0))
    return tuple((counts / len(confidence)).tolist())


def draws_for(n: int, judging: Judging) -> int:
    """How often ``n`` rows are drawn for an interval."""
    return min(judging.n_resamples, max(_FEWEST, _MOST_DRAWN // n))


def calibration_error(made: Outputs, labels: Labels, judging: Judging) -> Ranged:
    """ECE, with its bootstrap interval where there can be one."""
    correct = made.correct(labels)
    if judging.n_resamples == 0 or len(labels) < 2:
        return Ranged(ece(made.confidence, correct, n_bins=judging.n_bins))
    told = bootstrap(
        ece,
        made.confidence,
        correct,
        n_resamples=draws_for(len(labels), judging),
        level=judging.level,
        seed=judging.seed,
        n_bins=judging.n_bins,
    )
    return Ranged(told.value, told.low, told.high)
