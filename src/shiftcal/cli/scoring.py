"""``shiftcal bank``, ``score`` and ``merge``: a model and images in, scores out."""

from __future__ import annotations

import math
import re
import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, facts, progress, sets_table, stdout_kept_for_results
from shiftcal.errors import InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal.models import Model
    from shiftcal.surrogates import SurrogateBank


def bank(
    model: Annotated[str, Option(metavar="SPEC")],
    output: options.OutputFolder,
    *,
    corruption: options.Names = None,
    severity: options.Severities = "all",
    features: Literal["clean", "all", "none"] = "clean",
    relabel: bool = False,
    strength: options.Strength,
    scoring: options.Scoring,
) -> Report:
    """Build a bank from a model and labelled images. Resumes if run again.

    Example:
        shiftcal bank --model model.onnx --images calibration/ --corruption pixelate -o bank/

    Args:
        model: The model: model.onnx, export:file.pt2, sklearn:file.skops, timm:NAME, hf:NAME,
            torch:package.module:factory?weights=FILE, python:module:function; options follow it:
            ?resize=256&crop=224.
        output: Folder for the bank.
        corruption: A corruption, several as fog,contrast, all, or module:function for your own.
            Repeatable; default: pixelate.
        severity: One severity, several as 1,3 or 2-4, or all.
        features: Which sets keep features, if the model gives them.
        relabel: Replace labels or classes of a finished bank of the same images; nothing is scored
            again.
    """
    severities = inputs.parse_severities(severity)
    inputs.refuse_inside(scoring.images, [output])
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.surrogates.build import build_bank, conditions_of

    with stdout_kept_for_results(), inputs.blaming_functions():
        corruptions = inputs.choose_corruptions(corruption or ["pixelate"], strength.frost_photos)
        built = build_bank(
            scoring.load_model(model),
            scoring.images,
            output,
            conditions=conditions_of(corruptions, severities),
            seed=strength.seed,
            table=strength.table,
            features=features,
            relabel=relabel,
            **scoring.settings(),
        )
    made = SurrogateBank.load(output)
    _warn_of_useless(made)
    assert made.origin is not None
    sets = made.summaries()
    document = {
        "model": model,
        "images": scoring.images,
        "bank": output,
        "preprocessing": made.origin["model"]["preprocessing"],
        "sets": [
            {
                "name": one.name,
                "rows": one.n,
                "mean_confidence": one.mean_confidence,
                "accuracy": one.accuracy,
            }
            for one in sets
        ],
        "sets_added": built.added,
        "images_scored": built.computed,
        "left_out": built.left_out,
    }
    keys = ("model", "images", "preprocessing", "sets_added", "images_scored", "left_out", "bank")
    following = shlex.join(["shiftcal", "score", "--bank", str(output), "--images"])
    text = f"{sets_table(sets)}\n\n{facts(document, *keys)}\n\nnext      {following} NEW -o new.npz"
    return Report(document, text, bad_input=scoring.bad_input(built.left_out))


def _warn_of_useless(made: SurrogateBank) -> None:
    """Warn of what makes most useless banks useless."""
    clean, *others = made.summaries()
    chance = 1 / made.n_classes
    odd = []
    if clean.accuracy <= chance + 2 * math.sqrt(chance * (1 - chance) / clean.n):
        odd.append(
            f"the accuracy of the clean set is {clean.accuracy:.4f}, no better than guessing among "
            f"{made.n_classes} classes ({chance:.4f}). Check mean and std of the preprocessing "
            "and the order of the classes (--classes)."
        )
    if clean.n < 100:
        odd.append(f"the clean set has {clean.n:,} images; fewer than 100 tell little. Add more.")
    hardest = min(others, key=lambda one: one.accuracy, default=clean)
    if others and not odd and clean.accuracy - hardest.accuracy < 0.05:
        odd.append(
            f"the corruptions hardly change this model: accuracy falls from {clean.accuracy:.4f} "
            f"to {hardest.accuracy:.4f} at most ({hardest.name}), so the bank says nothing about "
            "stronger shifts. Add others, such as --corruption brightness,motion_blur."
        )
    for text in odd:
        warnings.warn(text, InputWarning, stacklevel=2)


