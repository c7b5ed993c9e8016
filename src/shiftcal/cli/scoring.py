"""``shiftcal bank``, ``score`` and ``merge``: a model and images in, scores out."""

from __future__ import annotations

import math
import shlex
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from shiftcal.cli import inputs, options
from shiftcal.cli.calibrate import sets_table
from shiftcal.cli.output import (
    Report,
    count_of,
    facts,
    fraction,
    progress,
    stdout_kept_for_results,
    temperature,
)
from shiftcal.errors import InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal.models import Model
    from shiftcal.scoring import Scored
    from shiftcal.surrogates import SurrogateBank


def bank(
    model: options.ModelSpec,
    images: options.ImagesSpec,
    output: options.OutputFolder,
    corruption: options.Names = None,
    labels: options.LabelsFile = None,
    classes: options.Classes = None,
    severity: options.Severities = "all",
    table: options.Table = "auto",
    seed: options.ImageSeed = 0,
    frost_photos: options.FrostPhotos = None,
    dtype: options.DType = "float32",
    features: Literal["clean", "all", "none"] = "clean",
    relabel: bool = False,
    batch_size: options.BatchSize = None,
    engine: options.EngineName = "local",
    workers: options.Workers = None,
    address: options.Address = None,
    cpus_per_worker: options.CpusPerWorker = None,
    gpus_per_worker: options.GpusPerWorker = None,
    cache: options.CacheFolder = None,
    shard_size: options.ShardSize = 1024,
    skip_bad: options.SkipBad = False,
) -> Report:
    """Make a surrogate bank. Run again, it resumes.

    Example:
        shiftcal bank --model model.onnx --images calibration/ --corruption pixelate -o bank/

    Args:
        output: Folder for the bank.
        corruption: A corruption, several as fog,contrast, all, or module:function for your own.
            Repeatable; default: pixelate.
        features: Which sets keep the features of a model that gives them.
        relabel: Replace labels or classes of a finished bank of the same images; nothing is scored
            again.
    """
    severities = inputs.parse_severities(severity)
    inputs.refuse_inside(images, [output])
    from shiftcal.scoring.engines import engine_of
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.surrogates.build import build_bank, conditions_of

    where = engine_of(
        engine,
        workers=workers,
        address=address,
        cpus_per_worker=cpus_per_worker,
        gpus_per_worker=gpus_per_worker,
    )
    with stdout_kept_for_results(), inputs.blaming_functions():
        corruptions = inputs.choose_corruptions(corruption or ["pixelate"], frost_photos)
        built = build_bank(
            inputs.load_model(model, batch_size, classes),
            images,
            output,
            labels=labels,
            conditions=conditions_of(corruptions, severities),
            seed=seed,
            table=table,
            dtype=dtype,
            features=features,
            relabel=relabel,
            engine=where,
            shard_size=shard_size,
            cache=cache,
            reporting=inputs.reporting(),
        )
    made = SurrogateBank.load(output)
    _warn_of_useless(made)
    assert made.origin is not None
    document = {
        "model": model,
        "images": images,
        "bank": output,
        "preprocessing": made.origin["model"]["preprocessing"],
        "sets": [
            {
                "name": one.name,
                "rows": one.n,
                "mean_confidence": one.mean_confidence,
                "accuracy": one.accuracy,
            }
            for one in made.summaries()
        ],
        "sets_added": built.added,
        "images_scored": built.computed,
        "left_out": built.left_out,
    }
    there = len(made) - built.added
    kept = f", {there} {'was' if there == 1 else 'were'} there already" if there else ""
    text = facts(
        [
            ("model", model),
            ("images", images),
            ("input", _in_short(made.origin["model"]["preprocessing"])),
            ("sets", f"{len(made)}: {built.added} added{kept}"),
            ("scored", f"{count_of(built.computed)} in this run"),
            ("left out", count_of(len(built.left_out)) if built.left_out else ""),
            ("bank", output),
        ]
    )
    rows = [{**one, "n": one["rows"]} for one in document["sets"]]
    text += f"\n\n{sets_table(rows)}"
    bad = _unread(built.left_out, skip=skip_bad)
    if not bad:
        following = ["shiftcal", "fit", "--method", "sac", "--bank", str(output), "-o", "sac.json"]
        text += f"\n\nnext      {shlex.join(following)}"
    return Report(document, text, bad_input=bad)


