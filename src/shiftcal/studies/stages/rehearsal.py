"""Methods tried on made-up scores: to know what is wrong with a plan, and how long it takes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np

from shiftcal import methods
from shiftcal.errors import FitError, FitWarning
from shiftcal.studies.archive import Stored
from shiftcal.studies.plan.reading import ORACLE
from shiftcal.studies.stages.outcome import Fitted, judged, settings_of
from shiftcal.studies.variant import Variant
from shiftcal.surrogates import SurrogateBank

_ROWS, _CLASSES, _FEATURES = 60, 3, 2


def check_settings(variants: Sequence[Variant]) -> None:
    """Refuse settings that a method does not take, before anything is scored.

    Raises:
        InputError: As the method says it.
    """
    some = made_up(_ROWS, _CLASSES, _FEATURES)
    for variant in _different(variants).values():
        try:
            _fitted(variant, some)
        except FitError:
            continue  # of these few rows


def seconds_of(variants: Sequence[Variant], target: Stored, *, bins: int) -> list[float]:
    """What one evaluation of each variant takes on a target, in seconds."""
    took: dict[str, float] = {}
    for told, variant in _different(variants).items():
        try:
            made = _fitted(variant, target)
            judged(made, target, bins=bins)  # loads kernels
            began = time.perf_counter()
            judged(made, target, bins=bins)
            took[told] = time.perf_counter() - began
        except FitError:
            took[told] = 0.0
    return [took[_told(variant)] for variant in variants]


def made_up(rows: int, k: int, d: int) -> Stored:
    """Scores of a rather good model, with features."""
    rng = np.random.default_rng(0)
    labels = np.arange(rows) % k
    logits = rng.normal(size=(rows, k)).astype(np.float32)
    logits[np.arange(rows), labels] += 3
    return Stored(logits, labels, rng.normal(size=(rows, d)).astype(np.float32))


def _different(variants: Sequence[Variant]) -> dict[str, Variant]:
    """One of each method with its settings."""
    return {_told(variant): variant for variant in variants}


def _told(variant: Variant) -> str:
    return f"{variant.method} {dict(variant.settings)}"


def _fitted(variant: Variant, some: Stored) -> Fitted:
    if variant.method == ORACLE:
        return Fitted(None, 1, len(some.logits))
    bank = SurrogateBank.from_arrays([some.logits], some.labels, features=some.features)
    method = methods.get(variant.method)(**settings_of(variant, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        method.fit(bank, source_features=some.features)
    return Fitted(method, 1, len(some.logits))
