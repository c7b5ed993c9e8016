"""The contract of a metric: what it reads, in which direction it is good, and its range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from numpy.typing import NDArray

from shiftcal._checks import check_confidence, check_correct, check_labels, check_probs
from shiftcal._types import Confidence, Correct, Labels, Probs

Function = TypeVar("Function", bound=Callable[..., float])


@dataclass(frozen=True)
class Facts:
    """What tables, plots and the bootstrap need to know about a metric.

    Attributes:
        reads: ``"top1"`` for ``(confidence, correct)``, ``"full"`` for ``(probs, labels)``.
        better: Whether a lower or a higher value is better.
        lower: Smallest possible value.
        upper: Largest possible value, ``inf`` if there is none.
        calibration: Whether it is a calibration error, which is 0 for a calibrated model but not on
            a finite sample of its predictions.
        rows: If the metric is the mean of one number per row: those numbers, from checked arrays.
            A resample then needs the numbers only, not the rows.
    """

    reads: Literal["top1", "full"]
    better: Literal["lower", "higher"] = "lower"
    lower: float = 0.0
    upper: float = 1.0
    calibration: bool = False
    rows: Callable[[Any, Any], NDArray[Any]] | None = None


def metric(facts: Facts) -> Callable[[Function], Function]:
    """Attach ``facts`` to a metric function; the function itself is unchanged."""

    def attach(function: Function) -> Function:
        function.facts = facts  # type: ignore[attr-defined]
        return function

    return attach


def facts_of(function: Callable[..., Any]) -> Facts:
    """The facts of a metric function."""
    return function.facts  # type: ignore[attr-defined]


def check_top1(confidence: object, correct: object) -> tuple[Confidence, Correct]:
    """The two arrays of a top-1 metric, checked."""
    c = check_confidence(confidence)
    return c, check_correct(correct, n=len(c))


def check_full(probs: object, labels: object) -> tuple[Probs, Labels]:
    """The two arrays of a metric on whole rows of probabilities, checked."""
    p = check_probs(probs)
    return p, check_labels(labels, n=p.shape[0], k=p.shape[1])
