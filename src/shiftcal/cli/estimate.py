"""``shiftcal estimate``: how accurate a model is on an unlabelled target, by every estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import method_names, read_bank, read_target
from shiftcal.cli.options import (
    Bank,
    BankPlace,
    Json,
    Level,
    Normalize,
    Surrogates,
    TargetFile,
    TargetLabels,
    TargetPlace,
    named,
)
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.registry import ESTIMATORS, is_own

if TYPE_CHECKING:
    from shiftcal.estimates import AccuracyEstimator
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank

_BY_METHOD = "mean-confidence"


def estimate(
    bank_place: BankPlace = None,
    target_place: TargetPlace = None,
    target: TargetFile = None,
    bank: Bank = None,
    surrogate: Surrogates = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An estimator: atc, doc, rehearsed, surrogate-curve, or mean-confidence:METHOD "
            "(sac if no method is named). Repeatable; all unless told.",
        ),
    ] = None,
    level: Level = 0.95,
    labels: TargetLabels = None,
    normalize: Normalize = False,
    as_json: Json = False,
) -> Report:
    """Estimate the accuracy on an unlabelled target, with intervals."""
    from shiftcal.checks import check_fraction

    check_fraction(level, name="--level")
    names = _names(estimator or [])
    files = named((bank_place, target_place), bank=bank, surrogates=surrogate, target=target)
    file = files.must_have_target()
    sets = read_bank(files.bank, files.surrogates, normalize=normalize)
    scores = read_target(
        file,
        n_classes=sets.n_classes, classes=sets.classes, normalize=normalize, labels=labels,
    )  # fmt: skip
    logits = scores.logits()  # a target that cannot be used is an error, not a reason to skip
    truth = scores.labels
    accuracy = None if truth is None else float((logits.argmax(axis=1) == truth).mean())
    results: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            with progress(f"{name} ..."):
                results.append(_try_estimator(name, sets, scores, level=level))
        except ShiftcalError as error:
            if estimator:
                raise
            missing[name] = str(error)
    for result in results:
        result["error"] = None if accuracy is None else result["value"] - accuracy
    document = {
        "bank": files.one_source(),
        "surrogates": files.surrogates or [],
        "target": file,
        "labels": labels or (file if truth is not None else None),
        "n": scores.n,
        "n_sets": len(sets),
        "level": level,
        "accuracy": accuracy,
        "estimates": results,
        "missing": missing,
    }
    return Report("estimate", document, _text(printable(document)), as_json)


def _names(asked: list[str]) -> list[str]:
    """What is to be estimated by; mistyped names are told before files are read."""
    from shiftcal import estimates, methods

    if asked:
        for name in asked:
            first, method = _parts(name)
            if method and estimates.get(first).name != _BY_METHOD:
                raise InputError(f"{first} is made of no method; got {name!r}. Say {first}.")
            if method:
                methods.get(method)
            estimates.get(first)
        return list(dict.fromkeys(asked))
    own = [name for name in estimates.names() if name != _BY_METHOD]
    # Rehearsal is left out of itself: its estimate is "rehearsed", without fitting it once more
    # for every corruption.
    useful = [m for m in method_names() if not _needs_more(m) and m != "rehearsal"]
    return own + [f"{_BY_METHOD}:{name}" for name in useful]


def _parts(name: str) -> tuple[str, str]:
    """The estimator and the method of ``mean-confidence:sac``; others have no method."""
    first, _, method = name.partition(":")
    named = ESTIMATORS.canonical(first) in ESTIMATORS.names()
    return (first, method) if named or not is_own(name) else (name, "")


def _needs_more(method: str) -> bool:
    """Whether a method needs more of the target than its outputs."""
    from shiftcal import methods

    cls = methods.get(method)
    return bool(cls.uses_features or cls.uses_mixed)


def _make(name: str, *, input: str) -> AccuracyEstimator:
    from shiftcal import estimates

    first, method = _parts(name)
    settings = {"method": method} if method else {}
    made: AccuracyEstimator = estimates.get(first)(input=input, **settings)
    return made


def _try_estimator(
    name: str, sets: SurrogateBank, target: Scores, *, level: float
) -> dict[str, Any]:
    found = _make(name, input=sets.input).fit(sets).estimate(target, level=level)
    return {**found.to_dict(), "estimator": name}


def _text(document: dict[str, Any]) -> str:
    accuracy = document["accuracy"]
    header = ["estimator", "accuracy", f"{100 * document['level']:g}% interval"]
    if accuracy is not None:
        header.append("error")
    rows = [_row(result) for result in document["estimates"]]
    lines = [
        f"{document['target']}: {_tables.count_of(document['n'], 'row')}. Accuracies are "
        "fractions, not percent.",
        "",
        _tables.table(header, rows, right=header[1:]),
        "",
        *_remarks(document),
    ]
    if accuracy is not None:
        lines.append(f"true accuracy, by the labels of {document['labels']}: {accuracy:.4f}")
    return "\n".join(lines).rstrip()


def _row(result: dict[str, Any]) -> list[str]:
    ends = f"{result['low']:.4f} to {result['high']:.4f}"
    row = [result["estimator"], _tables.fraction(result["value"]), ends]
    return row if result["error"] is None else [*row, f"{result['error']:+.4f}"]


def _remarks(document: dict[str, Any]) -> Iterator[str]:
    """Every flag once, with the estimators that raised it, and what could not be used."""
    raised: dict[tuple[str, str], list[str]] = {}
    for result in document["estimates"]:
        for flag in result["flags"]:
            raised.setdefault((flag["code"], flag["message"]), []).append(result["estimator"])
    for (code, message), names in raised.items():
        whose = "all" if len(names) == len(document["estimates"]) else ", ".join(names)
        yield f"flagged, {code} ({whose}): {message}"
    for name, reason in document["missing"].items():
        yield f"missing: {name} ({reason.rstrip('.')})"