def _warn_of_useless(made: SurrogateBank) -> None:
    """Warn of what makes most useless banks useless."""
    clean, *others = made.summaries()
    seen, chance = set(made.clean.labels.tolist()), 1 / made.n_classes
    odd = []
    if clean.accuracy <= chance + 2 * math.sqrt(chance * (1 - chance) / clean.n):
        odd.append(
            f"the accuracy of the clean set is {clean.accuracy:.4f}, no better than guessing among "
            f"{made.n_classes} classes ({chance:.4f}). Check mean and std of the preprocessing "
            "and the order of the classes (--classes)."
        )
    if len(seen) == 1:
        (label,) = seen
        name = made.classes[label] if made.classes else label
        odd.append(f"all images are of one class, {name}, which says nothing about the others.")
    if clean.n < 100:
        odd.append(f"the clean set has {count_of(clean.n)}; fewer than 100 tell little. Add more.")
    hardest = min(others, key=lambda one: one.accuracy, default=clean)
    if others and not odd and clean.accuracy - hardest.accuracy < 0.05:
        odd.append(
            f"the corruptions hardly change this model: accuracy falls from {clean.accuracy:.4f} "
            f"to {hardest.accuracy:.4f} at most ({hardest.name}), so the bank says nothing about "
            "stronger shifts. Add others, such as --corruption brightness,motion_blur."
        )
    for text in odd:
        warnings.warn(text, InputWarning, stacklevel=2)


def _in_short(preprocessing: dict[str, Any]) -> str:
    """The preprocessing, without what is default."""
    from shiftcal.models import Preprocessing

    usual = Preprocessing(channels=preprocessing.get("channels", 3)).to_dict() | {"channels": 3}
    parts = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in preprocessing.items()
        if value != usual.get(name)
    ]
    return "; ".join(parts) or "pixels 0 to 1, nothing else"


def _unread(left_out: list[dict[str, Any]], *, skip: bool) -> str:
    """The error for images that could not be read; empty if there is none."""
    if not left_out or skip:
        return ""
    return f"could not be read and left out: {count_of(len(left_out))}. --skip-bad accepts that."


def score(
    images: options.ImagesSpec,
    output: options.MaybeOutputFile = None,
    model: Annotated[str | None, Option(metavar="SPEC")] = None,
    bank: options.Folder = None,
    labels: options.LabelsFile = None,
    no_labels: bool = False,
    classes: options.Classes = None,
    shard: Annotated[str | None, Option(metavar="I/N")] = None,
    statistics: options.File = None,
    dtype: options.DType = "float32",
    batch_size: options.BatchSize = None,
    engine: options.EngineName = "local",
    workers: options.Workers = None,
    address: options.Address = None,
    cpus_per_worker: options.CpusPerWorker = None,
    gpus_per_worker: options.GpusPerWorker = None,
    cache: options.CacheFolder = None,
    shard_size: options.ShardSize = 1024,
    skip_bad: options.SkipBad = False,
) -> Report:
    """Score images with a model. Run again, it resumes.

    Example:
        shiftcal score --bank bank/ --images new-images/ -o target.npz

    Args:
        output: The scores file to write, best .npz.
        model: The model, as for `shiftcal bank`; default: that of --bank.
        bank: Bank to be used with these scores: its preprocessing is used, and another model is
            rejected.
        no_labels: Ignore the labels that the images have.
        shard: Score part I of N only; `shiftcal merge` puts parts together.
        statistics: Write statistics of the rows, which can be merged, to this .json file; -o can
            be left out then.
    """
    part = _parse_part(shard)
    if output is None and statistics is None:
        raise InputError("-o must name a file for the scores, or --statistics one for statistics.")
    if no_labels and labels is not None:
        raise InputError("--labels and --no-labels exclude one another. Leave one of them out.")
    inputs.refuse_inside(images, [output, statistics])
    from shiftcal.datasets import as_image_set
    from shiftcal.scoring import score_file
    from shiftcal.scoring.engines import engine_of
    from shiftcal.scoring.shards import ForeignLabels

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
        reporting=inputs.reporting(),
    )
    with stdout_kept_for_results():
        used = _model(model, bank, batch_size, classes)
        found = as_image_set(images)
        try:
            scored = work(used, found.relabelled(None) if no_labels else found)
        except ForeignLabels as error:  # of the images: no reason not to score them
            if labels is not None:
                raise
            warnings.warn(
                f"scored without labels: {error} To ignore labels from the start, give "
                "--no-labels.",
                InputWarning,
                stacklevel=2,
            )
            scored = work(used, found.relabelled(None))
    accuracy = _accuracy(output, statistics) if scored.labels and scored.n else None
    document = {
        "images": images,
        "output": output,
        "statistics": statistics,
        "n": scored.n,
        "n_classes": scored.k,
        "labels": scored.labels,
        "accuracy": accuracy,
        "shard": shard,
        "images_scored": scored.computed,
        "left_out": scored.left_out,
    }
    written = " and ".join(str(file) for file in (output, statistics) if file is not None)
    return Report(
        document,
        _score_text(images, scored, accuracy, written),
        bad_input=_unread(scored.left_out, skip=skip_bad),
    )


