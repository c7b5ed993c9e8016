"""An estimated accuracy, what it was made of, and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from shiftcal._html import facts, piece, remarks
from shiftcal._types import Flag


@dataclass(frozen=True)
class AccuracyEstimate:
    """The accuracy of a model on unlabelled data, estimated.

    Attributes:
        value: The estimate, a fraction.
        low: Lower end of the interval, at least 0.
        high: Upper end, at most 1.
        level: Coverage aimed at, such as 0.95.
        n_target: Rows of the target.
        estimator: Name of the estimator.
        details: What the interval is made of (``sampling_sd``, ``calibration_sd`` and, where it
            could be measured, ``shift_error`` and ``shift_fits``, the number of fits it is from),
            and further numbers of the estimator, by name.
        flags: What should be known before the estimate is trusted.
    """

    value: float
    low: float
    high: float
    level: float
    n_target: int
    estimator: str
    details: dict[str, float] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()

    def has(self, code: str) -> bool:
        """Whether a flag of this code was raised."""
        return any(flag.code == code for flag in self.flags)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        value, low, high = (100 * x for x in (self.value, self.low, self.high))
        return f"estimated accuracy {value:.1f} % ({low:.1f} to {high:.1f})"

    def __repr__(self) -> str:
        return f"<{self.estimator}: {self}>"

    def _repr_html_(self) -> str:
        told = [
            ("interval", f"{self.low:.4f} to {self.high:.4f}, at {100 * self.level:g} %"),
            ("rows of the target", f"{self.n_target:,}"),
            *((name.replace("_", " "), f"{value:.4g}") for name, value in self.details.items()),
        ]
        flags = remarks((flag.code, flag.message) for flag in self.flags)
        return piece(f"{self.estimator}: {self}", facts(told), flags)


@dataclass(frozen=True)
class LeftOut:
    """A set of the bank that was taken for a target after a fit without its corruption.

    Attributes:
        group: Number of the fit, from 0: sets that were left out together have the same.
        name: Name of the set.
        accuracy: What it is.
        estimate: What was estimated.
    """

    group: int
    name: str
    accuracy: float
    estimate: float


@dataclass(frozen=True)
class Point:
    """An estimate before its interval.

    Attributes:
        value: The estimate.
        sampling_sd: Its standard deviation over draws of the target.
        calibration_sd: Its standard deviation over draws of the calibration samples.
        details: Further numbers, by name.
        flags: What was noticed.
        draws: What the accuracy may be, drawn; ``None`` if no more than the deviations is known.
    """

    value: float
    sampling_sd: float
    calibration_sd: float
    details: dict[str, float] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    draws: NDArray[np.float64] | None = None


def shift_error(left_out: Sequence[LeftOut]) -> dict[str, float]:
    """Root mean square error on the sets left out, and how many fits tell it; empty if none."""
    if not left_out:
        return {}
    squares = [(out.estimate - out.accuracy) ** 2 for out in left_out]
    fits = len({out.group for out in left_out})
    return {"shift_error": float((sum(squares) / len(squares)) ** 0.5), "shift_fits": float(fits)}


def half_width(point: Point, shift: Mapping[str, float], level: float) -> float:
    """Half of an interval: ``sqrt(z² (s² + c²) + t² e²)``, without ``e`` if it is not known."""
    q = (1 + level) / 2
    half = NormalDist().inv_cdf(q) * math.hypot(point.sampling_sd, point.calibration_sd)
    if not shift:
        return half
    return math.hypot(half, float(stdtrit(shift["shift_fits"], q)) * shift["shift_error"])


def ends(point: Point, shift: Mapping[str, float], level: float) -> tuple[float, float]:
    """Both ends of an interval: quantiles of the draws, held around the value, if there are any."""
    if point.draws is None:
        half = half_width(point, shift, level)
        return point.value - half, point.value + half
    low, high = np.quantile(point.draws, [(1 - level) / 2, (1 + level) / 2])
    return min(float(low), point.value), max(float(high), point.value)


def share_variance(share: float, n: int) -> float:
    """Variance of a share of ``n`` rows, ``p (1 - p) / n`` with p drawn a little to the middle.

    Two rows on either side more (Agresti and Coull 1998): a share of 0 or 1 is not certain.
    """
    p = (n * share + 2) / (n + 4)
    return p * (1 - p) / n
