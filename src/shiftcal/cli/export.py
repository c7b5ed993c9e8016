"""``shiftcal export``: a fitted method and a network in, the calibrated network out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import _tables
from shiftcal.cli._inputs import adapt_to, check_output, naming, read_target
from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._same_model import warn_of_another_model
from shiftcal.cli._streams import progress
from shiftcal.errors import FileError, InputError

if TYPE_CHECKING:
    from shiftcal.export import OnnxExport
    from shiftcal.maps import Map
    from shiftcal.methods import Method


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
            help="What that output holds; what the method was fitted on unless told.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Leave the uncalibrated output out.")
    ] = False,
    as_json: Json = False,
) -> Report:
    """Append a fitted calibration to a network in an ONNX file."""
    _check_files(method, onnx, output, target)
    from shiftcal.export import to_onnx

    fitted = _load(method)
    if target is not None:
        _adapt(fitted, method, target)
    elif _needs_target(fitted):
        raise InputError(
            f"{method} holds {fitted.name()!r}, which has to look at a target before it can be "
            "exported. Name its scores: --target SCORES."
        )
    with progress(f"exporting {onnx}"):
        made = to_onnx(fitted, onnx, output, output_name=output_name, input=input_, replace=replace)
    document = _document(made, fitted, files=(method, onnx, target))
    return Report("export", document, _text(document), as_json)


def _check_files(method: Path, onnx: Path, output: Path, target: Path | None) -> None:
    check_output(output, inputs=[method, onnx, *([] if target is None else [target])])
    if output.suffix.lower() != ".onnx":
        raise FileError(
            f"{output} must end in .onnx: that is what a calibrated network is written as. "
            f"Name it {output.with_suffix('.onnx')}."
        )


def _load(path: Path) -> Method | Map:
    from shiftcal._persistence import load
    from shiftcal.maps import Map
    from shiftcal.methods import Method

    fitted = load(path)
    if not isinstance(fitted, Method | Map):
        raise FileError(
            f"{path} holds the {fitted.kind} {fitted.name()!r}, which calibrates nothing. Write a "
            "method with `shiftcal fit`."
        )
    return fitted


def _needs_target(fitted: Method | Map) -> bool:
    from shiftcal.methods import Method

    return isinstance(fitted, Method) and fitted.uses_target and fitted.selection_ is None


def _adapt(fitted: Method | Map, method: Path, target: Path) -> None:
    from shiftcal.methods import Method

    if not isinstance(fitted, Method):
        raise InputError(
            f"{method} holds the map {fitted.name()!r}, which looks at no target. Leave --target "
            "out."
        )
    scores = read_target(target, n_classes=fitted.n_classes_, classes=fitted.class_names_)
    warn_of_another_model(fitted, method, target)
    with naming(target):
        adapt_to(fitted, scores)


def _document(
    made: OnnxExport, fitted: Method | Map, *, files: tuple[Path, Path, Path | None]
) -> dict[str, Any]:
    selection = getattr(fitted, "selection_", None)
    method, onnx, target = files
    return {
        "method": made.method,
        "method_file": method,
        "model": onnx,
        "target": target,
        "output": made.path,
        "map": made.map,
        "temperature": made.temperature,
        "n_classes": fitted.n_classes_,
        "opset": made.opset,
        "source": made.source,
        "input": made.input,
        "outputs": made.outputs,
        "probabilities": made.probabilities,
        "confidence": made.confidence,
        "data_files": made.data_files,
        "checked": made.checked,
        "difference": made.difference,
        "digest": made.digest,
        "selection": None if selection is None else selection.to_dict(),
    }


def _text(document: dict[str, Any]) -> str:
    selection = document["selection"]
    pairs = [("method", document["method"])]
    if selection is not None and selection["index"] is not None:
        chosen = f"{selection['index'] + 1} of {selection['n_sets']} ({selection['set_name']})"
        pairs.append(("chosen set", chosen))
    flags = [] if selection is None else selection["flags"]
    pairs += [
        ("map", document["map"]),
        ("temperature", _tables.temperature(document["temperature"])),
        ("calibrated", f"{document['source']} ({document['input']})"),
        ("outputs", ", ".join(document["outputs"])),
        ("opset", f"{document['opset']}, as it was"),
        ("checked", _checked(document)),
        ("flags", ", ".join(flag["code"] for flag in flags) or "none"),
    ]
    lines = [_tables.facts(pairs)]
    lines += [f"  {flag['code']}: {flag['message']}" for flag in flags]
    return "\n".join([*lines, "", *_written(document)])


def _checked(document: dict[str, Any]) -> str:
    if document["checked"] is None:
        return "no: onnxruntime did not run it"
    what = "the network" if document["checked"] == "network" else "the calibration alone"
    return f"{what}, run by onnxruntime; largest difference {document['difference']:.1g}"


def _written(document: dict[str, Any]) -> Iterator[str]:
    yield f"written to {document['output']}"
    if document["data_files"]:
        yield f"its weights are in {', '.join(document['data_files'])} beside it"
