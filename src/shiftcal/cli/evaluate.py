"""``shiftcal evaluate``: scores and labels in, numbers out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import Judge, probabilities_of
from shiftcal.cli.options import Binning, Bins, BootstrapSeed, Json, Level, Normalize, Resamples
from shiftcal.cli.output import Report, printable, progress
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.scores import Scores

ALWAYS = ("accuracy", "ece", "nll", "brier")


def evaluate(
    scores: Annotated[
        Path, typer.Argument(metavar="SCORES", help="Any scores file; logits get a softmax.")
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labels if the scores file has none, or others than its own: .npy, .npz "
            "(labels, ids), .txt, .csv or .parquet (label, and file, path or id), or a scores file "
            "with labels. Joined by these names where it has them, which SCORES must then have.",
        ),
    ] = None,
    labelled_only: Annotated[
        bool,
        typer.Option(
            "--labelled-only",
            help="Judge only the rows that have a label in the file of --labels, found by ids.",
        ),
    ] = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Another metric to show, or all; `shiftcal list` lists them. Repeatable.",
        ),
    ] = None,
    bins: Bins = 15,
    binning: Binning = "size",
    table: Annotated[
        bool, typer.Option("--table", "--bin-table", help="Show the bins behind ECE one by one.")
    ] = False,
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: BootstrapSeed = 0,
    normalize: Normalize = False,
    max_ece: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION", help="Gate: exit with status 1 if ECE is larger than this."
        ),
    ] = None,
    as_json: Json = False,
) -> Report:
    """Judge scores by labels: accuracy, ECE, NLL and Brier score."""
    judge = Judge(n_bins=bins, binning=binning, level=level, n_resamples=resamples, seed=seed)
    judge.check()
    names = _metric_names(metric or [])
    _check_gate(max_ece)
    from shiftcal.scores import read_scores

    everything = read_scores(scores, normalize=normalize)
    given = _labelled(scores, everything, labels, only=labelled_only)
    truth = given.labels
    assert truth is not None
    probs = probabilities_of(given)
    with progress(f"judging {given.n:,} rows"):
        values = {name: judge.interval(name, probs, truth) for name in names}
    ece = values["ece"]["value"]
    assert ece is not None
    bin_table = judge.bin_table(probs, truth) if table else None
    document = {
        "scores": scores,
        "labels": labels or scores,
        "n": given.n,
        "n_unlabelled": everything.n - given.n,
        "n_classes": given.k,
        "input": given.input,
        "n_bins": bins,
        "binning": judge.binning,
        "level": level,
        "n_resamples": resamples,
        "seed": seed,
        "mean_confidence": probs.max(axis=1).mean(),
        "metrics": values,
        "bins": None if bin_table is None else bin_table.to_dict(),
        "gate": None if max_ece is None else {"max_ece": max_ece, "passed": ece <= max_ece},
    }
    text = "\n\n".join(
        [_text(printable(document), judge), *([str(bin_table)] if bin_table else [])]
    )
    failed = max_ece is not None and ece > max_ece
    gate = f"ECE {ece:.4g} is larger than --max-ece {max_ece:g}." if failed else ""
    return Report("evaluate", document, text, as_json, failed_gate=gate)


def _metric_names(asked: list[str]) -> list[str]:
    from shiftcal.registry import METRICS

    wanted = METRICS.names() if "all" in asked else asked
    for name in wanted:
        METRICS.get(name)  # a mistyped name is told before files are read
    return list(dict.fromkeys([*ALWAYS, *(METRICS.canonical(name) for name in wanted)]))


def _check_gate(max_ece: float | None) -> None:
    if max_ece is not None and not 0 <= max_ece <= 1:
        raise InputError(
            f"--max-ece must be a fraction from 0 to 1; got {max_ece:g}. For five percent say 0.05."
        )


def _labelled(path: Path, scores: Scores, labels: Path | None, *, only: bool) -> Scores:
    """The rows to judge, with their labels."""
    if labels is not None:
        from shiftcal.scores import read_labelled, read_labels

        if only:
            return read_labelled(labels, scores)
        return replace(scores, labels=read_labels(labels, scores))
    if only:
        raise InputError("--labelled-only goes with --labels. Name the file that has them.")
    if scores.labels is None:
        raise InputError(
            f"{path} has no labels, and without them nothing can be judged. Name a file that has "
            "them with --labels."
        )
    return scores


def _text(document: dict[str, Any], judge: Judge) -> str:
    interval = f"{100 * judge.level:g}% interval"
    rows = []
    for name, v in document["metrics"].items():
        ends = "-" if v["low"] is None else f"{v['low']:.4f} to {v['high']:.4f}"
        rows.append([name, _tables.fraction(v["value"]), ends])
    rows.insert(1, ["mean confidence", _tables.fraction(document["mean_confidence"]), "-"])
    head = f"{document['scores']}: {_rows(document)}, {document['n_classes']} classes"
    grid = _tables.table(["metric", "value", interval], rows, right=["value"])
    return f"{head}\n\n{grid}\n\n{judge.describe(document['n'])}"


def _rows(document: dict[str, Any]) -> str:
    judged, left_out = document["n"], document["n_unlabelled"]
    if not left_out:
        return f"{judged:,} row{'s' * (judged > 1)}"
    return f"{judged:,} of {judged + left_out:,} rows (those with a label in {document['labels']})"
