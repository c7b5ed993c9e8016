"""``shiftcal gallery``: an image in, a picture of its corrupted copies out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli.inputs import check_output
from shiftcal.cli.options import (
    Crop,
    FrostPhotos,
    ImageSeed,
    Json,
    Table,
    blaming_functions,
    choose_corruptions,
)
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import FileError, InputError
from shiftcal.files import naming

if TYPE_CHECKING:
    from shiftcal.types import Images

_FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".png": ("png", {"optimize": True}),
    ".jpg": ("jpeg", {"quality": 92, "subsampling": 0}),
    ".jpeg": ("jpeg", {"quality": 92, "subsampling": 0}),
    ".webp": ("webp", {"quality": 92}),
}
# The size the strengths for large images were published for; larger photographs are reduced to it.
_SHORTER_SIDE = 224
_SEVERITY = 3


def gallery(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="An image file.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Picture to write: .png, .jpg or .webp."
        ),
    ],
    corruption: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show this one alone at all its severities: a name, or module:function.",
        ),
    ] = None,
    severity: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=5, help="Severity at which all are shown, else 3."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Only the 16 corruptions of the paper's appendix.")
    ] = False,
    table: Table = "auto",
    seed: ImageSeed = 0,
    frost_photos: FrostPhotos = None,
    resize: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Make the shorter side of the image N first. Without this and --crop, a longer "
            "one becomes 224.",
        ),
    ] = None,
    crop: Crop = None,
    as_json: Json = False,
) -> Report:
    """Draw an image under all corruptions, or one at all severities."""
    _check(image, output, corruption, others=severity is not None or paper)
    from shiftcal.corruptions.images import check_table
    from shiftcal.report import gallery as figures

    chosen = choose_corruptions([corruption or "all"], frost_photos)
    if paper:
        chosen = [each for each in chosen if each.name in figures.PAPER]
    with progress(f"corrupting {image.name}"), blaming_functions():
        pixels = _read(image, resize, crop)
        height, width = pixels.shape[:2]
        strengths = check_table(table, height, width)
        options: dict[str, Any] = {"seed": seed, "table": strengths}
        if corruption is None:
            shown = [severity or _SEVERITY]
            tiles = figures.tiles_of_all(pixels, chosen, severity=shown[0], **options)
            what = f"severity {shown[0]}"
        else:
            shown = list(range(1, chosen[0].severities + 1))
            tiles = figures.tiles_of_one(pixels, chosen[0], **options)
            what = figures.in_words(chosen[0])
        heading = f"{what}   ({width} x {height} pixels, {strengths} strengths, seed {seed})"
        figure = figures.draw(tiles, heading=heading, one_row=corruption is not None)
        _write(figure, output)
    document = {
        "image": image,
        "output": output,
        "width": width,
        "height": height,
        "corruptions": {made.name: made.description for made in chosen},
        "severities": shown,
        "table": strengths,
        "seed": seed,
    }
    text = f"{len(tiles)} pictures of {width} x {height} pixels written to {printable(output)}"
    return Report("gallery", document, text, as_json)


def _check(image: Path, output: Path, corruption: str | None, *, others: bool) -> None:
    if corruption is not None and others:
        raise InputError(
            "--severity and --paper are for the gallery of all corruptions, and --corruption shows "
            "one at all its severities. Leave one or the other out."
        )
    if corruption == "all":
        raise InputError("--corruption all is what is shown without --corruption. Leave it out.")
    if output.suffix.lower() not in _FORMATS:
        raise FileError(f"{output} must end in {', '.join(_FORMATS)}, which says its format.")
    check_output(output, inputs=[image])


def _read(image: Path, resize: int | None, crop: int | None) -> Images:
    from shiftcal.checks import check_images
    from shiftcal.datasets.image_files import check_size, read_image

    check_size(resize, name="--resize")
    check_size(crop, name="--crop")
    pixels = read_image(image, resize=resize, crop=crop)
    if resize is None and crop is None and min(pixels.shape[:2]) > _SHORTER_SIDE:
        pixels = read_image(image, resize=_SHORTER_SIDE)
    with naming(image):
        check_images(pixels)
    return pixels


def _write(figure: Any, output: Path) -> None:
    from shiftcal.files import atomic_write

    kind, options = _FORMATS[output.suffix.lower()]
    with atomic_write(output) as temporary:
        try:
            figure.save(temporary, format=kind, **options)
        except ValueError as error:  # a side that the format cannot have
            raise FileError(
                f"{output} could not be written: {error}. Write a .png file, or --resize to less."
            ) from error
