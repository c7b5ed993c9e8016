"""``shiftcal apply``: a fitted method and an unlabelled target in, calibrated confidences out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import _tables
from shiftcal.cli._inputs import adapt_to, check_output, read_target
from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._same_model import warn_of_another_model
from shiftcal.cli._streams import progress
from shiftcal.errors import FileError, InputError

if TYPE_CHECKING:
    from shiftcal.methods import Method


def apply(
    method: Annotated[
        Path, typer.Argument(metavar="METHOD", help="Fitted method, as `shiftcal fit` writes it.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Scores file of the target. No labels needed.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the calibrated scores: .npz, .csv, .parquet or .safetensors.",
        ),
    ],
    as_json: Json = False,
) -> Report:
    """Calibrate a target, and say which surrogate set it resembles."""
    _refuse_swapped(method, target, output)
    check_output(output, inputs=[method, target])
    with progress(f"calibrating {target}"):
        fitted = _load(method)
        scores = read_target(target, n_classes=fitted.n_classes_, classes=fitted.class_names_)
        warn_of_another_model(fitted, method, target)
        logits, values = adapt_to(fitted, scores)
        probs = fitted.predict_proba(values)
        from shiftcal.numerics.softmax import p_max
        from shiftcal.scores import write_scores

        calibrated = replace(
            scores,
            values=probs,
            input="probabilities",
            features=None,
            classes=scores.classes or fitted.class_names_,
        )
        predicted, confidence = probs.argmax(axis=1), probs.max(axis=1)
        write_scores(output, calibrated, confidence=confidence, predicted=predicted)
    assert fitted.selection_ is not None
    document = {
        "method": fitted.name(),
        "method_file": method,
        "target": target,
        "output": output,
        "n": scores.n,
        "mean_confidence": confidence.mean(),
        "raw_mean_confidence": p_max(logits).mean(),
        "n_predictions_changed": (predicted != logits.argmax(axis=1)).sum(),
        "selection": fitted.selection_.to_dict(),
    }
    return Report("apply", document, _text(document), as_json)


def _refuse_swapped(method: Path, target: Path, output: Path) -> None:
    from shiftcal.scores._read import READABLE

    if method.suffix.lower() in READABLE and target.suffix.lower() == ".json":
        raise InputError(
            f"METHOD and TARGET look swapped: {method} is named as a scores file, and {target} as "
            f"a fitted method. Say: shiftcal apply {target} {method} -o {output}"
        )


def _load(path: Path) -> Method:
    from shiftcal._persistence import load
    from shiftcal.methods import Method

    fitted = load(path)
    if not isinstance(fitted, Method):
        raise FileError(
            f"{path} holds the {fitted.kind} {fitted.name()!r}, not a method. "
            "Write one with `shiftcal fit`."
        )
    return fitted


def _text(document: dict[str, Any]) -> str:
    selection = document["selection"]
    pairs = [("method", document["method"])]
    if selection["index"] is not None:
        chosen = f"{selection['index'] + 1} of {selection['n_sets']} ({selection['set_name']})"
        pairs.append(("chosen set", chosen))
    pairs.append(("temperature", _tables.temperature(selection["temperature"])))
    pairs += [(name.replace("_", " "), f"{v:.4g}") for name, v in selection["details"].items()]
    pairs.append(
        (
            "mean confidence",
            f"{document['mean_confidence']:.4f} (before: {document['raw_mean_confidence']:.4f})",
        )
    )
    if document["n_predictions_changed"]:
        changed = f"{document['n_predictions_changed']:,} of {document['n']:,}"
        pairs.append(("predicted class changed", changed))
    flags = selection["flags"]
    pairs.append(("flags", ", ".join(flag["code"] for flag in flags) or "none"))
    lines = [_tables.facts(pairs)]
    lines += [f"  {flag['code']}: {flag['message']}" for flag in flags]
    lines += ["", f"{document['n']:,} rows written to {document['output']}"]
    return "\n".join(lines)
