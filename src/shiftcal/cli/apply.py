"""``shiftcal apply``: a fitted method and an unlabelled target in, calibrated confidences out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import (
    adapt_to,
    check_order,
    check_output,
    read_target,
    warn_of_another_model,
    written,
)
from shiftcal.cli.options import Json, Normalize, TargetFile, file_of, one_target, read_groups
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import FileError, InputError
from shiftcal.files import naming

if TYPE_CHECKING:
    from shiftcal.grouping import GroupedSelection
    from shiftcal.methods import Method
    from shiftcal.scores import Scores

# Groups printed before the rest is counted only; --json has all.
_SHOWN = 50


def apply(
    method: Annotated[
        Path, typer.Argument(metavar="METHOD", help="Fitted method, as `shiftcal fit` writes it.")
    ],
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="TARGET",
            show_default=False,
            help="Scores file of the target, no labels needed; or a .json file of its statistics, "
            "for which sac says what it would choose. The same as --target.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            callback=written,
            metavar="FILE",
            help="Where to write the calibrated scores: .npz, .csv, .parquet or .safetensors; "
            "must be given unless TARGET holds statistics.",
        ),
    ] = None,
    target_file: TargetFile = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE[:COLUMN]",
            help="Group of every row (camera, site, batch), each to be calibrated by itself: "
            "a .txt of one a line, .npy, .npz, or a column of a .csv or .parquet, of TARGET itself "
            "if you like.",
        ),
    ] = None,
    save_adapted: Annotated[
        Path | None,
        typer.Option(
            callback=written,
            metavar="FILE",
            help="Write the method as it is adapted to TARGET there, as JSON: `shiftcal export` "
            "takes it along as it is.",
        ),
    ] = None,
    normalize: Normalize = False,
    as_json: Json = False,
) -> Report:
    """Calibrate a target, and say which surrogate set it resembles."""
    target = one_target(place, target_file)
    _refuse_swapped(method, target, output)
    _check_save(save_adapted, groups, [method, target])
    if target.suffix.lower() == ".json":
        _refuse_groups(groups, target)
        return _to_statistics(method, target, output, save_adapted, as_json=as_json)
    if output is None:
        raise InputError("-o must name a file for the calibrated scores.")
    check_output(output, inputs=[method, target, *([file_of(groups)[0]] if groups else [])])
    chosen: GroupedSelection | None = None
    with progress(f"calibrating {target}"):
        fitted = _load(method)
        scores = read_target(
            target,
            n_classes=fitted.n_classes_, classes=fitted.class_names_, normalize=normalize,
        )  # fmt: skip
        warn_of_another_model(fitted, method, target)
        of_rows = None if groups is None else read_groups(groups, scores)
        logits, values = adapt_to(fitted, scores)
        if of_rows is None:
            probs = fitted.predict_proba(values)
        else:
            from shiftcal.grouping import GroupedCalibration

            grouped = GroupedCalibration(fitted)
            chosen = grouped.adapt(values, of_rows, scores.features)
            probs = grouped.predict_proba(values, of_rows)
        predicted, confidence = _write(output, scores, probs, fitted.class_names_)
        if save_adapted is not None:
            fitted.save(save_adapted)
    from shiftcal.numerics.softmax import p_max

    assert fitted.selection_ is not None
    document = {
        "method": fitted.name,
        "method_file": method,
        "target": target,
        "output": output,
        "adapted": save_adapted,
        "n": scores.n,
        "mean_confidence": confidence.mean(),
        "raw_mean_confidence": p_max(logits).mean(),
        "n_predictions_changed": (predicted != logits.argmax(axis=1)).sum(),
        "selection": fitted.selection_.to_dict(),
        "groups": None if chosen is None else _without_everything(chosen),
    }
    text = (
        _text(printable(document))
        if chosen is None
        else _text_of_groups(printable(document), chosen)
    )
    return Report("apply", document, text, as_json)


def _write(
    output: Path, scores: Scores, probs: Any, class_names: tuple[str, ...] | None
) -> tuple[Any, Any]:
    """Write the calibrated scores; gives the predicted classes and their confidences."""
    from shiftcal.scores import write_scores

    calibrated = replace(
        scores,
        values=probs,
        input="probabilities",
        features=None,
        classes=scores.classes or class_names,
    )
    predicted, confidence = probs.argmax(axis=1), probs.max(axis=1)
    write_scores(output, calibrated, confidence=confidence, predicted=predicted)
    return predicted, confidence


def _check_save(path: Path | None, groups: str | None, others: list[Path]) -> None:
    if path is None:
        return
    if groups is not None:
        raise InputError(
            "--save-adapted writes one method, and --groups adapts one to every group. Leave one "
            "of them out."
        )
    check_output(path, inputs=others)


def _to_statistics(
    method: Path, target: Path, output: Path | None, save_adapted: Path | None, *, as_json: bool
) -> Report:
    """What a method chooses for a target of which only statistics are there."""
    from shiftcal.methods.sac import SAC
    from shiftcal.scoring.statistics import ScoreStatistics

    if output is not None:
        raise InputError(
            f"rows are needed to write calibrated scores, and {target} holds statistics of them. "
            "Leave -o out to see what is chosen, or name a scores file."
        )
    fitted, statistics = _load(method), ScoreStatistics.read(target)
    if not isinstance(fitted, SAC):
        raise InputError(
            f"statistics of a target are enough for sac alone; {method} holds {fitted.name!r}. "
            "Name a scores file of the target."
        )
    with naming(target):
        selection = fitted.adapt_statistics(statistics)
    if statistics.classes is not None and fitted.class_names_ is not None:
        check_order(target, statistics.classes, tuple(fitted.class_names_))
    if save_adapted is not None:
        fitted.save(save_adapted)
    document = {
        "method": fitted.name,
        "method_file": method,
        "target": target,
        "output": None,
        "adapted": save_adapted,
        "n": statistics.n,
        "mean_confidence": None,
        "raw_mean_confidence": statistics.mean_confidence,
        "n_predictions_changed": None,
        "selection": selection.to_dict(),
        "groups": None,
    }
    return Report("apply", document, _text(printable(document)), as_json)


def _refuse_groups(groups: str | None, target: Path) -> None:
    if groups is not None:
        raise InputError(
            f"rows are needed to calibrate groups of them, and {target} holds statistics. Leave "
            "--groups out, or name a scores file."
        )


def _without_everything(chosen: GroupedSelection) -> dict[str, Any]:
    return {name: value for name, value in chosen.to_dict().items() if name != "everything"}


def _refuse_swapped(method: Path, target: Path, output: Path | None) -> None:
    from shiftcal.scores_io import READABLE

    if method.is_dir():
        raise FileError(
            f"{method} is a folder, and METHOD must be a file with a fitted method. Fit one first: "
            f"shiftcal fit --method sac --bank {method} -o sac.json"
        )
    if method.suffix.lower() in READABLE and target.suffix.lower() == ".json":
        raise InputError(
            f"METHOD and TARGET look swapped: {method} is named as a scores file, and {target} as "
            f"a fitted method. Say: shiftcal apply {target} {method} -o {output or 'FILE'}"
        )


def _load(path: Path) -> Method:
    from shiftcal.methods import Method
    from shiftcal.persistence import load

    fitted = load(path)
    if not isinstance(fitted, Method):
        raise FileError(
            f"{path} holds the {fitted.kind} {fitted.name!r}, not a method. "
            "Write one with `shiftcal fit`."
        )
    return fitted


def _text(document: dict[str, Any]) -> str:
    selection = document["selection"]
    pairs = [("method", document["method"])]
    if selection["index"] is not None:
        chosen = f"{selection['index'] + 1} of {selection['n_sets']} ({selection['set_name']})"
        pairs.append(("chosen set", chosen))
    pairs.append(("temperature", _temperature(selection)))
    pairs += [(name.replace("_", " "), f"{v:.4g}") for name, v in selection["details"].items()]
    pairs += _sureness(document)
    flags = selection["flags"]
    pairs.append(("flags", ", ".join(flag["code"] for flag in flags) or "none"))
    lines = [_tables.facts(pairs)]
    lines += [f"  {flag['code']}: {flag['message']}" for flag in flags]
    return "\n".join([*lines, "", _written(document)])


def _text_of_groups(document: dict[str, Any], chosen: GroupedSelection) -> str:
    header, rows = chosen.table()
    lines = [_tables.table(header, rows[:_SHOWN], right=("rows", "own T", "weight", "T"))]
    if len(rows) > _SHOWN:
        lines.append(f"... and {len(rows) - _SHOWN:,} groups more (--json has all)")
    pairs = [("method", document["method"]), ("all rows", str(chosen.everything))]
    if chosen.outside:
        pairs.append(("outside the bank", ", ".join(chosen.outside[:_SHOWN])))
    pairs += _sureness(document)
    lines += ["", _tables.facts(pairs)]
    lines += [f"  {flag.code}: {flag.message}" for flag in chosen.flags]
    return "\n".join([*lines, "", _written(document)])


def _temperature(selection: dict[str, Any]) -> str:
    text, interval = (
        _tables.temperature(selection["temperature"]),
        selection["temperature_interval"],
    )
    if interval is None:
        return text
    level = f"{100 * interval['level']:g}% interval"
    return f"{text} ({interval['low']:.3f} to {interval['high']:.3f}, {level})"


def _sureness(document: dict[str, Any]) -> list[tuple[str, str]]:
    before, after = document["raw_mean_confidence"], document["mean_confidence"]
    sure = f"{before:.4f} before" if after is None else f"{after:.4f} (before: {before:.4f})"
    pairs = [("mean confidence", sure)]
    if document["n_predictions_changed"]:
        changed = f"{document['n_predictions_changed']:,} of {document['n']:,}"
        pairs.append(("predicted class changed", changed))
    return pairs


def _written(document: dict[str, Any]) -> str:
    rows, kept = _tables.count_of(document["n"], "row"), document["output"]
    text = f"{rows} known by statistics" if kept is None else f"{rows} written to {kept}"
    adapted = document["adapted"]
    return text if adapted is None else f"{text}\nadapted method written to {adapted}"
