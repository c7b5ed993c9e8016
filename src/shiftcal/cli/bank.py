"""``shiftcal bank``: a model and labelled images in, a surrogate bank out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli._corruptions import blaming_functions, choose_corruptions, parse_severities
from shiftcal.cli._options import FrostPhotos, ImageSeed, Json, Table
from shiftcal.cli._report import Report
from shiftcal.cli._scoring import (
    Address,
    BatchSize,
    CacheFolder,
    DType,
    EngineName,
    ImagesSpec,
    LabelsFile,
    ModelSpec,
    ShardSize,
    SkipBad,
    Workers,
    load_model,
    reporting,
    told_of_bad,
)

if TYPE_CHECKING:
    from shiftcal.surrogates.build import Built


def bank(
    model: ModelSpec,
    images: ImagesSpec,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the bank.")
    ],
    corruption: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A corruption, all, or module:function for your own. Repeatable; pixelate if "
            "left out.",
        ),
    ] = None,
    labels: LabelsFile = None,
    severity: Annotated[
        str, typer.Option(metavar="1-5|all", help="One severity, several as 1,3 or 2-4, or all.")
    ] = "all",
    table: Table = "auto",
    seed: ImageSeed = 0,
    frost_photos: FrostPhotos = None,
    dtype: DType = "float32",
    batch_size: BatchSize = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    cache: CacheFolder = None,
    shard_size: ShardSize = 1024,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> Report:
    """Make a surrogate bank; run again, it goes on where it stopped."""
    severities = parse_severities(severity)
    corruptions = choose_corruptions(corruption or ["pixelate"], frost_photos)
    from shiftcal.scoring.engines import engine_of
    from shiftcal.surrogates.build import build_bank
    from shiftcal.surrogates.conditions import conditions_of
    from shiftcal.surrogates.synthesize import Options

    options = Options(
        seed=seed,
        table=table,
        dtype=dtype,
        engine=engine_of(engine, workers=workers, address=address),
        shard_size=shard_size,
        cache=cache,
        reporting=reporting(),
    )
    with blaming_functions():
        built = build_bank(
            load_model(model, batch_size),
            images,
            output,
            labels=labels,
            conditions=conditions_of(corruptions, severities),
            options=options,
        )
    document = {
        "model": model,
        "images": images,
        "bank": output,
        "sets": built.sets,
        "sets_added": built.added,
        "images_scored": built.computed,
        "left_out": built.left_out,
    }
    return Report(
        "bank",
        document,
        _text(built, document),
        as_json,
        bad_input=told_of_bad(built.left_out, skip=skip_bad),
    )


def _text(built: Built, document: dict[str, Any]) -> str:
    there = len(built.sets) - built.added
    added = f"{built.added} added" if there else f"{built.added} made"
    kept = f", {there} were there already" if there else ""
    bad = f"\nleft out  {len(built.left_out):,} images" if built.left_out else ""
    return (
        f"model     {document['model']}\n"
        f"images    {document['images']}\n"
        f"sets      {len(built.sets)}: {added}{kept}\n"
        f"scored    {built.computed:,} images in this run{bad}\n"
        f"bank      {built.folder}\n"
        f"next      shiftcal fit --method sac --bank {built.folder} -o sac.json"
    )
