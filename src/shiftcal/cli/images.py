"""``shiftcal corrupt`` and ``gallery``: images in, corrupted images out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, facts, progress
from shiftcal.errors import InputError
from shiftcal.files import naming

# How pictures are written, by suffix.
_FORMATS: dict[str, dict[str, Any]] = {".png": {"optimize": True}, ".webp": {"quality": 92}}


def corrupt(
    source: Annotated[Path, Argument(metavar="IMAGES")],
    output: Annotated[Path, Argument(metavar="OUTPUT")],
    corruption: Annotated[list[str], Option(metavar="NAME")],
    *,
    severity: options.Severities = "all",
    strength: options.Strength,
    labels: options.File = None,
    resize: options.MaybeCount = None,
    crop: options.MaybeCount = None,
    format_: Literal["png", "jpeg"] = "png",
    skip_bad: bool = False,
    threads: options.MaybeCount = None,
) -> Report:
    """Make corrupted copies of images. Resumes if run again.

    Example:
        shiftcal corrupt images/ corrupted/ --corruption pixelate --severity all

    Args:
        source: A folder of images (class sub-folders are kept), one image, an .npy file of images
            (n, height, width, 3), or an .npz file with 'images' and optionally 'labels'.
        output: Folder for <corruption>/<severity>/<class>/<file>, or for <corruption>.npy.
        corruption: A corruption, several as fog,contrast, all, or module:function for your own;
            `shiftcal list` lists them. Repeatable.
        severity: One severity, several as 1,3 or 2-4, or all.
        labels: Labels of an array of images.
        resize: Resize images of a folder first, to N pixels on the shorter side.
        crop: Then crop N x N pixels from the centre.
        format_: Format of written images: png is lossless, jpeg has quality 85 like ImageNet-C.
        skip_bad: Exit with status 0 even if images could not be read.
        threads: Threads; default: one per processor.
    """
    severities = inputs.parse_severities(severity)
    corruptions = inputs.choose_corruptions(corruption, strength.frost_photos)
    from shiftcal.progress import bar
    from shiftcal.surrogates.image_sets import corrupt_files

    with inputs.blaming_functions(), bar(f"corrupting {source.name}", unit="images") as step:
        outcome = corrupt_files(
            source,
            output,
            corruptions=corruptions,
            severities=severities,
            seed=strength.seed,
            table=strength.table,
            step=step,
            labels=labels,
            resize=resize,
            crop=crop,
            format=format_,
            threads=threads,
        )
    document = {
        "source": source,
        "target": output,
        "corruptions": {made.name: made.description for made in corruptions},
        "severities": severities or "all",
        "table": strength.table,
        "seed": strength.seed,
        "layout": outcome.layout,
        "n_images": outcome.n_images,
        "files_written": outcome.written,
        "files_kept": outcome.kept,
        "bad": [{"file": name, "reason": reason} for name, reason in outcome.bad.items()],
    }
    left_out = f"{len(outcome.bad)} of {outcome.n_images:,} images could not be read."
    error = f"{left_out} --skip-bad accepts that." if outcome.bad and not skip_bad else ""
    text = facts({**document, "corruptions": [made.description for made in corruptions]})
    return Report(document, text, bad_input=error)


def gallery(
    image: Annotated[Path, Argument(metavar="IMAGE")],
    output: options.OutputFile,
    *,
    corruption: options.Name = None,
    severity: Annotated[int | None, Option(metavar="N", min=1, max=5)] = None,
    paper: bool = False,
    strength: options.Strength,
    resize: options.MaybeCount = None,
    crop: options.MaybeCount = None,
) -> Report:
    """Draw an image under all corruptions, or one at all severities.

    Example:
        shiftcal gallery photo.jpg -o gallery.png --severity 3

    Args:
        image: An image file.
        output: Picture to write: .png or .webp.
        corruption: Show only this one, at all its severities: a name, or module:function.
        severity: Severity at which all are shown; default: 3.
        paper: Only the 16 corruptions of the paper's appendix.
        resize: Resize the image first, to N pixels on the shorter side. Without this and --crop, a
            side longer than 224 becomes 224.
        crop: Then crop N x N pixels from the centre.
    """
    if corruption == "all" or (corruption is not None and (severity is not None or paper)):
        raise InputError(
            "--corruption shows one corruption at all its severities, without --severity and "
            "--paper; all are shown without it. Leave one or the other out."
        )
    inputs.check_suffix(output, *_FORMATS)
    from shiftcal.checks import check_images
    from shiftcal.corruptions.images import check_table
    from shiftcal.datasets.image_files import check_size, read_image
    from shiftcal.files import atomic_write
    from shiftcal.report import gallery as figures

    check_size(crop, name="--crop")
    chosen = inputs.choose_corruptions([corruption or "all"], strength.frost_photos)
    if paper:
        chosen = [each for each in chosen if each.name in figures.PAPER]
    with progress(f"corrupting {image.name}"), inputs.blaming_functions():
        pixels = read_image(image, resize=resize, crop=crop)
        # The size that the strengths for large images were published for.
        if resize is None and crop is None and min(pixels.shape[:2]) > 224:
            pixels = read_image(image, resize=224)
        with naming(image):
            check_images(pixels)
        height, width = pixels.shape[:2]
        strengths = check_table(strength.table, height, width)
        drawn: dict[str, Any] = {"seed": strength.seed, "table": strengths}
        if corruption is None:
            shown = [severity or 3]
            what = f"severity {shown[0]}"
        else:
            shown = list(range(1, chosen[0].severities + 1))
            what = figures.in_words(chosen[0])
        at = None if corruption else shown[0]
        tiles = figures.tiles_of(pixels, chosen, severity=at, **drawn)
        size = f"{width} x {height} pixels"
        heading = f"{what}   ({size}, {strengths} strengths, seed {strength.seed})"
        figure = figures.draw(tiles, heading=heading, one_row=corruption is not None)
        suffix = output.suffix.lower()
        with atomic_write(output) as temporary:
            figure.save(temporary, format=suffix[1:], **_FORMATS[suffix])
    document = {
        "image": image,
        "output": output,
        "width": width,
        "height": height,
        "corruptions": {made.name: made.description for made in chosen},
        "severities": shown,
        "table": strengths,
        "seed": strength.seed,
    }
    return Report(document, f"{len(tiles)} pictures of {size} written to {output}")
