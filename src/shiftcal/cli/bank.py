"""``shiftcal bank``: a model and labelled images in, a surrogate bank out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import Judged, judged, warn_of_odd, written
from shiftcal.cli.options import (
    FrostPhotos,
    ImageSeed,
    Json,
    Table,
    blaming_functions,
    choose_corruptions,
    parse_severities,
)
from shiftcal.cli.output import Report, pasted, printable, stdout_kept_for_results
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
    ModelSpec,
    ShardSize,
    SkipBad,
    Workers,
    load_model,
    refuse_inside,
    reporting,
    told_of_bad,
)

if TYPE_CHECKING:
    from shiftcal.surrogates.build import Built


def bank(
    model: ModelSpec,
    images: ImagesSpec,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", callback=written, metavar="DIR", help="Folder for the bank."
        ),
    ],
    corruption: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A corruption, several as fog,contrast, all, or module:function for your own. "
            "Repeatable; pixelate if left out.",
        ),
    ] = None,
    labels: LabelsFile = None,
    classes: Classes = None,
    severity: Annotated[
        str, typer.Option(metavar="1-5|all", help="One severity, several as 1,3 or 2-4, or all.")
    ] = "all",
    table: Table = "auto",
    seed: ImageSeed = 0,
    frost_photos: FrostPhotos = None,
    dtype: DType = "float32",
    features: Annotated[
        str,
        typer.Option(
            metavar="clean|all|none",
            help="Which sets keep the features of a model that gives them.",
        ),
    ] = "clean",
    relabel: Annotated[
        bool,
        typer.Option(
            "--relabel",
            help="Put other labels or classes for the same images into a finished bank; nothing is "
            "scored again.",
        ),
    ] = False,
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
    """Make a surrogate bank; run again, it goes on where it stopped."""
    severities = parse_severities(severity)
    refuse_inside(images, [output])
    from shiftcal.scoring.engines import engine_of
    from shiftcal.surrogates.build import Options, build_bank, conditions_of

    options = Options(
        seed=seed,
        table=table,
        dtype=dtype,
        features=features,
        relabel=relabel,
        engine=engine_of(
            engine,
            workers=workers,
            address=address,
            cpus_per_worker=cpus_per_worker,
            gpus_per_worker=gpus_per_worker,
        ),
        shard_size=shard_size,
        cache=cache,
        reporting=reporting(),
    )
    with stdout_kept_for_results(), blaming_functions():
        corruptions = choose_corruptions(corruption or ["pixelate"], frost_photos)
        built = build_bank(
            load_model(model, batch_size, classes),
            images,
            output,
            labels=labels,
            conditions=conditions_of(corruptions, severities),
            options=options,
        )
    bad = told_of_bad(built.left_out, skip=skip_bad)
    document = {"model": model, "images": images, "bank": output, **_document(built)}
    return Report(
        "bank", document, _text(built, printable(document), last=not bad), as_json, bad_input=bad
    )


def _document(built: Built) -> dict[str, Any]:
    """What is in the bank; warns if that can hardly be meant."""
    from shiftcal.surrogates.folder import read_document

    told = read_document(built.folder)
    sets = [judged(built.folder / entry["file"], entry["name"]) for entry in told["sets"]]
    warn_of_odd(sets, told["classes"])
    return {
        "preprocessing": told["origin"]["model"]["preprocessing"],
        "sets": [_shown(each) for each in sets],
        "sets_added": built.added,
        "images_scored": built.computed,
        "left_out": built.left_out,
    }


def _shown(each: Judged) -> dict[str, Any]:
    wanted = ("name", "rows", "mean_confidence", "accuracy")
    return {key: value for key, value in asdict(each).items() if key in wanted}


def _text(built: Built, document: dict[str, Any], *, last: bool) -> str:
    there = len(built.sets) - built.added
    added = f"{built.added} added" if there else f"{built.added} made"
    kept = f", {there} {'was' if there == 1 else 'were'} there already" if there else ""
    bad = f"\nleft out  {_tables.count_of(len(built.left_out))}" if built.left_out else ""
    fit = ["shiftcal", "fit", "--method", "sac", "--bank", str(built.folder), "-o", "sac.json"]
    end = f"\n\nnext      {printable(pasted(fit))}"
    return (
        f"model     {document['model']}\n"
        f"images    {document['images']}\n"
        f"input     {_in_short(document['preprocessing'])}\n"
        f"sets      {len(built.sets)}: {added}{kept}\n"
        f"scored    {_tables.count_of(built.computed)} in this run{bad}\n"
        f"bank      {printable(built.folder)}\n\n"
        f"{_table(document['sets'])}{end if last else ''}"
    )


def _in_short(preprocessing: dict[str, Any]) -> str:
    """What is done to images before the model has them, but for what always is."""
    from shiftcal.models import Preprocessing

    channels = preprocessing.get("channels", 3)
    usual = Preprocessing(channels=channels).to_dict() | {"channels": 3}
    said = [
        f"{name} {_numbers(value)}"
        for name, value in preprocessing.items()
        if value != usual.get(name)
    ]
    return "; ".join(said) or "pixels 0 to 1, nothing else"


def _numbers(value: object) -> str:
    return ", ".join(f"{number:g}" for number in value) if isinstance(value, list) else str(value)


def _table(sets: list[dict[str, Any]]) -> str:
    header = ["set", "name", "rows", "mean confidence", "accuracy"]
    rows = [
        [
            str(position),
            each["name"],
            f"{each['rows']:,}",
            _tables.fraction(each["mean_confidence"]),
            _tables.fraction(each["accuracy"]),
        ]
        for position, each in enumerate(sets, start=1)
    ]
    return _tables.table(header, rows, right=[name for name in header if name != "name"])
