"""What `bank` and `score` have in common: the model, the images, where the work is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli._streams import complain
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.models import Model
    from shiftcal.scoring.run import Reporting

ModelSpec = Annotated[
    str,
    typer.Option(
        metavar="SPEC",
        help="The model: model.onnx, torchscript:file.pt, sklearn:file.skops, timm:NAME, hf:NAME, "
        "torch:package.module:factory?weights=FILE; options behind it: ?resize=256&crop=224.",
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
        metavar="FILE", help="Labels (.npy, .csv or .txt), if the images do not bring them."
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
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Exit with status 0 even if images could not be read.")
]


def load_model(spec: str, batch_size: int | None) -> Model:
    """The model of a command line."""
    from shiftcal.models import as_model

    model = as_model(spec)
    if batch_size is not None:
        model.batch_size = batch_size
    return model


def reporting() -> Reporting:
    """A bar on a terminal, lines elsewhere."""
    from shiftcal.scoring.run import Reporting

    return Reporting(line=lambda text: complain("progress", text))


def told_of_bad(left_out: list[dict[str, Any]], *, skip: bool) -> str:
    """What is said at the end of images that could not be read; empty if nothing is."""
    if not left_out or skip:
        return ""
    many = "1 image" if len(left_out) == 1 else f"{len(left_out):,} images"
    return f"left out because it could not be read: {many}. --skip-bad accepts that."


def parse_part(text: str | None) -> tuple[int, int] | None:
    """``i/n`` as two numbers."""
    if text is None:
        return None
    which, slash, of = text.partition("/")
    if not (slash and which.strip().isdecimal() and of.strip().isdecimal()):
        raise InputError(f"--shard must be i/n, such as 3/8, counted from 1; got {text!r}.")
    return int(which), int(of)