def score(
    *,
    output: options.MaybeOutputFile = None,
    model: options.Spec = None,
    bank: options.Folder = None,
    no_labels: bool = False,
    shard: Annotated[str | None, Option(metavar="I/N")] = None,
    statistics: options.File = None,
    scoring: options.Scoring,
) -> Report:
    """Score images with a model. Resumes if run again.

    Example:
        shiftcal score --bank bank/ --images new-images/ -o target.npz

    Args:
        output: Scores file to write: .npz (best), .npy, .csv or .parquet.
        model: The model, as for `shiftcal bank`; default: that of --bank.
        bank: Use the model and the preprocessing of this bank; another model is rejected.
        no_labels: Ignore the labels that the images have.
        shard: Score part I of N only; `shiftcal merge` puts parts together.
        statistics: Write statistics of the rows, which can be merged, to this .json file; -o can
            be left out then.
    """
    part = _parse_part(shard)
    if output is None and statistics is None:
        raise InputError("-o must name a file for the scores, or --statistics one for statistics.")
    if no_labels and scoring.labels is not None:
        raise InputError("--labels and --no-labels exclude one another. Leave one of them out.")
    inputs.refuse_inside(scoring.images, [output, statistics])
    from shiftcal.datasets import as_image_set
    from shiftcal.scoring import score_file
    from shiftcal.scoring.shards import ForeignLabels

    settings = {"out": output, "part": part, "statistics": statistics, **scoring.settings()}
    with stdout_kept_for_results():
        used = _model(scoring, model, bank)
        found = as_image_set(scoring.images)
        unlabelled = found.relabelled(None)
        try:
            scored = score_file(used, unlabelled if no_labels else found, **settings)
        except ForeignLabels as error:  # of the images: no reason not to score them
            if scoring.labels is not None:
                raise
            warnings.warn(
                f"scored without labels: {error} --no-labels ignores them from the start.",
                InputWarning,
                stacklevel=2,
            )
            scored = score_file(used, unlabelled, **settings)
    document = {
        "images": scoring.images,
        "output": output,
        "statistics": statistics,
        "n": scored.n,
        "n_classes": scored.k,
        "labels": scored.labels,
        "accuracy": _accuracy(output, statistics) if scored.labels and scored.n else None,
        "shard": shard,
        "images_scored": scored.computed,
        "left_out": scored.left_out,
    }
    return Report(document, facts(document), bad_input=scoring.bad_input(scored.left_out))


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


def _model(scoring: options.Scoring, spec: str | None, bank: Path | None) -> Model:
    given = None if spec is None else scoring.load_model(spec)
    if bank is None:
        if given is None:
            raise InputError(
                "the model is missing. Give --model, or --bank to use the model of a bank."
            )
        return given
    from shiftcal.surrogates.bank import read_description
    from shiftcal.surrogates.build import model_of_bank

    made = model_of_bank(bank, given, scoring.batch_size)
    # The bank may have names that the model does not bring.
    named = scoring.class_names() or read_description(bank)["classes"] or made.classes
    made.classes = None if named is None else tuple(named)
    return made


def _parse_part(text: str | None) -> tuple[int, int] | None:
    """``i/n`` as two numbers."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text, re.ASCII)
    if found is None:
        raise InputError(f"--shard must be i/n, such as 3/8, counted from 1; got {text!r}.")
    return int(found[1]), int(found[2])


def merge(
    parts: Annotated[list[Path], Argument(metavar="PART")], output: options.OutputFile
) -> Report:
    """Merge the scores of several shards.

    Example:
        shiftcal merge part-1.npz part-2.npz part-3.npz -o target.npz

    Args:
        parts: All parts of one job, in any order: scores files that `shiftcal score` wrote with
            --shard, or statistics files.
        output: Where to write: .npz for all scores in the order of the images, .json for their
            statistics only.
    """
    inputs.check_suffix(output, ".npz", ".json")
    from shiftcal.scoring.statistics import find_parts, merge_scores, merge_statistics

    only = output.suffix.lower() == ".json"
    with progress(f"merging {len(parts):,} parts"):
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
    document = {
        "output": output,
        "holds": "statistics" if only else "scores",
        "n_parts": len(found),
        "n_images": found[0].part.n_images,
        "n": total.n,
        "n_classes": total.k,
        "mean_confidence": total.mean_confidence,
        "metrics": metrics,
    }
    return Report(document, facts({**document, "metrics": None, **(metrics or {})}))
