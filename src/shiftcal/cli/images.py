"""``shiftcal corrupt`` and ``gallery``: images in, corrupted images out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, facts, progress
from shiftcal.errors import FileError, InputError
from shiftcal.files import naming

_FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".png": ("png", {"optimize": True}),
    ".jpg": ("jpeg", {"quality": 92, "subsampling": 0}),
    ".jpeg": ("jpeg", {"quality": 92, "subsampling": 0}),
    ".webp": ("webp", {"quality": 92}),
}
_LAYOUTS = {
    "folder": "<corruption>/<severity>/...",
    "stacked": "<corruption>.npy (all severities, one after the other)",
    "arrays": "<corruption>/<severity>.npy",
}


def corrupt(
    source: Annotated[Path, Argument(metavar="IN")],
    corruption: Annotated[list[str], Option(metavar="NAME")],
    place: Annotated[Path | None, Argument(metavar="OUT", show_default=False)] = None,
    output: options.MaybeOutputFolder = None,
    severity: options.Severities = "all",
    table: options.Table = "auto",
    seed: options.ImageSeed = 0,
    labels: options.File = None,
    frost_photos: options.FrostPhotos = None,
    resize: options.Resize = None,
    crop: options.Crop = None,
    format_: Literal["png", "jpeg"] = "png",
    skip_bad: options.SkipBad = False,
    threads: options.MaybeCount = None,
) -> Report:
    """Make corrupted copies of images. Run again, it resumes.

    Example:
        shiftcal corrupt images/ corrupted/ --corruption pixelate --severity all

    Args:
        source: A folder of images (class sub-folders are kept), one image, an .npy file of images
            (n, height, width, 3), or an .npz file with 'images' and maybe 'labels'.
        corruption: A corruption, several as fog,contrast, all, or module:function for your own;
            `shiftcal list` lists them. Repeatable.
        place: Folder for <corruption>/<severity>/<class>/<file>, or for <corruption>.npy.
        output: The same as OUT.
        labels: Labels of an array of images.
        format_: Format of written images: png is lossless, jpeg has quality 85 as ImageNet-C.
        threads: Threads; default: one per processor.
    """
    if (place is None) == (output is None):
        raise InputError("name one folder for the corrupted images, as OUT or with -o DIR.")
    target = place or output
    assert target is not None
    severities = inputs.parse_severities(severity)
    corruptions = inputs.choose_corruptions(corruption, frost_photos)
    from shiftcal.progress import bar
    from shiftcal.surrogates.image_sets import corrupt_files

    with inputs.blaming_functions(), bar(f"corrupting {source.name}") as step:
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
            format=format_,
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
    levels = ", ".join(map(str, severities)) if severities else "all"
    kept = f", {outcome.kept:,} were there already" if outcome.kept else ""
    bad = f"{len(outcome.bad):,} images that could not be read" if outcome.bad else ""
    text = facts(
        [
            ("images", f"{outcome.n_images:,}"),
            ("corruptions", ", ".join(made.description for made in corruptions)),
            ("severities", f"{levels} (table {table}, seed {seed})"),
            ("files", f"{outcome.written:,} written{kept}"),
            ("left out", bad),
            ("in", f"{target}/{_LAYOUTS[outcome.layout]}"),
        ]
    )
    left_out = f"{len(outcome.bad)} of {outcome.n_images:,} images could not be read."
    error = f"{left_out} --skip-bad accepts that." if outcome.bad and not skip_bad else ""
    return Report(document, text, bad_input=error)


def gallery(
    image: Annotated[Path, Argument(metavar="IMAGE")],
    output: options.OutputFile,
    corruption: options.Name = None,
    severity: Annotated[int | None, Option(metavar="N", min=1, max=5)] = None,
    paper: bool = False,
    table: options.Table = "auto",
    seed: options.ImageSeed = 0,
    frost_photos: options.FrostPhotos = None,
    resize: options.MaybeCount = None,
    crop: options.Crop = None,
) -> Report:
    """Draw an image under all corruptions, or one at all severities.

    Example:
        shiftcal gallery photo.jpg -o gallery.png --severity 3

    Args:
        image: An image file.
        output: Picture to write: .png, .jpg or .webp.
        corruption: Show this one alone at all its severities: a name, or module:function.
        severity: Severity at which all are shown; default: 3.
        paper: Only the 16 corruptions of the paper's appendix.
        resize: Make the shorter side of the image N first. Without this and --crop, a longer one
            becomes 224.
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
    chosen = inputs.choose_corruptions([corruption or "all"], frost_photos)
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
        strengths = check_table(table, height, width)
        drawn: dict[str, Any] = {"seed": seed, "table": strengths}
        if corruption is None:
            shown = [severity or 3]
            tiles = figures.tiles_of_all(pixels, chosen, severity=shown[0], **drawn)
            what = f"severity {shown[0]}"
        else:
            shown = list(range(1, chosen[0].severities + 1))
            tiles = figures.tiles_of_one(pixels, chosen[0], **drawn)
            what = figures.in_words(chosen[0])
        heading = f"{what}   ({width} x {height} pixels, {strengths} strengths, seed {seed})"
        figure = figures.draw(tiles, heading=heading, one_row=corruption is not None)
        kind, settings = _FORMATS[output.suffix.lower()]
        with atomic_write(output) as temporary:
            try:
                figure.save(temporary, format=kind, **settings)
            except ValueError as error:  # a side that the format cannot have
                raise FileError(
                    f"{output} could not be written: {error}. Write a .png file, or --resize less."
                ) from error
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
    text = f"{len(tiles)} pictures of {width} x {height} pixels written to {output}"
    return Report(document, text)
