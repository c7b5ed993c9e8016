"""``shiftcal train``: labelled source and unlabelled target images in, an adapted network out."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
        typer.Option(metavar="PATH", help="Images of the same classes; labels only judge."),
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
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder of the run.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="The trainer; default: cdan. See --list.")
    ] = None,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Keep the backbone: features once, then heads on them.")
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
        typer.Option("--set", metavar="NAME=VALUE", help="Trainer option or setting. Repeatable."),
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
        str, typer.Option(metavar="NAME", help="Makes the surrogate sets: a name or MODULE:FUNC.")
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
        str, typer.Option(metavar="NAME", help="As torch names it; auto: the GPU if there is one.")
    ] = "auto",
    precision: Annotated[
        str | None,
        typer.Option(metavar="bfloat16|float16", help="Train in mixed precision, on a GPU."),
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(metavar="N", min=1, help="Steps between checkpoints, or five minutes.")
    ] = 500,
    workers: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Processes that read images or compute features."),
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
        bool, typer.Option("--list", help="List the trainers, or the numbers of --method.")
    ] = False,
    as_json: Json = False,
) -> Report:
    """Adapt a network to unlabelled images; run again, it resumes."""
    if list_trainers:
        return _listing(method, as_json)
    if source is None or target is None or backbone is None or output is None:
        raise InputError("--source, --target, --backbone and -o must be given.")
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


def _listing(method: str | None, as_json: bool) -> Report:
    """The trainers, one line each; or one with its options and settings in each recipe."""
    from shiftcal import adaptation

    about = []
    for name in adaptation.names() if method is None else [method]:
        kind = adaptation.get(name)
        summary = (kind.__doc__ or "").partition("\n")[0].replace("``", "")
        known = {"name": kind.name, "label": kind.label, "summary": summary}
        about.append({**known, "recipes": sorted(kind.recipes)})
    if method is None:
        rows = [[each["name"], each["summary"], ", ".join(each["recipes"])] for each in about]
        text = _tables.table(["method", "what it is", "recipes"], rows)
        return Report("train", {"trainers": about}, text, as_json)
    numbers: dict[str, Any] = {}
    for recipe in (None, *about[0]["recipes"]):
        trainer, settings = kind.prepared(recipe)
        both = {"options": trainer.to_dict(), "settings": settings.to_dict()}
        numbers[recipe or "default"] = both
    text = f"{kind.name}: {summary}"
    for part in ("options", "settings"):
        rows = [
            [name, *(str(each[part][name]) for each in numbers.values())] for name in both[part]
        ]
        text += f"\n\n{_tables.table([part, *numbers], rows)}"
    return Report("train", {"trainer": {**about[0], "numbers": numbers}}, text, as_json)


def _document(adapted: Adapted) -> dict[str, Any]:
    about, run = adapted.document, adapted.folder
    shown = ("recipe", "options", "settings", "seed", "frozen", "images", "accuracy")
    compare = ["shiftcal", "compare", "--target", str(run / "target.npz")]
    compare += ["--bank", str(run / "bank"), "--source-train", str(run / "source-train.npz")]
    return {
        "run": run,
        "method": about["trainer"],
        **{name: about[name] for name in shown},
        **about["trained"],
        "finished_before": adapted.finished_before,
        "next": shlex.join(compare),
    }


def _text(document: dict[str, Any]) -> str:
    images, losses, accuracy = document["images"], document["losses"], document["accuracy"]
    on_target = accuracy["target"]
    known = "not known, since it has no labels" if on_target is None else f"{on_target:.4f}"
    steps, kept = f"{document['steps']:,} steps", document["selected_step"]
    if document["finished_before"]:
        steps += "; was finished before, nothing was trained"
    elif document["resumed_at"]:
        steps += f", resumed after {document['resumed_at']:,}"
    lines = [
        ("method", f"{document['method']}, recipe {document['recipe']}"),
        ("backbone", f"{document['backbone']}{', frozen' if document['frozen'] else ''}"),
        ("source", document["source"]),
        ("", f"{images['train']:,} to train on, {images['calibration']:,} to calibrate on"),
        ("target", document["target"]),
        ("", f"{images['seen']:,} seen without labels, {images['held_out']:,} held out"),
        ("trained", steps),
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
