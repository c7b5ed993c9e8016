"""``shiftcal evaluate``, ``compare`` and ``estimate``: numbers about scores and methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, between, progress, table
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.progress import track
from shiftcal.registry import ESTIMATORS, METHODS, METRICS, is_own

if TYPE_CHECKING:
    from shiftcal.methods import Method
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.types import Floats


_ALWAYS = ("accuracy", "ece", "nll", "brier")


def evaluate(
    scores: Annotated[Path, Argument(metavar="SCORES")],
    *,
    labels: options.File = None,
    labelled_only: bool = False,
    metric: options.Names = None,
    table_: bool = False,
    normalize: bool = False,
    max_ece: Annotated[float | None, Option(metavar="FRACTION")] = None,
    format: options.Format = "text",
    judge: options.Judge,
    table_columns: options.Columns,
) -> Report:
    """Evaluate scores with labels: accuracy, ECE, NLL and Brier score.

    Example:
        shiftcal evaluate out.npz --max-ece 0.05

    Args:
        scores: Any scores file; logits get a softmax.
        labels: Labels if the scores file has none, or to replace its own: .npy, .npz (labels, ids),
            .txt, .csv or .parquet (label, and file, path or id), or a scores file with labels.
            Joined by id where it has ids; SCORES must then have them, too.
        labelled_only: Judge only the rows that have a label in the file of --labels, found by ids.
        metric: Another metric to show, or all; `shiftcal list` lists them. Repeatable.
        table_: Show the bins behind ECE.
        normalize: Rescale rounded probabilities or percentages to sum to 1, and divide one column
            of percentages by 100; logits do not change.
        max_ece: Gate: exit with status 1 if ECE is larger than this.
        format: How the table is printed: text, markdown, latex (booktabs), csv (all digits) or
            json (as --json).
    """
    asked = METRICS.names() if "all" in (metric or []) else metric or []
    for name in asked:
        METRICS.get(name)  # a typo is reported before files are read
    canonical = map(METRICS.canonical, asked)
    names = list(dict.fromkeys([*_ALWAYS, *canonical]))
    if max_ece is not None and not 0 <= max_ece <= 1:
        raise InputError(f"--max-ece must be a fraction from 0 to 1, not percent; got {max_ece:g}.")
    from shiftcal.metrics import BinTable, bins, facts_of
    from shiftcal.scores import read_scores

    everything = read_scores(scores, normalize=normalize, **table_columns.columns)
    given = _labelled(scores, everything, labels, only=labelled_only)
    truth = given.labels
    assert truth is not None
    judged = options.Judged(given._probs, truth)
    with progress(f"judging {given.n:,} rows"):
        # Means over rows first: confidences of all rows need not be there yet.
        order = sorted(names, key=lambda name: facts_of(METRICS.get(name)).reads == "top1")
        values = {name: judge.metric(name, judged) for name in track(order, "metrics")}
        values = {name: values[name] for name in names}
    ece, (confidence, correct) = values["ece"]["value"], judged.top1
    assert ece is not None
    shown = None
    if table_:
        shown = BinTable.from_sums(bins(confidence, correct, judge.n_bins, judge.binning))
    document = {
        "scores": scores,
        "labels": labels or scores,
        "n": given.n,
        "n_unlabelled": everything.n - given.n,
        "n_classes": given.k,
        "input": given.input,
        **asdict(judge),
        "mean_confidence": confidence.mean(),
        "metrics": values,
        "bins": None if shown is None else shown.to_dict(),
        "gate": None if max_ece is None else {"max_ece": max_ece, "passed": ece <= max_ece},
    }
    rows = [[name, v["value"], between(v["low"], v["high"])] for name, v in values.items()]
    rows.insert(1, ["mean confidence", document["mean_confidence"], None])
    blocks = [
        f"{scores}: {given.n:,} of {everything.n:,} rows, {given.k} classes",
        table(["metric", "value", f"{100 * judge.level:g}% interval"], rows),
        str(judge),
        *([] if shown is None else [str(shown)]),
    ]
    if format not in ("text", "json"):
        found = {**values, "mean confidence": {"value": document["mean_confidence"]}}
        blocks = [_written(format, "metric", {"value": None}, {k: [v] for k, v in found.items()})]
    failed = max_ece is not None and ece > max_ece
    gate = f"ECE {ece:.4g} is larger than --max-ece {max_ece:g}." if failed else ""
    return Report(document, "\n\n".join(blocks), failed_gate=gate)


def _labelled(path: Path, scores: Scores, labels: Path | None, *, only: bool) -> Scores:
    """The rows to judge, with their labels."""
    from shiftcal.scores import read_labelled, read_labels

    if labels is not None and only:
        return read_labelled(labels, scores)
    if labels is not None:
        return scores._with(labels=read_labels(labels, scores))
    if only:
        raise InputError("--labelled-only goes with --labels. Name the file that has them.")
    if scores.labels is None:
        raise InputError(f"{path} has no labels. Name a file that has them with --labels.")
    return scores


def compare(
    task: options.Task,
    *,
    source_train: options.File = None,
    method: options.Names = None,
    metric: options.Names = None,
    format: options.Format = "text",
    judge: options.Judge,
) -> Report:
    """Compare methods on a target.

    Example:
        shiftcal compare bank/ target.npz

    Args:
        source_train: File with features of training samples, for cpcs and transcal.
        method: Compare this method only. Repeatable; default: all but realign, which changes
            predictions.
        metric: Another metric to show, if the target has labels. Repeatable.
        format: How the table is printed: text, markdown, latex (booktabs), csv (all digits) or
            json (as --json).
    """
    from shiftcal.metrics import facts_of
    from shiftcal.numerics.blocks import one_blas_thread
    from shiftcal.scores import read_features

    asked = {METHODS.get(name).name: name for name in method or []}
    # Errors of other predictions than the model's would stand next to errors of the model's.
    default = [name for name in inputs.method_names() if name != "realign"]
    wanted = [name for name in inputs.method_names() if name in asked] if asked else default
    wanted += [name for key, name in asked.items() if key not in wanted]
    more = list(dict.fromkeys(map(METRICS.canonical, metric or [])))
    more = [name for name in more if METRICS.get(name) and name not in _ALWAYS]
    sets, scores = task.read()
    if more and scores.labels is None:
        raise InputError(f"--metric needs labels, and {task.path} has none. Leave it out.")
    features = None if source_train is None else read_features(source_train)
    with one_blas_thread():
        results, missing = _tried(
            wanted,
            lambda name: _result(name, sets, features, scores, judge, more),
            f"comparing {len(wanted)} methods",
            must=False,
        )
    labelled = scores.labels is not None
    document = {
        "target": task.path,
        "n": scores.n,
        "labelled": labelled,
        "labels": task.labels,
        "n_sets": len(sets),
        **asdict(judge),
        "methods": results,
        "missing": missing,
    }
    # Of every column, whether lower is better; of every method its cells.
    columns: dict[str, bool | None] = {"set": None, "T": None, "confidence": None}
    if labelled:
        columns |= {"accuracy": False, "ECE": True, "NLL": True, "Brier": True}
        columns |= {name: facts_of(METRICS.get(name)).better == "lower" for name in more}
    cells = {}
    for one in results:
        selection = one["selection"]
        values = (selection["set_name"], selection["temperature"], one["mean_confidence"])
        own = cells[one["method"]] = [{"value": value} for value in values]
        if labelled:
            own += [one["metrics"][name] for name in (*_ALWAYS, *more)]
    if format not in ("text", "json"):
        return Report(document, _written(format, "method", columns, cells))
    header = ["method", *columns]
    rows = [[name, *(cell["value"] for cell in own)] for name, own in cells.items()]
    if labelled:
        place = header.index("NLL")
        header.insert(place, f"{100 * judge.level:g}% interval")
        for row, one in zip(rows, results, strict=True):
            row.insert(place, between(one["metrics"]["ece"]["low"], one["metrics"]["ece"]["high"]))
    flags = {one["method"]: one["selection"]["flags"] for one in results}
    last = (
        str(judge)
        if labelled
        else f"{task.path} has no labels: metrics that need them are missing."
    )
    head = f"{task.path}: {scores.n:,} rows. Confidence is the mean over them."
    lines = [head, "", table(header, rows), "", *_remarks(flags, missing), last]
    return Report(document, "\n".join(lines))


def _written(
    format: str, corner: str, columns: dict[str, bool | None], rows: dict[str, list[Any]]
) -> str:
    """A table in the format asked for, the best of each column marked.

    Args:
        format: markdown, latex or csv.
        corner: Header of the labels.
        columns: By name, whether lower is better; ``None``: neither.
        rows: By label, ``value``, ``low`` and ``high`` of each cell.
    """
    from shiftcal.report import tables

    made = tables.Table(
        "",
        tuple(
            tables.Column(name, digits=4, lower_is_better=lower) for name, lower in columns.items()
        ),
        tuple(
            tables.Row(label, tuple(tables.Cell(**cell) for cell in cells))
            for label, cells in rows.items()
        ),
        corner=corner,
    )
    written = {"markdown": tables.to_markdown, "latex": tables.to_latex, "csv": tables.to_csv}
    return written[format](made.marked()).replace("\r", "").rstrip()


def _tried(
    names: Iterable[str], work: Callable[[str], dict[str, Any]], doing: str, *, must: bool
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """What ``work`` returns for every name, and by name why it could not be done."""
    results: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    with progress(doing):
        for name in track(list(names), "done"):
            try:
                results.append(work(name))
            except ShiftcalError as error:
                if must:
                    raise
                missing[name] = str(error).removeprefix(f"{name} ")
    return results, missing


def _remarks(flags: dict[str, list[dict[str, str]]], missing: dict[str, str]) -> list[str]:
    """Lines about flags and about what is missing; each reason once, with all it concerns."""
    about: dict[tuple[str, str], list[str]] = {}
    for name, raised in flags.items():
        for flag in raised:
            about.setdefault((f"flagged {flag['code']}", flag["message"]), []).append(name)
    for name, reason in missing.items():
        about.setdefault(("missing", reason), []).append(name)
    return [f"{what}: {', '.join(names)} ({why})" for (what, why), names in about.items()]


def _result(
    name: str,
    sets: SurrogateBank,
    source: Floats | None,
    target: Scores,
    judge: options.Judge,
    more: Iterable[str],
) -> dict[str, Any]:
    """A method fitted, adapted and, with labels, judged."""
    method: Method = METHODS.get(name)(input=sets.input)
    inputs.check_needs(method, source=source, clean=sets.clean.features, target=target.features)
    method._fit_checked(sets, source)
    blocks = partial(method.in_blocks, inputs.adapt_to(method, target))
    assert method.selection_ is not None
    metrics: dict[str, Any] | None = None
    if (labels := target.labels) is not None:
        judged = options.Judged(blocks, labels)
        metrics = {"ece": judge.metric("ece", judged)}
        for one in ("nll", "brier", "accuracy", *more):
            metrics[one] = {"value": judge.metric(one, judged, interval=False)["value"]}
        mean = judged.top1[0].mean()
    else:
        mean = sum(probs.max(axis=1).sum() for _, probs in blocks()) / target.n
    return {
        "method": method.name,
        "mean_confidence": mean,
        "selection": method.selection_.to_dict(),
        "metrics": metrics,
    }


_BY_METHOD = "mean-confidence"


def estimate(
    task: options.Task, estimator: options.Names = None, level: options.Fraction = 0.95
) -> Report:
    """Estimate accuracy, macro F1, AUROC and more on a target without labels.

    Accuracy is that of every estimator; the other metrics are those that realign expects.

    Example:
        shiftcal estimate bank/ target.npz

    Args:
        estimator: An estimator: atc, doc, rehearsed, surrogate-curve, or mean-confidence:METHOD
            (sac if no method is named). Repeatable. Default: all, and the other metrics too.
        level: Coverage of intervals, strictly between 0 and 1.
    """
    from shiftcal.checks import check_fraction
    from shiftcal.numerics.softmax import hits

    check_fraction(level, name="--level")
    names = list(dict.fromkeys(estimator or _all_estimators()))
    chosen = {name: _estimator(name) for name in names}  # a typo is reported before files are read
    sets, scores = task.read()
    accuracy = None
    if scores.labels is not None:
        accuracy = options.Judged(scores._probs, scores.labels).mean(hits)

    def result(name: str) -> dict[str, Any]:
        cls, settings = chosen[name]
        found = cls(input=sets.input, **settings).fit(sets).estimate(scores, level=level)
        error = None if accuracy is None else found.value - accuracy
        return {**found.to_dict(), "estimator": name, "error": error}

    results, missing = _tried(names, result, "estimating", must=bool(estimator))
    expected: list[dict[str, Any]] = []
    if not estimator:
        expected, why = _tried(
            ["metrics"], lambda _: _expected(sets, scores, level), "estimating metrics", must=False
        )
        missing |= why
    document = {
        "bank": task.files[0] if len(task.files) == 1 else task.bank,
        "surrogates": task.files,
        "target": task.path,
        "labels": task.labels or (None if accuracy is None else task.path),
        "n": scores.n,
        "n_sets": len(sets),
        "level": level,
        "accuracy": accuracy,
        "estimates": results,
        "metrics": expected[0] if expected else None,
        "missing": missing,
    }
    header = ["estimator", "accuracy", f"{100 * level:g}% interval", "error"]
    rows = [
        [one["estimator"], one["value"], between(one["low"], one["high"]), one["error"]]
        for one in results
    ]
    lines = [f"{task.path}: {scores.n:,} rows. Accuracies are fractions, not percent.", ""]
    shown = 3 if accuracy is None else 4
    lines += [table(header[:shown], [row[:shown] for row in rows]), ""]
    flags = {one["estimator"]: one["flags"] for one in results}
    for found in expected:
        lines += [*_metric_tables(found, level), ""]
        flags["metrics"] = found["flags"]
    lines += _remarks(flags, missing)
    if accuracy is not None:
        lines.append(f"true accuracy, by the labels of {document['labels']}: {accuracy:.4f}")
    return Report(document, "\n".join(lines))


_METRICS = ("accuracy", "macro_f1", "auroc", "average_precision")
_OF_CLASS = ("prior", "precision", "recall", "f1")
# More classes are in --json only.
_MOST_CLASSES = 30


def _expected(sets: SurrogateBank, target: Scores, level: float) -> dict[str, Any]:
    """What realign expects of every metric, and with labels the metrics."""
    import numpy as np

    from shiftcal.methods.realign import Realign
    from shiftcal.numerics.softmax import softmax
    from shiftcal.performance import Performance

    method = Realign(input=sets.input).fit(sets)
    taken = inputs.adapt_to(method, target)
    found = Performance.of(method, taken, level=level).to_dict()
    found["true"] = None
    if target.labels is not None:
        truth = Performance.expected(np.eye(target.k)[target.labels], softmax(target.logits()))
        found["true"] = {name: getattr(truth, name).value for name in _METRICS}
    return found


def _metric_tables(found: dict[str, Any], level: float) -> list[str]:
    """Metrics of the target, then of every class if they are not too many."""
    header = ["metric", "value", f"{100 * level:g}% interval", "true"]
    rows = []
    for name in _METRICS:
        one = found[name]
        true = None if found["true"] is None else found["true"][name]
        rows.append([name, one["value"], between(one["low"], one["high"]), true])
    shown = 3 if found["true"] is None else 4
    lines = ["Metrics that realign expects of the model's own predictions:", ""]
    lines.append(table(header[:shown], [row[:shown] for row in rows]))
    k = len(found["prior"])
    if k > _MOST_CLASSES:
        return lines
    classes = found["classes"] or [str(j) for j in range(k)]
    rows = []
    for j, name in enumerate(classes):
        prior = found["prior"][j]
        values = [found[metric][j]["value"] for metric in _OF_CLASS]
        rows.append([name, values[0], between(prior["low"], prior["high"]), *values[1:]])
    header = ["class", "share", f"{100 * level:g}% interval", "precision", "recall", "F1"]
    return [*lines, "", table(header, rows)]


def _all_estimators() -> list[str]:
    """Every estimator, and mean confidence by every method that needs outputs alone.

    Two are not among those: Rehearsal's estimate is "rehearsed", Realign's comes with the metrics.
    """
    own = [name for name in ESTIMATORS.names() if name != _BY_METHOD]
    for name in inputs.method_names():
        cls = METHODS.get(name)
        outputs_alone = not cls.uses_features and not cls.uses_mixed
        if outputs_alone and name not in ("rehearsal", "realign"):
            own.append(f"{_BY_METHOD}:{name}")
    return own


def _estimator(name: str) -> tuple[Any, dict[str, str]]:
    """The class and settings of ``mean-confidence:sac``; others have no method behind a colon."""
    first, _, method = name.partition(":")
    if is_own(name) and ESTIMATORS.canonical(first) not in ESTIMATORS.names():
        return ESTIMATORS.get(name), {}
    cls = ESTIMATORS.get(first)
    if method and cls.name != _BY_METHOD:
        raise InputError(f"{first} takes no method; got {name!r}. Use {first}.")
    if method:
        METHODS.get(method)
    return cls, {"method": method} if method else {}
