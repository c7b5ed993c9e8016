"""Methods tried on made-up scores: to know what is wrong with a plan, and how long it takes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from shiftcal import methods
from shiftcal._types import Logits
from shiftcal.errors import FitError, FitWarning, InputError
from shiftcal.scoring.one_blas_thread import one_blas_thread
from shiftcal.studies.archive import Stored
from shiftcal.studies.plan.methods import ORACLE
from shiftcal.studies.stages.outcome import Fitted, judged
from shiftcal.studies.variant import Variant
from shiftcal.surrogates import SurrogateBank

T = TypeVar("T")

# Numbers that a variant is timed with at most, in all its arrays; more take longer in proportion.
_NUMBERS = 4_000_000
# Seconds beside which the loading of kernels by a first call does not count.
_LONG = 5.0


@dataclass(frozen=True)
class Shape:
    """How large the arrays of a study are.

    Attributes:
        calibration: Rows of a surrogate set.
        test: Rows of a target.
        train: Rows of training images, whose features are looked at.
        classes: Columns of logits.
        features: Columns of features; 0 if the model gives none.
    """

    calibration: int
    test: int
    train: int
    classes: int
    features: int

    def part(self, sets: int) -> Shape:
        """The same with so many fewer rows that all arrays of a variant have few numbers."""
        told = sets * self.calibration * self.classes + self.test * (self.classes + self.features)
        share = min(1.0, _NUMBERS / max(1, told + self.train * self.features))
        least = 2 * self.classes  # a map of each class needs rows of it

        def fewer(rows: int) -> int:
            return max(min(rows, least), round(share * rows))

        return replace(
            self,
            calibration=fewer(self.calibration),
            test=fewer(self.test),
            train=fewer(self.train),
        )


@dataclass(frozen=True)
class Cost:
    """What a variant takes, in seconds.

    Attributes:
        fit: To be fitted.
        row: To be evaluated, for each row of the target.
        fixed: To be evaluated, whatever the target: for the rows of the training images.
    """

    fit: float
    row: float
    fixed: float = 0.0


def check_settings(variants: Sequence[Variant]) -> None:
    """Refuse settings that a method does not take, before anything is scored.

    Raises:
        InputError: As the method says it, and where the plan does.
    """
    shape = Shape(calibration=60, test=60, train=60, classes=3, features=2)
    few = _Scores.of(shape, 1)
    for variant in _largest(variants, shape).values():
        try:
            _fitted(variant, few)
        except FitError:
            continue  # of these few rows
        except InputError as error:
            place = variant.where or f"the method {variant.label!r} of the plan"
            raise type(error)(f"{place}: {error}") from error


def costs_of(variants: Sequence[Variant], shape: Shape, *, bins: int) -> list[Cost]:
    """What each variant takes: every method with its settings is timed once, on made-up scores.

    It is timed with one thread, as it is evaluated, and with the most that a variant learns from.
    """
    timed = {}
    with one_blas_thread():
        for told, variant in _largest(variants, shape).items():
            try:
                timed[told] = _timed(variant, shape, bins=bins), _learns_from(variant, shape)
            except FitError:
                timed[told] = Cost(0.0, 0.0), 1
    costs = []
    for variant in variants:
        cost, numbers = timed[_told(variant)]
        share = _learns_from(variant, shape) / numbers
        costs.append(Cost(share * cost.fit, cost.row, cost.fixed))
    return costs


def made_up(rows: int, k: int, d: int, *, shift: float = 0.0, seed: int = 0) -> Stored:
    """Scores of a rather good model, with features.

    Columns of the features are of very different size, as those of networks are: what tells source
    from target by them then takes about as many steps as it does on images.

    Args:
        rows: How many.
        k: Classes.
        d: Columns of the features.
        shift: How far the features are from those of the source, in standard deviations.
        seed: Of the numbers.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % k
    logits = rng.normal(size=(rows, k)).astype(np.float32)
    logits[np.arange(rows), labels] += 3
    features = rng.normal(size=(rows, d)) + shift * np.cos(np.arange(d))
    return Stored(logits, labels, (features * np.logspace(-1, 1, d)).astype(np.float32))


def _timed(variant: Variant, whole: Shape, *, bins: int) -> Cost:
    sets = len(variant.ladder.sets)
    shape = whole.part(sets)
    scores = _Scores.of(shape, sets)
    made, fit = _seconds(lambda: _fitted(variant, scores))
    _, judge = _seconds(lambda: judged(made, scores.target, bins=bins))
    looks = made.method is not None and made.method.uses_features
    row = judge / (shape.test + (shape.train if looks else 0))
    fit *= whole.calibration / shape.calibration
    return Cost(fit, row, row * whole.train if looks else 0.0)


def _seconds(work: Callable[[], T]) -> tuple[T, float]:
    """What comes of some work, and how long it takes once all kernels are loaded."""
    took: list[float] = []
    while not took or (len(took) < 2 and took[0] < _LONG):
        began = time.perf_counter()
        found = work()
        took.append(time.perf_counter() - began)
    return found, took[-1]


def _largest(variants: Sequence[Variant], shape: Shape) -> dict[str, Variant]:
    """One of each method with its settings: that which learns from most."""
    rising = sorted(variants, key=lambda variant: _learns_from(variant, shape))
    return {_told(variant): variant for variant in rising}


def _learns_from(variant: Variant, shape: Shape) -> int:
    """Rows that a variant is fitted to, over all sets."""
    images = min(variant.ladder.images or shape.calibration, shape.calibration)
    uses_bank = variant.method != ORACLE and methods.get(variant.method).uses_bank
    return images * (len(variant.ladder.sets) if uses_bank else 1)


def _told(variant: Variant) -> str:
    return f"{variant.method} {dict(variant.settings)}"


@dataclass(frozen=True, eq=False)
class _Scores:
    """Made-up scores: a ladder of the first set whose confidence falls, training images, target."""

    ladder: list[Logits]
    first: Stored
    train: Stored
    target: Stored

    @classmethod
    def of(cls, shape: Shape, sets: int) -> _Scores:
        k, d = shape.classes, max(1, shape.features)
        first = made_up(shape.calibration, k, d)
        ladder = [first.logits / np.float32(1 + 0.2 * i) for i in range(sets)]
        train = made_up(max(1, shape.train), k, d, seed=1)
        return cls(ladder, first, train, made_up(shape.test, k, d, shift=0.3, seed=2))


def _fitted(variant: Variant, some: _Scores) -> Fitted:
    if variant.method == ORACLE:
        return Fitted(None, 1, len(some.first.logits))
    bank = SurrogateBank.from_arrays(some.ladder, some.first.labels, features=some.first.features)
    method = methods.get(variant.method)(**variant.settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        method.fit(bank, source_features=some.train.features)
    return Fitted(method, len(bank), len(bank.clean))
