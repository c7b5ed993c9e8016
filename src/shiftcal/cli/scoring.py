"""What `bank` and `score` share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli.inputs import written
from shiftcal.cli.output import complain, count_of
from shiftcal.errors import FileError, InputError

if TYPE_CHECKING:
    from shiftcal.models import Model
    from shiftcal.scoring.run import Reporting

ModelSpec = Annotated[
    str,
    typer.Option(
        metavar="SPEC",
        help="The model: model.onnx, torchscript:file.pt, sklearn:file.skops, timm:NAME, hf:NAME, "
        "torch:package.module:factory?weights=FILE, python:module:function; options behind it: "
        "?resize=256&crop=224.",
    ),
]
ImagesSpec = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="The images: a folder of class folders, .npy, .npz, .parquet or .tar files, or "
        "NAME:PATH?option=value for a published data set (`shiftcal data list`).",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Labels, if the images do not bring them, as for `shiftcal evaluate`."
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|A,B,...",
        help="Names of the model's classes in the order of its outputs: a text file with one a "
        "line, or names with commas between them.",
    ),
]
DType = Annotated[
    str,
    typer.Option(metavar="float32|float16", help="What logits are stored as; float16 halves them."),
]
BatchSize = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Images given to the model at once; found if left out."),
]
ShardSize = Annotated[
    int, typer.Option(metavar="N", min=1, help="Images scored and kept together.")
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        callback=written,
        metavar="DIR",
        help="Folder of finished shards to share between runs; by default $SHIFTCAL_CACHE, if set.",
    ),
]
EngineName = Annotated[str, typer.Option(metavar="local|ray", help="Where the work is done.")]
Workers = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Workers: processes, or actors of Ray.")
]
Address = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Of a running Ray cluster, or auto.")
]
CpusPerWorker = Annotated[
    float | None,
    typer.Option(metavar="X", help="Processors for each worker of Ray; 1 if left out."),
]
GpusPerWorker = Annotated[
    float | None,
    typer.Option(metavar="X", help="GPUs for each worker of Ray; 0.5 lets two share one."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Exit with status 0 even if images could not be read.")
]


# Kinds of images, as text, that are whatever a folder holds.
_FOLDERS = ("folder", "parquet", "tar")


def load_model(spec: str, batch_size: int | None, classes: str | None = None) -> Model:
    """The model of a command line."""
    names = None if classes is None else parse_classes(classes)
    from shiftcal.models import as_model

    model = as_model(spec)
    if batch_size is not None:
        model.batch_size = batch_size
    if names is not None:
        model.classes = names
    return model


def parse_classes(text: str) -> tuple[str, ...]:
    """The names that ``--classes`` gives, or the file it names.

    Raises:
        InputError: If there are fewer than two, or one comes twice.
        FileError: If it is neither names nor a file that can be read.
    """
    names = _in_file(Path(text))
    if names is None:
        if "," not in text:
            raise FileError(
                "--classes must be a text file with one name a line, or names with commas between "
                f"them; there is no file {text}."
            )
        names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names) or len(names) < 2:
        raise InputError(
            f"--classes must give two names or more, all different and none empty; got "
            f"{len(names)}, of which {len(set(names) - {''})} are different and not empty."
        )
    return tuple(names)


def _in_file(file: Path) -> list[str] | None:
    try:
        return file.read_text("utf-8-sig").rstrip().splitlines() if file.is_file() else None
    except UnicodeDecodeError as error:
        raise FileError(f"{file} must be a text file in UTF-8: {error}.") from error
    except OSError:  # many names are longer than that of a file may be
        return None


def refuse_inside(images: str, outputs: Sequence[Path | None]) -> None:
    """Refuse to write into a folder of images, where the next run would find the output.

    Raises:
        FileError: Naming both.
    """
    from shiftcal.registry import split_spec

    folder = Path(images).expanduser()
    if not folder.exists():
        kind, path, _ = split_spec(images)
        folder = Path(path).expanduser() if kind.lower() in _FOLDERS else folder
    for output in outputs:
        if output is not None and folder.is_dir() and folder.resolve() in output.resolve().parents:
            raise FileError(
                f"{output}: the output lies in the folder that is read, {folder}. Name one outside "
                "of it."
            )


def reporting() -> Reporting:
    """A bar on a terminal, lines elsewhere."""
    from shiftcal.scoring.run import Reporting

    return Reporting(line=lambda text: complain("progress", text))


def told_of_bad(left_out: list[dict[str, Any]], *, skip: bool) -> str:
    """What is said at the end of images that could not be read; empty if nothing is."""
    if not left_out or skip:
        return ""
    return (
        f"left out because it could not be read: {count_of(len(left_out))}. "
        "--skip-bad accepts that."
    )


def parse_part(text: str | None) -> tuple[int, int] | None:
    """``i/n`` as two numbers."""
    if text is None:
        return None
    which, slash, of = text.partition("/")
    if not (slash and which.strip().isdecimal() and of.strip().isdecimal()):
        raise InputError(f"--shard must be i/n, such as 3/8, counted from 1; got {text!r}.")
    return int(which), int(of)
