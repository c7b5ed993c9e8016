"""``shiftcal corrupt``: images in, corrupted images out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli.options import (
    Crop,
    FrostPhotos,
    ImageSeed,
    Json,
    Resize,
    Table,
    blaming_functions,
    choose_corruptions,
    parse_severities,
)
from shiftcal.cli.output import Report, printable
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.surrogates.image_sets import Outcome


def corrupt(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            help="A folder of images (class sub-folders are kept), one image, an .npy file of "
            "images (n, height, width, 3), or an .npz file with 'images' and maybe 'labels'.",
        ),
    ],
    corruption: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A corruption, several as fog,contrast, all, or module:function for your own; "
            "`shiftcal list` lists them. Repeatable.",
        ),
    ],
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            show_default=False,
            help="Folder for <corruption>/<severity>/<class>/<file>, or for <corruption>.npy.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="The same as OUT."),
    ] = None,
    severity: Annotated[
        str, typer.Option(metavar="1-5|all", help="One severity, several as 1,3 or 2-4, or all.")
    ] = "all",
    table: Table = "auto",
    seed: ImageSeed = 0,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labels of an array of images.")
    ] = None,
    frost_photos: FrostPhotos = None,
    resize: Resize = None,
    crop: Crop = None,
    image_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="png|jpeg",
            help="Format of written images: png loses nothing, jpeg has quality 85 as ImageNet-C.",
        ),
    ] = "png",
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Exit with status 0 even if images could not be read."),
    ] = False,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Threads; by default one a processor.")
    ] = None,
    as_json: Json = False,
) -> Report:
    """Make corrupted copies of images. Run again, it goes on where it stopped."""
    target = _one_of(place, output)
    severities = parse_severities(severity)
    corruptions = choose_corruptions(corruption, frost_photos)
    from shiftcal.corruptions.corruption import bar
    from shiftcal.surrogates.image_sets import corrupt_files

    with blaming_functions(), bar(f"corrupting {source.name}", shown=None) as step:
        outcome = corrupt_files(
            source,
            target,
            corruptions=corruptions,
            severities=severities,
            seed=seed,
            table=table,
            step=step,
            labels=labels,
            resize=resize,
            crop=crop,
            format=image_format,
            threads=threads,
        )
    document = {
        "source": source,
        "target": target,
        "corruptions": {made.name: made.description for made in corruptions},
        "severities": severities or "all",
        "table": table,
        "seed": seed,
        "layout": outcome.layout,
        "n_images": outcome.n_images,
        "files_written": outcome.written,
        "files_kept": outcome.kept,
        "bad": [{"file": name, "reason": reason} for name, reason in outcome.bad.items()],
    }
    bad = f"{len(outcome.bad)} of {outcome.n_images:,} images could not be read and were left out."
    return Report(
        "corrupt",
        document,
        _text(printable(target), printable(document), outcome),
        as_json,
        bad_input=f"{bad} --skip-bad accepts that." if outcome.bad and not skip_bad else "",
    )


def _one_of(place: Path | None, output: Path | None) -> Path:
    """The folder to write to, which is said in one of two ways."""
    if place is not None and output is not None:
        raise InputError(f"the output is given twice: {place} and -o {output}. Leave one out.")
    found = place or output
    if found is None:
        raise InputError("OUT must name a folder for the corrupted images, as -o DIR does too.")
    return found


def _text(target: Path, document: dict[str, Any], outcome: Outcome) -> str:
    shape = {
        "folder": "<corruption>/<severity>/...",
        "stacked": "<corruption>.npy (all severities, one after the other)",
        "arrays": "<corruption>/<severity>.npy",
    }[outcome.layout]
    made = ", ".join(document["corruptions"].values())
    given = document["severities"]
    severities = given if isinstance(given, str) else ", ".join(str(level) for level in given)
    kept = f", {outcome.kept:,} were there already" if outcome.kept else ""
    bad = f"\nleft out    {len(outcome.bad):,} images that could not be read" if outcome.bad else ""
    return (
        f"images      {outcome.n_images:,}\n"
        f"corruptions {made}\n"
        f"severities  {severities} (table {document['table']}, seed {document['seed']})\n"
        f"files       {outcome.written:,} written{kept}{bad}\n"
        f"in          {target}/{shape}"
    )
