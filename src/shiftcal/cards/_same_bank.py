"""Whether a fitted method was fitted on the bank that a card is to describe."""

from __future__ import annotations

import copy
import warnings

import numpy as np
from sklearn.base import clone

from shiftcal._types import Probs
from shiftcal.errors import FitWarning, InputError
from shiftcal.methods import Method
from shiftcal.scores import Scores
from shiftcal.scores._origin import model_digest
from shiftcal.surrogates import SetSummary, SurrogateBank

# Means of the same rows differ by rounding between machines, confidences by where a search stops.
_SAME_MEAN, _SAME_CONFIDENCE = 1e-6, 1e-3
_ROWS = 256
_DO = "Give the bank it was fitted on, or have the method fitted on this one."


def how_it_belongs(method: Method, bank: SurrogateBank, source_features: object) -> str:
    """How a fitted method is known to belong to a bank, as in :class:`Applied`.

    A method that keeps its ladder is compared set by set. Another is fitted anew on the bank, and
    both are asked for the confidences of some rows of the clean set.

    Args:
        method: Fitted.
        bank: The bank.
        source_features: For methods that weigh by features.

    Raises:
        InputError: If it was fitted on something else.
    """
    _check_model(method, bank)
    ladder: tuple[SetSummary, ...] | None = getattr(method, "ladder_", None)
    if ladder is not None:
        _check_ladder(method, ladder, bank)
        return "same-ladder"
    if method.uses_mixed or (method.uses_features and source_features is None):
        return "not-checked"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the method's own fit gave them
        again = clone(method).fit(bank, source_features=source_features)
    apart = np.abs(_confidences(method, bank) - _confidences(again, bank)).max()
    if apart > _SAME_CONFIDENCE:
        raise InputError(
            f"{_subject(method)}: a fit on it gives other probabilities, by up to {apart:.2g} on "
            f"rows of its clean set. {_DO}"
        )
    return "same-answer"


def _check_model(method: Method, bank: SurrogateBank) -> None:
    theirs = model_digest(bank.origin)
    if method.n_classes_ != bank.n_classes:
        raise InputError(
            f"{_subject(method)}: it has {method.n_classes_} classes, and the bank has "
            f"{bank.n_classes}. {_DO}"
        )
    was, now = method.class_names_ or (), bank.classes or ()
    for column, (there, here) in enumerate(zip(was, now, strict=False)):  # names may be missing
        if there != here:
            raise InputError(
                f"{_subject(method)}: column {column} is {there!r} to it and {here!r} in the "
                f"bank. {_DO}"
            )
    if None not in (method.model_, theirs) and method.model_ != theirs:
        raise InputError(
            f"{_subject(method)}: it was fitted for another model or another preprocessing "
            f"(digest {str(method.model_)[:12]}...; the bank's is {str(theirs)[:12]}...). {_DO}"
        )


def _check_ladder(method: Method, ladder: tuple[SetSummary, ...], bank: SurrogateBank) -> None:
    if len(ladder) != len(bank):
        raise InputError(
            f"{_subject(method)}: it was fitted on {len(ladder)} sets, and the bank has "
            f"{len(bank)}. {_DO}"
        )
    for number, (was, now) in enumerate(zip(ladder, bank.summaries(), strict=True), start=1):
        if not _alike(was, now):
            raise InputError(
                f"{_subject(method)}: set {number} was {_told(was)} when it was fitted and is "
                f"{_told(now)} in the bank. {_DO}"
            )


def _alike(was: SetSummary, now: SetSummary) -> bool:
    same = (was.name, was.corruption, was.severity, was.n) == (
        now.name,
        now.corruption,
        now.severity,
        now.n,
    )
    return (
        same
        and abs(was.mean_confidence - now.mean_confidence) <= _SAME_MEAN
        and abs(was.accuracy - now.accuracy) <= _SAME_MEAN
    )


def _told(summary: SetSummary) -> str:
    return (
        f"{summary.name!r} ({summary.n} rows, mean confidence {summary.mean_confidence:.6f}, "
        f"accuracy {summary.accuracy:.6f})"
    )


def _subject(method: Method) -> str:
    return f"this {method.name()} was not fitted on the bank of the card"


def _confidences(method: Method, bank: SurrogateBank) -> Probs:
    clean = bank.clean
    asked = copy.copy(method)
    asked.adapt(Scores(clean.logits, features=clean.features))
    return asked.predict_proba(Scores(clean.logits[:_ROWS]))
