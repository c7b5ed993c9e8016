"""A calibration card, made of a method, its bank and a target."""

from __future__ import annotations

import copy
import datetime
import os
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from shiftcal import estimates, methods
from shiftcal._checks import check_count, check_fraction
from shiftcal.cards._crossfit import HeldOut, held_out
from shiftcal.cards._facts import applied, calibration_of, model_of, sets_of, target_of, versions
from shiftcal.cards._limits import Known, limits_of
from shiftcal.cards._redraws import Judged, measured
from shiftcal.cards._same_bank import how_it_belongs
from shiftcal.cards.card import CalibrationCard
from shiftcal.cards.parts import Judging, Measured, Provenance
from shiftcal.errors import InputError
from shiftcal.estimates import AccuracyEstimate, AccuracyEstimator
from shiftcal.estimates.rehearsed import Rehearsed
from shiftcal.methods import Method
from shiftcal.methods._given import given_bank, given_logits
from shiftcal.methods._selection import Selection
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.numerics.softmax import softmax
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank

_MOST_FOLDS = 100


def make_card(  # noqa: PLR0913 (all but the first three are options)
    method: str | Method,
    bank: object,
    target: object = None,
    *,
    estimator: str | AccuracyEstimator | None = "rehearsed",
    title: str = "",
    notes: str = "",
    judging: Judging | None = None,
    provenance: Provenance | None = None,
    source_features: object = None,
    target_model: str | None = None,
) -> CalibrationCard:
    """A card of what is known of a calibration: data, method, choice, metrics, limits.

    The metrics of the bank are of calibrated confidences from fits on other rows of the bank. The
    labels of the target, if it has any, judge the choice; neither method nor estimator sees them.

    Args:
        method: A name, an unfitted method, or one fitted on this bank, with what it chose for its
            last target, which is used if no ``target`` is given. It is not changed.
        bank: A :class:`SurrogateBank`, or the folder of one.
        target: :class:`Scores`, with labels or without, or an array ``(n, k)`` of the bank's kind.
        estimator: Of the target's accuracy without labels: a name, or an estimator, whose settings
            are used; ``None`` for no estimate.
        title: Of the card; made of method and bank if empty.
        notes: To be shown below the title.
        judging: How to measure.
        provenance: Date, command and files to be shown; versions are added.
        source_features: ``(m, d)``, for methods that weigh by features.
        target_model: Digest of the model that scored the target, if it is known.

    Raises:
        InputError: If something given cannot be used, or a fitted method is not of this bank.
    """
    how = _checked(judging or Judging())
    told = _dated(provenance or Provenance())
    loaded = SurrogateBank.load(bank) if isinstance(bank, str | os.PathLike) else bank
    given = _method(method, input=getattr(loaded, "input", "logits"))
    sets = given_bank(loaded, None, input=given.input, name=given.name())
    scores = None if target is None else _scores(target, sets)
    fitted, belongs = _fitted(given, sets, source_features)
    choice = _choice(fitted, scores)
    held = held_out(fitted, sets, how, source_features)
    on_bank, spreads = _on_bank(sets, held, how)
    on_target, target_spread = _on_target(fitted, scores, how)
    facts = sets_of(sets)
    known = Known(
        model=model_of(sets),
        calibration=calibration_of(sets, digest=facts[0].digest),
        target=None if scores is None else target_of(scores, model=target_model),
        bank=facts,
        method=applied(fitted, fitted=belongs),
        choice=choice,
        estimate=_estimate(estimator, sets, scores, method=fitted, level=how.level),
        judging=replace(how, folds=held.folds),
        held=held,
        spreads=spreads,
        target_spread=target_spread,
    )
    return CalibrationCard(
        title=title or f"Calibration card: {known.method.name} on {len(sets)} sets",
        notes=notes,
        model=known.model,
        calibration=known.calibration,
        target=known.target,
        bank=known.bank,
        method=known.method,
        choice=choice,
        on_bank=on_bank,
        on_target=on_target,
        estimate=known.estimate,
        judging=known.judging,
        limits=limits_of(known),
        provenance=replace(told, versions=versions()),
    )


def _checked(judging: Judging) -> Judging:
    check_count(judging.n_bins, name="n_bins", most=1_000_000)
    check_fraction(judging.level, name="level")
    check_count(judging.seed, name="seed", least=0)
    if judging.folds is not None:
        check_count(judging.folds, name="folds", least=2, most=_MOST_FOLDS)
    if judging.n_resamples != 0:
        check_count(judging.n_resamples, name="n_resamples (0 for no intervals)", least=2)
    return judging


