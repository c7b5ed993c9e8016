"""``shiftcal export``: a fitted method and a network in, the calibrated network out."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import adapt_to, check_output, read_target, warn_of_another_model
from shiftcal.cli.options import Json, Normalize
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import FileError, InputError
from shiftcal.files import naming


def export(
    method: Annotated[
        Path,
        typer.Argument(
            metavar="METHOD", help="Fitted method, as `shiftcal fit` writes it; or a saved map."
        ),
    ],
    onnx: Annotated[
        Path, typer.Option("--onnx", "--model", metavar="FILE", help="The network, an .onnx file.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write the calibrated network: .onnx."
        ),
    ],
    target: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scores file of the target, no labels needed, for a method that has to look at "
            "one and was not saved after it did.",
        ),
    ] = None,
    output_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which output of the network holds the scores; must be given if there are several "
            "of the right shape.",
        ),
    ] = None,
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="logits|probabilities",
            help="What that output holds; default: what the method was fitted on.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Leave the uncalibrated output out.")
    ] = False,
    normalize: Normalize = False,
    as_json: Json = False,
) -> Report:
    """Append a fitted calibration to a network in an ONNX file."""
    check_output(output, inputs=[method, onnx, *([] if target is None else [target])])
    if output.suffix.lower() != ".onnx":
        raise FileError(
            f"{output} must end in .onnx: that is what a calibrated network is written as. "
            f"Name it {output.with_suffix('.onnx')}."
        )
    from shiftcal.export import to_onnx
    from shiftcal.maps import Map
    from shiftcal.methods import Method
    from shiftcal.persistence import load

    fitted = load(method)
    if not isinstance(fitted, Method | Map):
        raise FileError(
            f"{method} holds the {fitted.kind} {fitted.name!r}, which calibrates nothing. Write a "
            "method with `shiftcal fit`."
        )
    if target is not None:
        if isinstance(fitted, Map):
            raise InputError(
                f"{method} holds the map {fitted.name!r}, which looks at no target. Leave --target "
                "out."
            )
        scores = read_target(
            target, n_classes=fitted.n_classes_, classes=fitted.class_names_, normalize=normalize
        )
        warn_of_another_model(fitted, method, target)
        with naming(target):
            adapt_to(fitted, scores)
    elif isinstance(fitted, Method) and fitted.uses_target and fitted.selection_ is None:
        raise InputError(
            f"{method} holds {fitted.name!r}, which has to look at a target before it can be "
            "exported. Name its scores: --target SCORES."
        )
    with progress(f"exporting {onnx}"):
        made = to_onnx(fitted, onnx, output, output_name=output_name, input=input_, replace=replace)
    selection = getattr(fitted, "selection_", None)
    document = {
        **{field.name: getattr(made, field.name) for field in fields(made) if field.name != "path"},
        "method_file": method,
        "model": onnx,
        "target": target,
        "output": made.path,
        "n_classes": fitted.n_classes_,
        "selection": None if selection is None else selection.to_dict(),
    }
    return Report("export", document, _text(printable(document)), as_json)


def _text(document: dict[str, Any]) -> str:
    selection = document["selection"]
    pairs = [("method", document["method"])]
    if selection is not None and selection["index"] is not None:
        chosen = f"{selection['index'] + 1} of {selection['n_sets']} ({selection['set_name']})"
        pairs.append(("chosen set", chosen))
    checked = "no: onnxruntime did not run it"
    if document["checked"] is not None:
        part = "the network" if document["checked"] == "network" else "the calibration alone"
        checked = f"{part}, run by onnxruntime; largest difference {document['difference']:.1g}"
    flags = [] if selection is None else selection["flags"]
    pairs += [
        ("map", document["map"]),
        ("temperature", _tables.temperature(document["temperature"])),
        ("calibrated", f"{document['source']} ({document['input']})"),
        ("outputs", ", ".join(document["outputs"])),
        ("opset", f"{document['opset']}, as it was"),
        ("checked", checked),
        ("flags", ", ".join(flag["code"] for flag in flags) or "none"),
    ]
    lines = [_tables.facts(pairs)]
    lines += [f"  {flag['code']}: {flag['message']}" for flag in flags]
    lines += ["", f"written to {document['output']}"]
    if document["data_files"]:
        lines.append(f"its weights are in {', '.join(document['data_files'])} in the same folder")
    return "\n".join(lines)
