"""Options that several commands share, so that each is described once.

A command's other options are plain parameters: their help is what the ``Args`` of its docstring
say (:mod:`shiftcal.cli.main`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

# Kinds of options, without help.
Count = Annotated[int, Option(metavar="N", min=1)]
MaybeCount = Annotated[int | None, Option(metavar="N", min=1)]
Seed = Annotated[int, Option(metavar="N", min=0)]
File = Annotated[Path | None, Option(metavar="FILE")]
Folder = Annotated[Path | None, Option(metavar="DIR")]
Names = Annotated[list[str] | None, Option(metavar="NAME")]
Name = Annotated[str | None, Option(metavar="NAME")]
Settings = Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE")]
OutputFile = Annotated[Path, Option("--output", "-o", metavar="FILE")]
MaybeOutputFile = Annotated[Path | None, Option("--output", "-o", metavar="FILE")]
OutputFolder = Annotated[Path, Option("--output", "-o", metavar="DIR")]
MaybeOutputFolder = Annotated[Path | None, Option("--output", "-o", metavar="DIR")]

Json = Annotated[
    bool, Option("--json", help="Print one JSON document on stdout, and nothing else there.")
]
Normalize = Annotated[
    bool,
    Option("--normalize", help="Divide rows of rounded probabilities by their sum; logits stay."),
]

# --- bank, target and labels --------------------------------------------------------------------

BankPlace = Annotated[
    Path | None,
    Argument(
        metavar="BANK",
        show_default=False,
        help="Folder of a surrogate bank, scores file of the labelled clean set alone, or folder "
        "of a run of `shiftcal train`, which has a target too. The same as --bank.",
    ),
]
TargetPlace = Annotated[
    Path | None,
    Argument(metavar="TARGET", show_default=False, help="Scores file of the target, as --target."),
]
Bank = Annotated[
    Path | None,
    Option(metavar="DIR", help="Folder of a saved surrogate bank, instead of --surrogate."),
]
Surrogates = Annotated[
    list[Path] | None,
    Option(
        "--surrogate",
        metavar="FILE",
        help="Scores file of a labelled surrogate set. Repeat it in order of difficulty, the clean "
        "calibration set first.",
    ),
]
TargetFile = Annotated[
    Path | None,
    Option(
        "--target",
        metavar="FILE",
        help="Scores file of the target. Its labels, if any, are only used to evaluate.",
    ),
]
TargetLabels = Annotated[
    Path | None,
    Option("--labels", metavar="FILE", help="Labels of the target, as for `shiftcal evaluate`."),
]
SourceTrain = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="File with features of training samples, for methods that weight by features "
        "(cpcs, transcal): an .npz with 'features', x_features.npy, or a scores file.",
    ),
]

# --- metrics and intervals ----------------------------------------------------------------------

Bins = Annotated[int, Option(metavar="N", min=1, help="Number of bins of binned metrics.")]
Binning = Annotated[
    str,
    Option(
        metavar="size|width",
        help="Bins of equally many rows (size, or quantile) or of equal width in confidence "
        "(width, or uniform).",
    ),
]
Level = Annotated[
    float, Option(metavar="FRACTION", help="Coverage of intervals, strictly between 0 and 1.")
]
Resamples = Annotated[
    int, Option(metavar="N", min=0, help="Bootstrap draws behind an interval; 0 for no intervals.")
]
BootstrapSeed = Annotated[int, Option(metavar="N", min=0, help="Seed of the bootstrap.")]

# --- corruptions and images ---------------------------------------------------------------------

Severities = Annotated[
    str,
    Option("--severity", metavar="1-5|all", help="One severity, several as 1,3 or 2-4, or all."),
]
Table = Annotated[
    str,
    Option(
        metavar="cifar|tiny-imagenet|imagenet|auto",
        help="Table of strengths; auto goes by the size of the images.",
    ),
]
ImageSeed = Annotated[int, Option(metavar="N", min=0, help="Seed of the random numbers.")]
FrostPhotos = Annotated[
    Path | None,
    Option(metavar="DIR", help="Folder of frost photographs, instead of the procedural frost."),
]
Resize = Annotated[
    int | None, Option(metavar="N", help="Make the shorter side of images of a folder N first.")
]
Crop = Annotated[int | None, Option(metavar="N", help="Then cut N x N pixels from the centre.")]
SkipBad = Annotated[
    bool, Option("--skip-bad", help="Exit with status 0 even if images could not be read.")
]

# --- scoring ------------------------------------------------------------------------------------

ModelSpec = Annotated[
    str,
    Option(
        metavar="SPEC",
        help="The model: model.onnx, torchscript:file.pt, sklearn:file.skops, timm:NAME, hf:NAME, "
        "torch:package.module:factory?weights=FILE, python:module:function; options behind it: "
        "?resize=256&crop=224.",
    ),
]
ImagesSpec = Annotated[
    str,
    Option(
        metavar="PATH",
        help="The images: a folder of class folders, .npy, .npz, .parquet or .tar files, or "
        "NAME:PATH?option=value for a published data set (`shiftcal data list`).",
    ),
]
LabelsFile = Annotated[
    Path | None,
    Option(metavar="FILE", help="Labels of images that have none, as for `shiftcal evaluate`."),
]
Classes = Annotated[
    str | None,
    Option(
        metavar="FILE|A,B,...",
        help="Names of the model's classes in the order of its outputs: a text file with one per "
        "line, or names with commas between them.",
    ),
]
DType = Annotated[
    str, Option(metavar="float32|float16", help="Type of stored logits; float16 halves the file.")
]
BatchSize = Annotated[
    int | None,
    Option(metavar="N", min=1, help="Images given to the model at once; default: measured."),
]
ShardSize = Annotated[int, Option(metavar="N", min=1, help="Images scored and stored together.")]
CacheFolder = Annotated[
    Path | None,
    Option(
        metavar="DIR",
        help="Folder of finished shards to share between runs; default: $SHIFTCAL_CACHE, if set.",
    ),
]
EngineName = Annotated[str, Option(metavar="local|ray", help="Where the work is done.")]
Workers = Annotated[
    int | None, Option(metavar="N", min=1, help="Workers: processes, or actors of Ray.")
]
Address = Annotated[
    str | None, Option(metavar="HOST:PORT", help="Of a running Ray cluster, or auto.")
]
CpusPerWorker = Annotated[
    float | None, Option(metavar="X", help="Processors per worker of Ray; default: 1.")
]
GpusPerWorker = Annotated[
    float | None, Option(metavar="X", help="GPUs per worker of Ray; 0.5 lets two share one.")
]
