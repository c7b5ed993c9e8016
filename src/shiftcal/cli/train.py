"""``shiftcal train``: labelled source and unlabelled target images in, an adapted network out."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.options import (
    Json,
    blaming_functions,
    choose_corruptions,
    parse_assignments,
    parse_severities,
)
from shiftcal.cli.output import Report, printable, stdout_kept_for_results
from shiftcal.cli.scoring import refuse_inside, reporting
from shiftcal.errors import InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal.adaptation import Adapted


def listed(as_json: bool) -> Report:
    """The trainers, one line each."""
    from shiftcal import adaptation

    trainers = [_about(name) for name in adaptation.names()]
    rows = [[each["name"], each["summary"], ", ".join(each["recipes"])] for each in trainers]
    text = _tables.table(["method", "what it is", "recipes"], rows)
    return Report("train", {"trainers": trainers}, text, as_json)


def one_listed(name: str, as_json: bool) -> Report:
    """One trainer, with its options and settings in each of its recipes.

    Raises:
        UnknownName: If there is no such trainer.
    """
    from shiftcal.adaptation.trainers import DEFAULT, choose

    about = _about(name)
    chosen = {recipe: choose(name, recipe=recipe) for recipe in (DEFAULT, *about["recipes"])}
    numbers = {
        recipe: {"options": each.trainer.to_dict(), "settings": each.settings.to_dict()}
        for recipe, each in chosen.items()
    }
    document = {"trainer": {**about, "numbers": numbers}}
    tables = [_table(part, numbers) for part in ("options", "settings")]
    text = "\n\n".join([f"{about['name']}: {about['summary']}", *tables])
    return Report("train", document, text, as_json)


def _table(part: str, numbers: dict[str, dict[str, dict[str, Any]]]) -> str:
    names = next(iter(numbers.values()))[part]
    rows = [[name, *(str(each[part][name]) for each in numbers.values())] for name in names]
    return _tables.table([part, *numbers], rows)


def _about(name: str) -> dict[str, Any]:
    from shiftcal import adaptation

    kind = adaptation.get(name)
    return {
        "name": kind.name,
        "label": kind.label,
        "summary": _plain(kind.__doc__),
        "recipes": sorted(kind.recipes),
    }


def _plain(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0].replace("``", "")


T = TypeVar("T")

# Held-out images, below which numbers on them say little.
_ENOUGH = 100


def train(
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
            help="Images of the same classes. Labels, if there are any, only judge the result.",
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
            help="The trainer; default: cdan. --list shows them.",
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
            help="Settings for a data set, such as office-home or visda, or default. Default: "
            "frozen with --frozen, digits with digits-cnn, else default.",
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
            help="What is done to training images; default: as the recipe has it.",
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
            help="Folder of frozen features, to share between runs; default: in that of the run.",
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
    """Adapt a network to unlabelled images; run again, it resumes."""
    if list_trainers:
        return listed(as_json) if method is None else one_listed(method, as_json)
    source, target = _needed(source, "--source"), _needed(target, "--target")
    backbone, output = _needed(backbone, "--backbone"), _needed(output, "-o")
    if features is not None and not frozen:
        raise InputError("--features goes with --frozen.")
    if transform is not None and frozen:
        raise InputError(
            "--transform does not go with --frozen: features are computed of images as they are."
        )
    changes = parse_assignments(assignment or [])
    levels = parse_severities(severity)
    for images in (source, target):
        refuse_inside(images, [output, features])
    with stdout_kept_for_results(), blaming_functions():
        from shiftcal.adaptation import adapt

        corruptions = choose_corruptions([corruption], None)
        if len(corruptions) > 1:
            raise InputError(f"--corruption must be one; got {len(corruptions)}.")
        adapted = adapt(
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
            corruption=corruptions[0],
            severities=levels or range(1, corruptions[0].severities + 1),
            select=select,  # type: ignore[arg-type]  # checked there
            device=device,
            precision=precision,
            checkpoint_every=checkpoint_every,
            workers=workers,
            features=features,
            reporting=reporting(),
        )
    held_out = adapted.document["images"]["held_out"]
    if held_out < _ENOUGH:
        warnings.warn(
            f"{held_out:,} target images are held out: with fewer than {_ENOUGH} the accuracy and "
            "calibration errors on them are mostly chance. Use more, if there are any.",
            InputWarning,
            stacklevel=2,
        )
    document = {"source": source, "target": target, "backbone": backbone, **_document(adapted)}
    return Report("train", document, _text(printable(document)), as_json)


def _needed(value: T | None, option: str) -> T:
    if value is None:
        raise InputError(f"{option} must be given; --source, --target, --backbone and -o all must.")
    return value


def _document(adapted: Adapted) -> dict[str, Any]:
    about, run = adapted.document, adapted.folder
    return {
        "run": run,
        "method": about["trainer"],
        "recipe": about["recipe"],
        "options": about["options"],
        "settings": about["settings"],
        "seed": about["seed"],
        "frozen": about["frozen"],
        "images": about["images"],
        **about["trained"],
        "finished_before": adapted.finished_before,
        "accuracy": about["accuracy"],
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
        return "; was finished before, nothing was trained"
    step = document["resumed_at"]
    return f", resumed after {step:,}" if step else ""
