"""``shiftcal score``: a model and images in, a scores file out."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import accuracy_of, check_replaced, written
from shiftcal.cli.options import Json
from shiftcal.cli.output import Report, printable, stdout_kept_for_results
from shiftcal.cli.scoring import (
    Address,
    BatchSize,
    CacheFolder,
    Classes,
    CpusPerWorker,
    DType,
    EngineName,
    GpusPerWorker,
    ImagesSpec,
    LabelsFile,
    ShardSize,
    SkipBad,
    Workers,
    load_model,
    parse_classes,
    parse_part,
    refuse_inside,
    reporting,
    told_of_bad,
)
from shiftcal.errors import InputError, InputWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from shiftcal.models import Model
    from shiftcal.scoring import Scored


def score(
    images: ImagesSpec,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            callback=written,
            metavar="FILE",
            help="The scores file to write, best .npz.",
        ),
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
    no_labels: Annotated[
        bool,
        typer.Option("--no-labels", help="Leave labels aside that the images bring."),
    ] = False,
    classes: Classes = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Score part I of N only; `shiftcal merge` puts parts together."
        ),
    ] = None,
    statistics: Annotated[
        Path | None,
        typer.Option(
            callback=written,
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
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    cache: CacheFolder = None,
    shard_size: ShardSize = 1024,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> Report:
    """Score images with a model. Run again, it goes on where it stopped."""
    part = parse_part(shard)
    if output is None and statistics is None:
        raise InputError("-o must name a file for the scores, or --statistics one for statistics.")
    if no_labels and labels is not None:
        raise InputError("--labels and --no-labels exclude one another. Leave one of them out.")
    refuse_inside(images, [output, statistics])
    check_replaced(output, holds="scores")
    check_replaced(statistics, holds="statistics")
    from shiftcal.scoring import score_file
    from shiftcal.scoring.engines import engine_of

    work = partial(
        score_file,
        out=output,
        labels=labels,
        part=part,
        dtype=dtype,
        engine=engine_of(
            engine,
            workers=workers,
            address=address,
            cpus_per_worker=cpus_per_worker,
            gpus_per_worker=gpus_per_worker,
        ),
        shard_size=shard_size,
        cache=cache,
        statistics=statistics,
        reporting=reporting(),
    )
    with stdout_kept_for_results():
        scored = _scored(
            partial(work, _model(model, bank, batch_size, classes)),
            images,
            bring_labels=labels is None and not no_labels,
            drop_labels=no_labels,
        )
    document = {
        "images": images,
        "output": output,
        "statistics": statistics,
        "n": scored.n,
        "n_classes": scored.k,
        "labels": scored.labels,
        "accuracy": accuracy_of(output, statistics) if scored.labels and scored.n else None,
        "shard": shard,
        "images_scored": scored.computed,
        "left_out": scored.left_out,
    }
    return Report(
        "score",
        document,
        _text(scored, printable(document)),
        as_json,
        bad_input=told_of_bad(scored.left_out, skip=skip_bad),
    )


def _scored(
    work: Callable[..., Scored], images: str, *, bring_labels: bool, drop_labels: bool
) -> Scored:
    """Score images; labels they bring that are not the model's are no reason not to.

    Args:
        work: Scores a set of images.
        images: The images.
        bring_labels: Whether labels are those that the images bring, if they bring any.
        drop_labels: Whether those are left aside.
    """
    from shiftcal.datasets import as_image_set
    from shiftcal.scoring.work import ForeignLabels

    found = as_image_set(images)
    if drop_labels:
        return work(images=found.relabelled(None))
    try:
        return work(images=found)
    except ForeignLabels as error:
        if not bring_labels:
            raise
        warnings.warn(
            f"scored without labels: {error} To leave labels aside from the start, say "
            "--no-labels.",
            InputWarning,
            stacklevel=2,
        )
    # What was finished before that is kept, and found by the second call.
    return work(images=found.relabelled(None))


def _model(
    spec: str | None, bank: Path | None, batch_size: int | None, classes: str | None
) -> Model:
    if bank is None:
        if spec is None:
            raise InputError("--model must be given, or --bank with the bank of a model.")
        return load_model(spec, batch_size, classes)
    from shiftcal.surrogates.build import model_of_bank
    from shiftcal.surrogates.folder import read_document

    names = None if classes is None else parse_classes(classes)
    made = model_of_bank(bank, None if spec is None else load_model(spec, batch_size), batch_size)
    told = read_document(bank)["classes"]
    # The bank may have been given names that the model does not bring.
    made.classes = names or (tuple(told) if told else made.classes)
    return made


def _text(scored: Scored, document: dict[str, Any]) -> str:
    kept = "" if scored.computed else " (all of them were there already)"
    bad = f"\nleft out  {_tables.count_of(len(scored.left_out))}" if scored.left_out else ""
    files = (document["output"], document["statistics"])
    labels = "with labels" if scored.labels else "no labels"
    accuracy = document["accuracy"]
    right = "" if accuracy is None else f"accuracy  {_tables.fraction(accuracy)}\n"
    return (
        f"images    {document['images']}\n"
        f"rows      {scored.n:,} of {scored.k} classes, {labels}\n"
        f"{right}"
        f"scored    {_tables.count_of(scored.computed)} in this run{kept}{bad}\n"
        f"written   {' and '.join(str(file) for file in files if file is not None)}"
    )
