"""``shiftcal compare``: every method that the files allow, side by side on one target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import (
    NEEDS_MIXED,
    Judge,
    adapt_to,
    lacking_features,
    method_names,
    read_bank,
    read_target,
)
from shiftcal.cli.options import (
    Bank,
    BankPlace,
    Binning,
    Bins,
    BootstrapSeed,
    Json,
    Level,
    Normalize,
    Resamples,
    SourceTrain,
    Surrogates,
    TargetFile,
    TargetLabels,
    TargetPlace,
    named,
)
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import InputError, ShiftcalError

if TYPE_CHECKING:
    from shiftcal.methods import Method
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.types import Floats

_WITHOUT_INTERVAL = ("nll", "brier", "accuracy")


def compare(
    bank_place: BankPlace = None,
    target_place: TargetPlace = None,
    target: TargetFile = None,
    labels: TargetLabels = None,
    surrogate: Surrogates = None,
    bank: Bank = None,
    source_train: SourceTrain = None,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Compare this method only. Repeatable."),
    ] = None,
    bins: Bins = 15,
    binning: Binning = "size",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: BootstrapSeed = 0,
    normalize: Normalize = False,
    as_json: Json = False,
) -> Report:
    """Put every method that the given files allow into one table."""
    judge = Judge(n_bins=bins, binning=binning, level=level, n_resamples=resamples, seed=seed)
    judge.check()
    wanted = _wanted(method or [])
    files = named(
        (bank_place, target_place),
        bank=bank, surrogates=surrogate, target=target, source_train=source_train,
    )  # fmt: skip
    from shiftcal.scores import read_features

    file = files.must_have_target()
    sets = read_bank(files.bank, files.surrogates, normalize=normalize)
    scores = read_target(
        file,
        n_classes=sets.n_classes, classes=sets.classes, normalize=normalize, labels=labels,
    )  # fmt: skip
    scores.logits()  # a target that cannot be used is an error, not a reason to skip a method
    features = None if files.source_train is None else read_features(files.source_train)
    results: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            with progress(f"{name} ..."):
                results.append(_try_method(name, sets, features, scores, judge))
        except ShiftcalError as error:
            missing[name] = str(error)
    document = {
        "target": file,
        "n": scores.n,
        "labelled": scores.labels is not None,
        "labels": labels,
        "n_sets": len(sets),
        "n_bins": bins,
        "binning": judge.binning,
        "level": level,
        "n_resamples": resamples,
        "seed": seed,
        "methods": results,
        "missing": missing,
    }
    return Report("compare", document, _text(printable(document), judge), as_json)


def _wanted(asked: list[str]) -> list[str]:
    """Which methods; mistyped names are told before files are read."""
    from shiftcal import methods

    chosen = {methods.get(name).name: name for name in asked}
    listed = [name for name in method_names() if name in chosen or not asked]
    return [*listed, *(name for key, name in chosen.items() if key not in listed)]


def _try_method(
    name: str, sets: SurrogateBank, source: Floats | None, target: Scores, judge: Judge
) -> dict[str, Any]:
    from shiftcal import methods

    method: Method = methods.get(name)(input=sets.input)
    if method.uses_mixed:
        raise InputError(NEEDS_MIXED)
    lacking = lacking_features(source=source, clean=sets.clean.features, target=target.features)
    if method.uses_features and lacking:
        raise InputError(f"needs {lacking}.")
    method.fit(sets, source_features=source)
    _, values = adapt_to(method, target)
    probs = method.predict_proba(values)
    assert method.selection_ is not None
    result = {
        "method": method.name,
        "mean_confidence": probs.max(axis=1).mean(),
        "selection": method.selection_.to_dict(),
        "metrics": None,
    }
    if target.labels is not None:
        labels = target.labels
        rest = {name: {"value": judge.value(name, probs, labels)} for name in _WITHOUT_INTERVAL}
        result["metrics"] = {"ece": judge.interval("ece", probs, labels), **rest}
    return result


def _text(document: dict[str, Any], judge: Judge) -> str:
    labelled = document["labelled"]
    header = ["method", "set", "T", "confidence"]
    if labelled:
        interval = f"{100 * judge.level:g}% interval"
        header += ["accuracy", "ECE", interval, "NLL", "Brier"]
    rows = [_row(result, labelled=labelled) for result in document["methods"]]
    grid = _tables.table(header, rows, right=header[2:])
    lines = [
        f"{document['target']}: {document['n']:,} rows. Confidence is the mean over them.",
        "",
        grid,
        "",
        *_remarks(document["methods"]),
        *_missing(document["missing"]),
    ]
    if labelled:
        lines.append(judge.describe(document["n"]))
    else:
        lines.append(
            f"{document['target']} has no labels: only what needs none is shown. "
            "Mean confidence, where it can be trusted, estimates accuracy."
        )
    return "\n".join(lines)


def _remarks(results: list[dict[str, Any]]) -> Iterator[str]:
    """Which set was chosen, and every flag, by method."""
    for result in results:
        selection = result["selection"]
        if selection["index"] is not None:
            chosen = f"set {selection['index'] + 1} ({selection['set_name']})"
            yield f"{result['method']} chose {chosen}"
        for flag in selection["flags"]:
            yield f"{result['method']} is flagged, {flag['code']}: {flag['message']}"


def _missing(reasons: dict[str, str]) -> Iterator[str]:
    """One line a reason, however many methods it keeps away."""
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, its in reasons.items() if its == reason]
        yield f"missing: {', '.join(names)} ({reason.rstrip('.')})"


def _row(result: dict[str, Any], *, labelled: bool) -> list[str]:
    selection = result["selection"]
    index = selection["index"]
    row = [
        result["method"],
        "-" if index is None else f"{index + 1} of {selection['n_sets']}",
        _tables.temperature(selection["temperature"]),
        _tables.fraction(result["mean_confidence"]),
    ]
    if labelled:
        values = result["metrics"]
        low, high = values["ece"]["low"], values["ece"]["high"]
        row += [
            _tables.fraction(values["accuracy"]["value"]),
            _tables.fraction(values["ece"]["value"]),
            "-" if low is None else f"{low:.4f} to {high:.4f}",
            _tables.fraction(values["nll"]["value"]),
            _tables.fraction(values["brier"]["value"]),
        ]
    return row