def _dated(provenance: Provenance) -> Provenance:
    if provenance.date is not None:
        try:
            datetime.datetime.fromisoformat(provenance.date)
        except (TypeError, ValueError) as error:
            raise InputError(
                "the date of a card must be as ISO 8601 writes it, such as 2024-05-31; got "
                f"{provenance.date!r}."
            ) from error
    return provenance


def _method(method: str | Method, *, input: str) -> Method:
    """A copy, so that what is given stays as it was."""
    if isinstance(method, str):
        made: Method = methods.get(method)(input=input)
        return made
    if not isinstance(method, Method):
        given = f"the class {method.__name__}" if isinstance(method, type) else repr(method)
        raise InputError(
            f"method must be the name of a method or a method; got {given}. "
            f"Names: {', '.join(methods.names())}."
        )
    return copy.copy(method)


def _fitted(method: Method, bank: SurrogateBank, source_features: object) -> tuple[Method, str]:
    if hasattr(method, "n_classes_"):
        return method, how_it_belongs(method, bank, source_features)
    return method.fit(bank, source_features=source_features), "here"


def _scores(target: object, bank: SurrogateBank) -> Scores:
    if isinstance(target, Scores):
        target.logits()  # its errors name the file
        given_logits(target, input="logits", k=bank.n_classes, classes=bank.classes)
        return target
    logits = given_logits(target, input=bank.input, k=bank.n_classes, classes=bank.classes)
    return Scores(logits)


def _choice(method: Method, target: Scores | None) -> Selection | None:
    if target is None or method.uses_mixed:
        if target is not None and method.selection_ is None:
            raise InputError(
                f"{method.name()} has to see mixed images of the target, which a card cannot give "
                "it. Adapt it with mixed= first, and pass it as it is then."
            )
        return method.selection_
    return method.adapt(Scores(target.logits(), features=target.features))


def _on_bank(
    bank: SurrogateBank, held: HeldOut, judging: Judging
) -> tuple[tuple[Measured, ...], tuple[float, ...]]:
    """Metrics of every set, and what the noise of its ECE is made of."""
    before = [Judged.of(softmax(s.logits), s.labels) for s in bank]
    after = {j: judged for j, judged in enumerate(held.judged) if judged is not None}
    told = measured([*before, *after.values()], judging)
    told_after = dict(zip(after, told[len(bank) :], strict=True))
    found = tuple(
        Measured(s.name, len(s), told[j], told_after.get(j), held.missing[j])
        for j, s in enumerate(bank)
    )
    return found, tuple(_spread(after.get(j, raw)) for j, raw in enumerate(before))


def _on_target(
    method: Method, target: Scores | None, judging: Judging
) -> tuple[Measured | None, float | None]:
    """Metrics of the target, and what the noise of its ECE is made of."""
    if target is None or target.labels is None:
        return None, None
    logits = target.logits()
    before = Judged.of(softmax(logits), target.labels)
    after = Judged.of(method.predict_proba(Scores(logits)), target.labels)
    told = measured([before, after], judging)
    return Measured("target", target.n, told[0], told[1]), _spread(after)


def _spread(judged: Judged) -> float:
    """Mean of ``sqrt(c (1 - c))``: how far a row that is right so often lies from what it says."""
    sure = judged.confidence
    return float(np.sqrt(np.maximum(sure * (1 - sure), 0.0)).mean())


def _estimate(
    estimator: str | AccuracyEstimator | None,
    bank: SurrogateBank,
    target: Scores | None,
    *,
    method: Method,
    level: float,
) -> AccuracyEstimate | None:
    if estimator is None:
        return None
    if isinstance(estimator, str):
        made: AccuracyEstimator = estimates.get(estimator)(input=bank.input)
    elif isinstance(estimator, AccuracyEstimator):
        made = clone(estimator)
    else:
        raise InputError(
            f"estimator must be the name of an accuracy estimator, an estimator or None; got "
            f"{estimator!r}. Names: {', '.join(estimates.names())}."
        )
    if target is None:
        return None
    if isinstance(made, Rehearsed) and isinstance(method, Rehearsal) and made.seed == method.seed_:
        fitted: AccuracyEstimator = Rehearsed.of(method)
    else:
        fitted = made.fit(bank)
    return fitted.estimate(Scores(target.logits()), level=level)
