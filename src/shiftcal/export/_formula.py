"""What a map computes, told in few forms, so that each way out has to know those only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError
from shiftcal.maps import Map
from shiftcal.maps.beta import FARTHEST
from shiftcal.numerics.temperature.entropy_power import LEAST_ENTROPY

Array: TypeAlias = NDArray[np.float64]

# Up to so many classes a softmax in float32 is good to 1e-6, whoever sums it up; with a thousand,
# onnxruntime and PyTorch both come to that.
FEW_CLASSES = 100


@dataclass(frozen=True)
class Scaled:
    """``softmax(z / temperature)``."""

    temperature: float


@dataclass(frozen=True)
class Mixed:
    """``cooled * softmax(z / temperature) + own * softmax(z) + uniform / k``."""

    temperature: float
    cooled: float
    own: float
    uniform: float


@dataclass(frozen=True)
class ByEntropy:
    """``softmax(z / T)``, ``log T = log_scale + power * log h`` kept within two ends.

    ``h`` is the entropy over ``log k``, ``least`` at least.
    """

    log_scale: float
    power: float
    log_low: float
    log_high: float
    least: float


@dataclass(frozen=True)
class Linear:
    """``softmax(W x + b)``, ``x`` the log-probabilities, or logits less their mean if centred.

    Attributes:
        weight: ``(k, k)``, or ``(k,)`` for a diagonal.
        intercept: ``(k,)``.
        centred: Which of the two ``x`` is.
    """

    weight: Array
    intercept: Array
    centred: bool


@dataclass(frozen=True)
class Table:
    """A curve in pieces: ``base[j] + slope[j] * (c - start[j])``, ``j`` the edges below ``c``.

    Attributes:
        edges: ``(m,)``, ascending; an edge belongs to the piece below it.
        start: ``(m + 1,)``.
        base: ``(m + 1,)``.
        slope: ``(m + 1,)``.
    """

    edges: Array
    start: Array
    base: Array
    slope: Array


@dataclass(frozen=True)
class BetaCurve:
    """``1 / (1 + exp(-(a log c - b log(1 - c) + m)))``, log-odds of ``c`` cut at ``farthest``."""

    a: float
    b: float
    m: float
    farthest: float


@dataclass(frozen=True)
class Top1:
    """The predicted class gets the curve's confidence, the others share the rest."""

    curve: Table | BetaCurve


Formula: TypeAlias = Scaled | Mixed | ByEntropy | Linear | Top1


def formula_of(applied: Map) -> Formula:
    """What a fitted map computes.

    Raises:
        InputError: If there is no form for it here.
    """
    if applied.is_temperature:
        return Scaled(float(applied.temperature_))
    if applied.name() not in _FORMS:
        raise InputError(
            f"the map {applied.name()!r} cannot be exported; these can: temperatures of one "
            f"number, {', '.join(sorted(_FORMS))}."
        )
    return _FORMS[applied.name()](applied)


def _mixed(applied: Any) -> Mixed:
    cooled, own, uniform = (float(weight) for weight in applied.weights_)
    return Mixed(float(applied.temperature_), cooled, own, uniform)


def _by_entropy(applied: Any) -> ByEntropy:
    ends = float(np.log(applied.low_)), float(np.log(applied.high_))
    return ByEntropy(float(applied.log_scale_), float(applied.power_), *ends, least=LEAST_ENTROPY)


def _linear(applied: Any) -> Linear:
    return Linear(applied.weight_, applied.intercept_, centred=applied.name() == "matrix")


def _steps(applied: Any) -> Top1:
    flat = np.zeros_like(applied.accuracy_)
    return Top1(Table(applied.edges_, flat, np.clip(applied.accuracy_, 0.0, 1.0), flat))


def _joined(applied: Any) -> Top1:
    x, y = applied.confidence_, applied.accuracy_
    slope = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
    start = np.concatenate([x[:1], x])
    return Top1(Table(x, start, np.concatenate([y[:1], y]), slope))


def _beta(applied: Any) -> Top1:
    return Top1(BetaCurve(float(applied.a_), float(applied.b_), float(applied.m_), FARTHEST))


_FORMS: dict[str, Callable[[Any], Formula]] = {
    "beta": _beta,
    "dirichlet": _linear,
    "ensemble-temperature": _mixed,
    "entropy-temperature": _by_entropy,
    "histogram": _steps,
    "isotonic": _joined,
    "matrix": _linear,
    "spline": _joined,
    "vector": _linear,
}
