"""``shiftcal adapt``: labelled source and unlabelled target images in, an adapted network out."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from shiftcal.cli import _tables
from shiftcal.cli._corruptions import blaming_functions, choose_corruptions, parse_severities
from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._scoring import refuse_inside, reporting
from shiftcal.cli._settings import parse_assignments
from shiftcal.cli._streams import stdout_kept_for_results
from shiftcal.cli._trainers import listed, one_listed
from shiftcal.errors import InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal.adaptation import Adapted

T = TypeVar("T")

# Held-out images, below which numbers on them say little.
_ENOUGH = 100


def adapt(
    source: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Labelled images: a folder of class folders, or NAME:PATH?option=value for a "
            "published data set (`shiftcal data list`).",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Images of the same classes. Labels, if they bring any, judge the result; nothing "
            "else looks at them.",
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="What gives features: resnet50, resnet101, efficientnet-lite0, digits-cnn, or a "
            "model as for `shiftcal bank`, with ?features_from=LAYER.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder of the run."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The trainer, cdan if left out; --list shows them.",
            show_default=False,
        ),
    ] = None,
    frozen: Annotated[
        bool,
        typer.Option(
            "--frozen", help="Leave the backbone as it is: features once, then heads on them."
        ),
    ] = False,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Settings for a data set, such as office-home or visda, or default. If left out: "
            "frozen with --frozen, digits with digits-cnn.",
        ),
    ] = None,
    assignment: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of the trainer or a setting of the training. Repeatable.",
        ),
    ] = None,
    transform: Annotated[
        str | None,
        typer.Option(
            metavar="default|center-crop|random-crop|none",
            help="What is done to training images; as the recipe has it if left out.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Decides splits and everything random.")
    ] = 0,
    corruption: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What makes the surrogate sets: a name, or module:function for your own.",
        ),
    ] = "pixelate",
    severity: Annotated[
        str, typer.Option(metavar="1-5|all", help="One severity, several as 1,3 or 2-4, or all.")
    ] = "all",
    select: Annotated[
        str,
        typer.Option(
            metavar="last|source-validation",
            help="Which weights are kept: the last, or the best on the calibration images.",
        ),
    ] = "last",
    device: Annotated[
        str,
        typer.Option(metavar="NAME", help="As torch names it; auto is the GPU if there is one."),
    ] = "auto",
    precision: Annotated[
        str | None,
        typer.Option(metavar="bfloat16|float16", help="Train in mixed precision, on a GPU."),
    ] = None,
    checkpoint_every: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Steps between two checkpoints; there is one every five minutes too.",
        ),
    ] = 500,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Processes that read training images, or with --frozen compute features.",
        ),
    ] = 0,
    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            "--cache",
            metavar="DIR",
            help="Folder of frozen features, to share between runs; DIR of the run if left out.",
        ),
    ] = None,
    list_trainers: Annotated[
        bool,
        typer.Option(
            "--list",
            help="List the trainers and their recipes, or with --method the numbers of one, and "
            "stop.",
        ),
    ] = False,
    as_json: Json = False,
) -> Report:
    """Adapt a network to unlabelled images; run again, it goes on."""
    if list_trainers:
        return listed(as_json) if method is None else one_listed(method, as_json)
    source, target = _needed(source, "--source"), _needed(target, "--target")
    backbone, output = _needed(backbone, "--backbone"), _needed(output, "-o")
    _check_frozen(frozen, features, transform)
    changes = parse_assignments(assignment or [])
    levels = parse_severities(severity)
    for images in (source, target):
        refuse_inside(images, [output, features])
    first = os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("RANK") == "0"
    with stdout_kept_for_results(), blaming_functions():
        from shiftcal.adaptation import adapt as run
        from shiftcal.scoring.run import Reporting

        made = _one(choose_corruptions([corruption], None))
        adapted = run(
            source,
            target,
            output,
            trainer=method or "cdan",
            backbone=backbone,
            frozen=frozen,
            recipe=recipe,
            changes=changes,
            transform=transform,
            seed=seed,
            corruption=made,
            severities=levels or range(1, made.severities + 1),
            select=select,  # type: ignore[arg-type]  # checked there
            device=device,
            precision=precision,
            checkpoint_every=checkpoint_every,
            workers=workers,
            features=features,
            reporting=reporting() if first else Reporting(shown=False),
        )
    if not first:  # of processes that train together one speaks
        raise typer.Exit
    _warn_of_few(adapted.document["images"]["held_out"])
    document = {"source": source, "target": target, "backbone": backbone, **_document(adapted)}
    return Report("adapt", document, _text(document), as_json)


def _needed(value: T | None, option: str) -> T:
    if value is None:
        raise InputError(f"{option} must be given; --source, --target, --backbone and -o all must.")
    return value


def _check_frozen(frozen: bool, features: Path | None, transform: str | None) -> None:
    if features is not None and not frozen:
        raise InputError("--features goes with --frozen.")
    if transform is not None and frozen:
        raise InputError(
            "--transform does not go with --frozen: features are computed of images as they are."
        )


def _warn_of_few(held_out: int) -> None:
    if held_out < _ENOUGH:
        warnings.warn(
            f"{held_out:,} target images are held out: with fewer than {_ENOUGH} the accuracy and "
            "calibration errors on them are mostly chance. Take more, if there are any.",
            InputWarning,
            stacklevel=2,
        )


def _one(corruptions: Sequence[Any]) -> Any:
    if len(corruptions) > 1:
        raise InputError(f"--corruption must be one; got {len(corruptions)}.")
    return corruptions[0]


def _document(adapted: Adapted) -> dict[str, Any]:
    told = adapted.document
    run = adapted.folder
    return {
        "run": run,
        "method": told["trainer"],
        "recipe": told["recipe"],
        "options": told["options"],
        "settings": told["settings"],
        "seed": told["seed"],
        "frozen": told["frozen"],
        "images": told["images"],
        **told["trained"],
        "finished_before": adapted.finished_before,
        "accuracy": told["accuracy"],
        "next": shlex.join(
            [
                *("shiftcal", "compare"),
                *("--target", str(run / "target.npz")),
                *("--bank", str(run / "bank")),
                *("--source-train", str(run / "source-train.npz")),
            ]
        ),
    }


def _text(document: dict[str, Any]) -> str:
    images, losses, accuracy = document["images"], document["losses"], document["accuracy"]
    on_target = accuracy["target"]
    known = "not known, since it has no labels" if on_target is None else f"{on_target:.4f}"
    kept = document["selected_step"]
    lines = [
        ("method", f"{document['method']}, recipe {document['recipe']}"),
        ("backbone", f"{document['backbone']}{', frozen' if document['frozen'] else ''}"),
        ("source", document["source"]),
        ("", f"{images['train']:,} to train on, {images['calibration']:,} to calibrate on"),
        ("target", document["target"]),
        ("", f"{images['seen']:,} seen without labels, {images['held_out']:,} held out"),
        ("trained", f"{document['steps']:,} steps{_since(document)}"),
        (
            "losses",
            f"classification {losses['classification']:.4f}, transfer {losses['transfer']:.4f}",
        ),
        ("accuracy", f"{accuracy['calibration']:.4f} on the calibration images of the source"),
        ("", f"{known} on the held-out target"),
        ("run", str(document["run"])),
    ]
    if kept != document["steps"]:
        lines.insert(7, ("kept", f"the weights of step {kept:,}, the best on calibration images"))
    return f"{_tables.facts(lines)}\n\nnext      {document['next']}"


def _since(document: dict[str, Any]) -> str:
    if document["finished_before"]:
        return "; was finished already, nothing was trained"
    step = document["resumed_at"]
    return f", gone on with after {step:,}" if step else ""