def _score_text(images: str, scored: Scored, accuracy: float | None, written: str) -> str:
    labels = "with labels" if scored.labels else "no labels"
    kept = "" if scored.computed else " (all of them were there already)"
    return facts(
        [
            ("images", images),
            ("rows", f"{scored.n:,} of {scored.k} classes, {labels}"),
            ("accuracy", "" if accuracy is None else fraction(accuracy)),
            ("scored", f"{count_of(scored.computed)} in this run{kept}"),
            ("left out", count_of(len(scored.left_out)) if scored.left_out else ""),
            ("written", written),
        ]
    )


def _accuracy(output: Path | None, statistics: Path | None) -> float:
    """Accuracy of labelled scores that were written to either file, or to both."""
    from shiftcal.scores import read_scores
    from shiftcal.scoring.statistics import ScoreStatistics, statistics_of_npz

    if statistics is not None:
        return ScoreStatistics.read(statistics).accuracy()
    assert output is not None, "something was written"
    if output.suffix.lower() == ".npz" and (found := statistics_of_npz(output)) is not None:
        return found.accuracy()
    scores = read_scores(output)
    return float((scores.values.argmax(axis=1) == scores.labels).mean())


def _model(
    spec: str | None, bank: Path | None, batch_size: int | None, classes: str | None
) -> Model:
    if bank is None:
        if spec is None:
            raise InputError("--model must be given, or --bank with the bank of a model.")
        return inputs.load_model(spec, batch_size, classes)
    from shiftcal.surrogates.bank import read_description
    from shiftcal.surrogates.build import model_of_bank

    names = None if classes is None else inputs.parse_classes(classes)
    made = model_of_bank(
        bank, None if spec is None else inputs.load_model(spec, batch_size), batch_size
    )
    stored = read_description(bank)["classes"]
    # The bank may have names that the model does not bring.
    made.classes = names or (tuple(stored) if stored else made.classes)
    return made


def _parse_part(text: str | None) -> tuple[int, int] | None:
    """``i/n`` as two numbers."""
    if text is None:
        return None
    which, slash, of = text.partition("/")
    if not (slash and which.strip().isdecimal() and of.strip().isdecimal()):
        raise InputError(f"--shard must be i/n, such as 3/8, counted from 1; got {text!r}.")
    return int(which), int(of)


def merge(
    parts: Annotated[list[Path], Argument(metavar="PART...")],
    output: options.OutputFile,
    statistics: Annotated[bool, Option("--statistics", "--statistics-only")] = False,
) -> Report:
    """Merge what was scored in shards, and judge the whole.

    Example:
        shiftcal merge part-1.npz part-2.npz part-3.npz -o target.npz

    Args:
        parts: All parts of one job, in any order: scores files that `shiftcal score --shard i/n`
            wrote, or statistics files.
        output: Where to write: .npz for all scores in the order of the images, .json for their
            statistics only.
        statistics: Write statistics only; FILE must end in .json.
    """
    only = statistics or output.suffix.lower() == ".json"
    inputs.check_suffix(output, *([] if statistics else [".npz"]), ".json")
    from shiftcal.scoring.statistics import find_parts, merge_scores, merge_statistics

    with progress(f"merging {count_of(len(parts), 'part')}"):
        found = find_parts(parts)
        if only:
            total = merge_statistics(found)
            total.write(output)
        else:
            total = merge_scores(found, output)
    metrics: dict[str, Any] | None = None
    if total.labelled:
        fit = total.temperature_fit()
        metrics = {
            "accuracy": total.accuracy(),
            "ece": total.ece(),
            "nll": total.nll(),
            "brier": total.brier(),
            "temperature": fit.temperature,
            "temperature_status": fit.status.code,
        }
    n_images, holds = found[0].part.n_images, "statistics" if only else "scores"
    document = {
        "output": output,
        "holds": holds,
        "n_parts": len(found),
        "n_images": n_images,
        "n": total.n,
        "n_classes": total.k,
        "mean_confidence": total.mean_confidence,
        "metrics": metrics,
    }
    left_out = f" of {n_images:,} images (the others gave none)" if total.n < n_images else ""
    pairs: list[tuple[str, object]] = [
        ("parts", f"{len(found):,}"),
        ("rows", f"{total.n:,}{left_out}"),
        ("classes", f"{total.k:,}"),
        ("mean confidence", fraction(total.mean_confidence)),
    ]
    if metrics is not None:
        pairs += [(name, fraction(metrics[name])) for name in ("accuracy", "ece", "nll")]
        end = "" if metrics["temperature_status"] == "converged" else " (an end of its range)"
        pairs.append(("temperature", f"{temperature(metrics['temperature'])}{end}"))
    return Report(document, f"{facts(pairs)}\n\n{holds} written to {output}")
