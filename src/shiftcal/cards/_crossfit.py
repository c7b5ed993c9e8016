"""The bank's own rows calibrated, each by a fit that did not see it, and judged."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from shiftcal._types import Floats, Labels
from shiftcal.cards._facts import has_same_rows
from shiftcal.cards._redraws import Judged
from shiftcal.cards.parts import Judging
from shiftcal.errors import FitWarning, ShiftcalError
from shiftcal.methods import Method
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank, SurrogateSet

# With as many rows half of them fix a temperature to about a percent.
_MANY_ROWS = 2000
_FOLDS, _FOLDS_OF_MANY = 5, 2


@dataclass(frozen=True)
class HeldOut:
    """What came of it.

    Attributes:
        judged: Of every set its calibrated rows, or ``None`` where there are none.
        missing: Of every set why there are none; empty where there are.
        folds: Number of fits.
        warned: How many of the fits warned of themselves.
    """

    judged: tuple[Judged | None, ...]
    missing: tuple[str, ...]
    folds: int
    warned: int = 0


def held_out(
    method: Method, bank: SurrogateBank, judging: Judging, source_features: object
) -> HeldOut:
    """Fit on all folds of rows but one, take that one of each set for a target, in turn.

    A row is in the same fold in all sets, so that no fit has seen a sample it is judged on in
    another corruption. The classes are spread evenly over the folds. Every fit knows the
    corruption it is judged on, by other samples.

    Args:
        method: Whose settings are used; it is not changed.
        bank: The bank.
        judging: Says folds and seed.
        source_features: For methods that weigh by features.
    """
    folds = _number_of_folds(bank, judging)
    if reason := _cannot(method, folds=folds):
        return HeldOut((None,) * len(bank), (reason,) * len(bank), 0)
    fold_of = _folds_of_sets(bank, folds, judging.seed)
    judged = [_room(method, s) for s in bank]
    warned = 0
    for fold in range(folds):
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", FitWarning)
                fitted = clone(method).fit(
                    _part(bank, [of != fold for of in fold_of]), source_features=source_features
                )
                for s, of, room in zip(bank, fold_of, judged, strict=True):
                    if room is not None:
                        room.put(of == fold, _as_target(fitted, s, of == fold))
        except ShiftcalError as error:
            reason = f"fold {fold + 1} of {folds} could not be calibrated: {error}"
            return HeldOut((None,) * len(bank), (reason,) * len(bank), folds)
        warned += any(issubclass(one.category, FitWarning) for one in caught)
    lacking = f"{method.name()} needs features of the target, and this set has none in the bank."
    return HeldOut(
        tuple(judged), tuple(lacking if one is None else "" for one in judged), folds, warned
    )


def _number_of_folds(bank: SurrogateBank, judging: Judging) -> int:
    smallest = min(map(len, bank))
    if judging.folds is None:
        return min(_FOLDS_OF_MANY if smallest >= _MANY_ROWS else _FOLDS, smallest)
    return min(judging.folds, smallest)


def _cannot(method: Method, *, folds: int) -> str:
    if method.uses_mixed:
        return (
            f"{method.name()} needs the model run over mixed images of every target, which a bank "
            "of scores cannot do."
        )
    if folds < 2:
        return "a set of one row cannot be parted into rows to fit on and rows to judge."
    return ""


def _folds_of_sets(bank: SurrogateBank, folds: int, seed: int) -> list[NDArray[np.intp]]:
    if has_same_rows(bank):
        return [folds_of_rows(bank.clean.labels, folds, seed=seed)] * len(bank)
    return [folds_of_rows(s.labels, folds, seed=seed) for s in bank]


def folds_of_rows(labels: Labels, folds: int, *, seed: int) -> NDArray[np.intp]:
    """The fold ``(n,)`` of every row: sizes differ by one at the most, in every class too.

    Rows are put into a random order, then by class, and dealt out like cards.
    """
    shuffled = np.random.default_rng([seed, 2]).permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    found = np.empty(len(labels), dtype=np.intp)
    found[by_class] = np.arange(len(labels)) % folds
    return found


def _room(method: Method, surrogate: SurrogateSet) -> Judged | None:
    if method.uses_features and surrogate.features is None:
        return None
    return Judged.empty(len(surrogate))


def _part(bank: SurrogateBank, kept: list[NDArray[np.bool_]]) -> SurrogateBank:
    sets = [
        SurrogateSet(
            s.logits[rows],
            s.labels[rows],
            s.name,
            corruption=s.corruption,
            severity=s.severity,
            features=_rows(s.features, rows),
        )
        for s, rows in zip(bank, kept, strict=True)
    ]
    return SurrogateBank(sets, classes=bank.classes, input=bank.input)


def _as_target(fitted: Method, surrogate: SurrogateSet, rows: NDArray[np.bool_]) -> Judged:
    target = Scores(surrogate.logits[rows], features=_rows(surrogate.features, rows))
    fitted.adapt(target)
    return Judged.of(fitted.predict_proba(target), surrogate.labels[rows])


def _rows(features: Floats | None, rows: NDArray[np.bool_]) -> Floats | None:
    return None if features is None else features[rows]
