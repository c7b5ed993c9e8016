"""All numbers of a report, from a bank and a target."""

from __future__ import annotations

import datetime
import warnings
from dataclasses import replace

from shiftcal._checks import check_choice, check_count, check_features, check_fraction
from shiftcal._types import Flag, InputKind
from shiftcal.cards._facts import versions
from shiftcal.errors import FitWarning, InputError
from shiftcal.maps.temperature import Temperature
from shiftcal.methods import Method
from shiftcal.report.html._examples import Pictures, examples_of
from shiftcal.report.html._fitting import Fitted, fit_all
from shiftcal.report.html._flags import SAID, warned
from shiftcal.report.html._judged import Judged
from shiftcal.report.html._tables import choice_of, classes_of, densities_of, sets_of
from shiftcal.report.html._words import shown, whole
from shiftcal.report.html.evidence import Warned
from shiftcal.report.html.facts import ReportFacts
from shiftcal.report.html.parts import MOST_BINS, EstimateFacts, Judging, Provenance
from shiftcal.report.html.verdict import Case, judge
from shiftcal.scores import Scores
from shiftcal.scores._origin import model_digest
from shiftcal.surrogates import SurrogateBank

_ESTIMATE, _FILES = "the estimate", "the files"


def make_facts(  # noqa: PLR0913 (all but the first two are options)
    bank: SurrogateBank,
    target: object,
    *,
    method: str | Method = "rehearsal",
    images: object = None,
    source_features: object = None,
    target_model: str | None = None,
    title: str = "",
    judging: Judging | None = None,
    provenance: Provenance | None = None,
) -> ReportFacts:
    """Everything a report says: all methods on one target, what they choose and how good it is.

    Labels of the target, if it has any, judge; no method and no estimate sees them.

    Args:
        bank: The surrogate bank.
        target: :class:`Scores`, or logits ``(n, k)`` (probabilities if the bank has those).
        method: The method that the report is about, by name or unfitted with its settings.
        images: What was scored, for examples: what :func:`shiftcal.datasets.as_image_set` opens.
        source_features: ``(m, d)`` of training samples, for methods that weigh by features.
        target_model: Digest of the model that scored the target, if known.
        title: Of the page.
        judging: Bins, level, draws and seed.
        provenance: How the report is made again; date and versions are filled in.

    Raises:
        InputError: If something given cannot be used, or the method cannot be fitted.
    """
    told = _checked(judging or Judging())
    scores = _scores(target, bank)
    pictures = None if images is None else Pictures.of(images, scores)
    source = None
    if source_features is not None:
        source = check_features(source_features, name="source_features")
    fitted = fit_all(method, bank, scores, source_features=source, judging=told)
    main = fitted.main
    judged = Judged(bank, scores, fitted, main=main, judging=told)
    selection = judged.selection(main)
    ladder = bank.summaries()
    sets = sets_of(
        ladder, _temperatures(bank, fitted), selection, confidence=judged.target.mean_confidence
    )
    notes = _warnings(fitted, main, _strangers(bank, target_model))
    names = bank.classes or scores.classes
    estimate = _estimate(fitted)
    methods = judged.methods(estimate)
    by_name = {one.name: one for one in methods}
    case = Case(
        judged.target,
        estimate,
        by_name["vanilla"],
        by_name[main],
        selection,
        frozenset(note.code for note in notes if note.serious),
    )
    raw, made = judged.of("vanilla"), judged.of(main)
    return ReportFacts(
        title=shown(title) or f"Calibration of {judged.target.name}",
        target=judged.target,
        estimate=estimate,
        verdict=judge(case),
        method=main,
        methods=methods,
        missing={name: shown(why, 400) for name, why in fitted.missing.items()},
        shown=judged.shown,
        choice=choice_of(selection, sets),
        sets=sets,
        densities=densities_of(raw.confidence, bank, sets, judged.nearest),
        classes=classes_of(raw, made, names, k=scores.k, labels=scores.labels, level=told.level),
        examples=() if pictures is None else examples_of(pictures, scores, raw, made, names=names),
        warnings=notes,
        judging=replace(told, n_resamples=judged.draws),
        provenance=_filled(provenance or Provenance()),
    )


def _checked(judging: Judging) -> Judging:
    check_count(judging.n_bins, name="n_bins", most=MOST_BINS)
    check_fraction(judging.level, name="level")
    check_count(judging.n_resamples, name="n_resamples", least=0)
    check_count(judging.seed, name="seed", least=0)
    if judging.n_resamples == 1:
        raise InputError("n_resamples must be 0 (no intervals) or at least 2; got 1.")
    return judging


def _scores(target: object, bank: SurrogateBank) -> Scores:
    if not isinstance(bank, SurrogateBank):
        raise InputError(
            f"bank must be a SurrogateBank; got {type(bank).__name__}. See SurrogateBank.load."
        )
    if isinstance(target, Scores):
        given = target
    else:
        kind: InputKind = check_choice(bank.input, ("logits", "probabilities"), name="input")
        given = Scores(target, input=kind)  # type: ignore[arg-type]
    if given.k != bank.n_classes:
        raise InputError(
            f"target must have the classes of the bank: it has {bank.n_classes}, and the target "
            f"has {given.k}. Both must come from one model."
        )
    return given


def _temperatures(bank: SurrogateBank, fitted: Fitted) -> list[float]:
    """The temperature of every set; rehearsals have found them already."""
    known = getattr(fitted.methods.get("rehearsal"), "temperatures_", None)
    if known is not None:
        return list(known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # said by the methods that use them
        return [float(Temperature().fit(s.logits, s.labels).temperature_) for s in bank]


def _estimate(fitted: Fitted) -> EstimateFacts | None:
    found = fitted.estimate
    if found is None:
        return None
    return EstimateFacts(found.value, found.low, found.high, found.level, found.estimator)


def _warnings(fitted: Fitted, main: str, strangers: tuple[Flag, ...]) -> tuple[Warned, ...]:
    raised: dict[str, tuple[Flag, ...]] = {_FILES: strangers}
    for name, method in fitted.methods.items():
        assert method.selection_ is not None
        said = [Flag(SAID, text) for text in fitted.said[name]]
        raised[name] = (*method.selection_.flags, *said)
    if fitted.estimate is not None:
        raised[_ESTIMATE] = fitted.estimate.flags
    return warned(raised, serious=frozenset({main, _ESTIMATE, _FILES}))


def _strangers(bank: SurrogateBank, target_model: str | None) -> tuple[Flag, ...]:
    known = model_digest(bank.origin)
    if None in (known, target_model) or known == target_model:
        return ()
    return (
        Flag(
            "another-model",
            "the target was scored by another model, or with another preprocessing, than the bank.",
        ),
    )


def _filled(provenance: Provenance) -> Provenance:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Provenance(
        date=provenance.date or today,
        command=whole(provenance.command),
        usage=whole(provenance.usage),
        files={whole(name): digest for name, digest in provenance.files.items()},
        versions=provenance.versions or versions(),
    )
