"""Options that several commands have, so that each is described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout, and nothing else there."),
]
Surrogates = Annotated[
    list[Path] | None,
    typer.Option(
        "--surrogate",
        metavar="FILE",
        help="Scores file of a labelled surrogate set. Once for every set in order of difficulty, "
        "the clean calibration set first.",
    ),
]
Bank = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of a saved surrogate bank, instead of --surrogate."),
]
SourceTrain = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with features of training samples, for methods that weigh by features "
        "(cpcs, transcal): an .npz with 'features', x_features.npy, or a scores file.",
    ),
]
Bins = Annotated[int, typer.Option(metavar="N", min=1, help="Number of bins of binned metrics.")]
Binning = Annotated[
    str,
    typer.Option(
        metavar="size|width",
        help="Bins of equally many rows (size) or of equally much confidence (width).",
    ),
]
Level = Annotated[
    float,
    typer.Option(metavar="FRACTION", help="Coverage of the intervals, strictly between 0 and 1."),
]
Resamples = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Bootstrap draws behind an interval; 0 for no intervals."
    ),
]
BootstrapSeed = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Seed of the bootstrap; the same seed gives the same intervals."
    ),
]
Table = Annotated[
    str,
    typer.Option(
        metavar="cifar|tiny-imagenet|imagenet|auto",
        help="Whose strengths; auto goes by the size of the images.",
    ),
]
ImageSeed = Annotated[int, typer.Option(metavar="N", min=0, help="Fixes the random numbers.")]
FrostPhotos = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder of frost photographs, instead of the procedural frost."
    ),
]
Resize = Annotated[
    int | None,
    typer.Option(metavar="N", help="Make the shorter side of images of a folder N first."),
]
Crop = Annotated[
    int | None, typer.Option(metavar="N", help="Then cut N x N pixels from the centre.")
]
