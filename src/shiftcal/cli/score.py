"""``shiftcal score``: a model and images in, a scores file out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli._options import Json
from shiftcal.cli._report import Report
from shiftcal.cli._scoring import (
    Address,
    BatchSize,
    CacheFolder,
    DType,
    EngineName,
    ImagesSpec,
    LabelsFile,
    ShardSize,
    SkipBad,
    Workers,
    load_model,
    parse_part,
    reporting,
    told_of_bad,
)
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.models import Model
    from shiftcal.scoring import Scored


def score(
    images: ImagesSpec,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The scores file to write, best .npz."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="The model, as for `shiftcal bank`; with --bank, that of the bank if left out.",
        ),
    ] = None,
    bank: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Bank to be used with these scores: its preprocessing is taken, and another model "
            "is refused.",
        ),
    ] = None,
    labels: LabelsFile = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Score part I of N only; `shiftcal merge` puts parts together."
        ),
    ] = None,
    statistics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write statistics of the rows, which can be merged, to this .json file; "
            "-o can be left out then.",
        ),
    ] = None,
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
    """Score images with a model; run again, it goes on where it stopped."""
    part = parse_part(shard)
    if output is None and statistics is None:
        raise InputError("-o must name a file for the scores, or --statistics one for statistics.")
    from shiftcal.scoring import score_file
    from shiftcal.scoring.engines import engine_of

    scored = score_file(
        _model(model, bank, batch_size),
        images,
        output,
        labels=labels,
        part=part,
        dtype=dtype,
        engine=engine_of(engine, workers=workers, address=address),
        shard_size=shard_size,
        cache=cache,
        statistics=statistics,
        reporting=reporting(),
    )
    document = {
        "images": images,
        "output": output,
        "statistics": statistics,
        "n": scored.n,
        "n_classes": scored.k,
        "labels": scored.labels,
        "shard": shard,
        "images_scored": scored.computed,
        "left_out": scored.left_out,
    }
    return Report(
        "score",
        document,
        _text(scored, document),
        as_json,
        bad_input=told_of_bad(scored.left_out, skip=skip_bad),
    )


def _model(spec: str | None, bank: Path | None, batch_size: int | None) -> Model:
    if bank is None:
        if spec is None:
            raise InputError("--model must be given, or --bank with the bank of a model.")
        return load_model(spec, batch_size)
    from shiftcal.surrogates.same_model import model_of_bank

    return model_of_bank(bank, None if spec is None else load_model(spec, batch_size), batch_size)


def _text(scored: Scored, document: dict[str, Any]) -> str:
    kept = "" if scored.computed else " (all of them were there already)"
    bad = f"\nleft out  {len(scored.left_out):,} images" if scored.left_out else ""
    files = (document["output"], document["statistics"])
    labels = "with labels" if scored.labels else "no labels"
    return (
        f"images    {document['images']}\n"
        f"rows      {scored.n:,} of {scored.k} classes, {labels}\n"
        f"scored    {scored.computed:,} images in this run{kept}{bad}\n"
        f"written   {' and '.join(str(file) for file in files if file is not None)}"
    )
