"""``shiftcal evaluate``, ``compare`` and ``estimate``: numbers about scores and methods."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from shiftcal.cli import inputs, options
from shiftcal.cli.output import Report, between, count_of, fraction, progress, table, temperature
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.registry import ESTIMATORS, METHODS, METRICS, is_own

if TYPE_CHECKING:
    from shiftcal.methods import Method
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.types import Floats, Labels, Probs


@dataclass(frozen=True)
class Judge:
    """How metrics are computed: bins, and the bootstrap behind intervals."""

    n_bins: int
    binning: str
    level: float
    n_resamples: int
    seed: int

    @classmethod
    def checked(cls, n_bins: int, binning: str, level: float, n_resamples: int, seed: int) -> Judge:
        """One with usable settings.

        Raises:
            InputError: Naming the option.
        """
        from shiftcal.checks import check_fraction
        from shiftcal.metrics import check_binning

        if n_resamples == 1:
            raise InputError("--resamples must be 0 (no intervals) or at least 2; got 1.")
        check_fraction(level, name="--level")
        return cls(n_bins, check_binning(binning, name="--binning"), level, n_resamples, seed)

    def metric(
        self, name: str, probs: Probs, labels: Labels, *, interval: bool = True
    ) -> dict[str, float | None]:
        """``value``, ``low`` and ``high`` of a metric; the last two are ``None`` without draws."""
        from shiftcal.metrics import bootstrap, facts_of

        function = METRICS.get(name)
        arrays: tuple[Any, Any] = (probs, labels)
        if facts_of(function).reads == "top1":
            arrays = probs.max(axis=1), probs.argmax(axis=1) == labels
        settings: dict[str, Any] = {}
        if "n_bins" in inspect.signature(function).parameters:
            settings = {"n_bins": self.n_bins, "binning": self.binning}
        # Draws from a single row are all the same.
        if not interval or self.n_resamples == 0 or len(labels) < 2:
            return {"value": float(function(*arrays, **settings)), "low": None, "high": None}
        settings |= {"n_resamples": self.n_resamples, "level": self.level, "seed": self.seed}
        found = bootstrap(function, *arrays, **settings)
        return {"value": found.value, "low": found.low, "high": found.high}

    def describe(self, n: int) -> str:
        """The definitions behind the numbers of ``n`` rows."""
        text = (
            "Accuracy, confidence and ECE are fractions, not percent; NLL is in nats. "
            f"ECE: {self.n_bins} bins of equal {self.binning}."
        )
        if self.n_resamples and n < 2:
            return f"{text} No intervals: there is one row."
        if self.n_resamples:
            how = f"{self.n_resamples} draws, seed {self.seed}"
            text += f" Intervals: {100 * self.level:g}% bootstrap, {how}."
        return text


def evaluate(
    scores: Annotated[Path, Argument(metavar="SCORES")],
    labels: options.File = None,
    labelled_only: bool = False,
    metric: options.Names = None,
    bins: options.Bins = 15,
    binning: options.Binning = "size",
    table_: Annotated[bool, Option("--table", "--bin-table")] = False,
    level: options.Level = 0.95,
    resamples: options.Resamples = 1000,
    seed: options.BootstrapSeed = 0,
    normalize: options.Normalize = False,
    max_ece: Annotated[float | None, Option(metavar="FRACTION")] = None,
) -> Report:
    """Judge scores by labels: accuracy, ECE, NLL and Brier score.

    Example:
        shiftcal evaluate out.npz --max-ece 0.05

    Args:
        scores: Any scores file; logits get a softmax.
        labels: Labels if the scores file has none, or to replace its own: .npy, .npz (labels, ids),
            .txt, .csv or .parquet (label, and file, path or id), or a scores file with labels.
            Joined by these names where it has them, which SCORES must then have.
        labelled_only: Judge only the rows that have a label in the file of --labels, found by ids.
        metric: Another metric to show, or all; `shiftcal list` lists them. Repeatable.
        table_: Show the bins behind ECE.
        max_ece: Gate: exit with status 1 if ECE is larger than this.
    """
    judge = Judge.checked(bins, binning, level, resamples, seed)
    asked = METRICS.names() if "all" in (metric or []) else metric or []
    for name in asked:
        METRICS.get(name)  # a typo is reported before files are read
    canonical = map(METRICS.canonical, asked)
    names = list(dict.fromkeys(["accuracy", "ece", "nll", "brier", *canonical]))
    if max_ece is not None and not 0 <= max_ece <= 1:
        raise InputError(f"--max-ece must be a fraction from 0 to 1, not percent; got {max_ece:g}.")
    from shiftcal.checks import check_probs
    from shiftcal.metrics import bin_table
    from shiftcal.scores import read_scores

    everything = read_scores(scores, normalize=normalize)
    given = _labelled(scores, everything, labels, only=labelled_only)
    truth = given.labels
    assert truth is not None
    given.logits()  # its errors name the file
    probs = check_probs(given.as_kind("probabilities").values)
    with progress(f"judging {given.n:,} rows"):
        values = {name: judge.metric(name, probs, truth) for name in names}
    ece = values["ece"]["value"]
    assert ece is not None
    bins_of_ece = None
    if table_:
        top1 = probs.max(axis=1), probs.argmax(axis=1) == truth
        bins_of_ece = bin_table(*top1, n_bins=bins, binning=judge.binning)  # type: ignore[arg-type]
    document = {
        "scores": scores,
        "labels": labels or scores,
        "n": given.n,
        "n_unlabelled": everything.n - given.n,
        "n_classes": given.k,
        "input": given.input,
        **asdict(judge),
        "mean_confidence": probs.max(axis=1).mean(),
        "metrics": values,
        "bins": None if bins_of_ece is None else bins_of_ece.to_dict(),
        "gate": None if max_ece is None else {"max_ece": max_ece, "passed": ece <= max_ece},
    }
    rows = [[k, fraction(v["value"]), between(v["low"], v["high"])] for k, v in values.items()]
    rows.insert(1, ["mean confidence", fraction(document["mean_confidence"]), "-"])
    n_rows = count_of(given.n, "row")
    if given.n < everything.n:
        n_rows = f"{given.n:,} of {everything.n:,} rows (those with a label in {labels})"
    blocks = [
        f"{scores}: {n_rows}, {given.k} classes",
        table(["metric", "value", f"{100 * level:g}% interval"], rows, right=["value"]),
        judge.describe(given.n),
    ]
    if bins_of_ece is not None:
        blocks.append(str(bins_of_ece))
    failed = max_ece is not None and ece > max_ece
    gate = f"ECE {ece:.4g} is larger than --max-ece {max_ece:g}." if failed else ""
    return Report(document, "\n\n".join(blocks), failed_gate=gate)


def _labelled(path: Path, scores: Scores, labels: Path | None, *, only: bool) -> Scores:
    """The rows to judge, with their labels."""
    from shiftcal.scores import read_labelled, read_labels

    if labels is not None and only:
        return read_labelled(labels, scores)
    if labels is not None:
        return replace(scores, labels=read_labels(labels, scores))
    if only:
        raise InputError("--labelled-only goes with --labels. Name the file that has them.")
    if scores.labels is None:
        raise InputError(f"{path} has no labels. Name a file that has them with --labels.")
    return scores


def compare(
    bank_place: options.BankPlace = None,
    target_place: options.TargetPlace = None,
    target: options.TargetFile = None,
    labels: options.TargetLabels = None,
    surrogate: options.Surrogates = None,
    bank: options.Bank = None,
    source_train: options.SourceTrain = None,
    method: options.Names = None,
    bins: options.Bins = 15,
    binning: options.Binning = "size",
    level: options.Level = 0.95,
    resamples: options.Resamples = 1000,
    seed: options.BootstrapSeed = 0,
    normalize: options.Normalize = False,
) -> Report:
    """Put every method that the given files allow into one table.

    Example:
        shiftcal compare bank/ target.npz

    Args:
        method: Compare this method only. Repeatable.
    """
    judge = Judge.checked(bins, binning, level, resamples, seed)
    asked = {METHODS.get(name).name: name for name in method or []}
    wanted = [name for name in inputs.method_names() if name in asked or not asked]
    wanted += [name for key, name in asked.items() if key not in wanted]
    files = inputs.named(
        bank_place, target_place,
        bank=bank, surrogates=surrogate, target=target, source_train=source_train,
    )  # fmt: skip
    sets, scores, features = inputs.read_inputs(files, normalize=normalize, labels=labels)
    results: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            with progress(f"{name} ..."):
                results.append(_result(name, sets, features, scores, judge))
        except ShiftcalError as error:
            missing[name] = str(error).removeprefix(f"{name} ")
    document = {
        "target": files.target,
        "n": scores.n,
        "labelled": scores.labels is not None,
        "labels": labels,
        "n_sets": len(sets),
        **asdict(judge),
        "methods": results,
        "missing": missing,
    }
    return Report(document, _compare_text(document, judge))


def _result(
    name: str, sets: SurrogateBank, source: Floats | None, target: Scores, judge: Judge
) -> dict[str, Any]:
    """A method fitted, adapted and, with labels, judged."""
    method: Method = METHODS.get(name)(input=sets.input)
    inputs.check_needs(method, source=source, clean=sets.clean.features, target=target.features)
    method.fit(sets, source_features=source)
    probs = method.predict_proba(inputs.adapt_to(method, target))
    assert method.selection_ is not None
    metrics: dict[str, Any] | None = None
    if (labels := target.labels) is not None:
        metrics = {"ece": judge.metric("ece", probs, labels)}
        for one in ("nll", "brier", "accuracy"):
            metrics[one] = {"value": judge.metric(one, probs, labels, interval=False)["value"]}
    return {
        "method": method.name,
        "mean_confidence": probs.max(axis=1).mean(),
        "selection": method.selection_.to_dict(),
        "metrics": metrics,
    }


def _compare_text(document: dict[str, Any], judge: Judge) -> str:
    header = ["method", "set", "T", "confidence"]
    if document["labelled"]:
        interval = f"{100 * judge.level:g}% interval"
        header += ["accuracy", "ECE", interval, "NLL", "Brier"]
    rows, remarks = [], []
    for result in document["methods"]:
        selection, values = result["selection"], result["metrics"]
        index, name = selection["index"], result["method"]
        row = [
            name,
            "-" if index is None else f"{index + 1} of {selection['n_sets']}",
            temperature(selection["temperature"]),
            fraction(result["mean_confidence"]),
        ]
        if values is not None:
            accuracy, ece, nll, brier = (
                fraction(values[key]["value"]) for key in ("accuracy", "ece", "nll", "brier")
            )
            ends = between(values["ece"]["low"], values["ece"]["high"])
            row += [accuracy, ece, ends, nll, brier]
        rows.append(row)
        if index is not None:
            remarks.append(f"{name} chose set {index + 1} ({selection['set_name']})")
        for flag in selection["flags"]:
            remarks.append(f"{name} is flagged, {flag['code']}: {flag['message']}")
    for reason in dict.fromkeys(document["missing"].values()):
        names = [name for name, its in document["missing"].items() if its == reason]
        remarks.append(f"missing: {', '.join(names)} ({reason.rstrip('.')})")
    last = judge.describe(document["n"])
    if not document["labelled"]:
        last = (
            f"{document['target']} has no labels: only what needs none is shown. "
            "Mean confidence, where it can be trusted, estimates accuracy."
        )
    head = f"{document['target']}: {document['n']:,} rows. Confidence is the mean over them."
    return "\n".join([head, "", table(header, rows, right=header[2:]), "", *remarks, last])


_BY_METHOD = "mean-confidence"


def estimate(
    bank_place: options.BankPlace = None,
    target_place: options.TargetPlace = None,
    target: options.TargetFile = None,
    bank: options.Bank = None,
    surrogate: options.Surrogates = None,
    estimator: options.Names = None,
    level: options.Level = 0.95,
    labels: options.TargetLabels = None,
    normalize: options.Normalize = False,
) -> Report:
    """Estimate the accuracy on an unlabelled target, with intervals.

    Example:
        shiftcal estimate bank/ target.npz

    Args:
        estimator: An estimator: atc, doc, rehearsed, surrogate-curve, or mean-confidence:METHOD
            (sac if no method is named). Repeatable; default: all.
    """
    from shiftcal.checks import check_fraction

    check_fraction(level, name="--level")
    names = list(dict.fromkeys(estimator or _all_estimators()))
    for name in names:
        _estimator(name)  # a typo is reported before files are read
    files = inputs.named(bank_place, target_place, bank=bank, surrogates=surrogate, target=target)
    sets, scores, _ = inputs.read_inputs(files, normalize=normalize, labels=labels)
    accuracy = None
    if scores.labels is not None:
        accuracy = float((scores.values.argmax(axis=1) == scores.labels).mean())
    results: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            with progress(f"{name} ..."):
                cls, settings = _estimator(name)
                found = cls(input=sets.input, **settings).fit(sets).estimate(scores, level=level)
        except ShiftcalError as error:
            if estimator:
                raise
            missing[name] = str(error)
            continue
        difference = None if accuracy is None else found.value - accuracy
        results.append({**found.to_dict(), "estimator": name, "error": difference})
    several = files.surrogates
    document = {
        "bank": several[0] if len(several) == 1 else files.bank,
        "surrogates": several,
        "target": files.target,
        "labels": labels or (None if accuracy is None else files.target),
        "n": scores.n,
        "n_sets": len(sets),
        "level": level,
        "accuracy": accuracy,
        "estimates": results,
        "missing": missing,
    }
    return Report(document, "\n".join(_estimate_lines(document)))


def _all_estimators() -> list[str]:
    """Every estimator, and mean confidence by every method that needs outputs alone.

    Rehearsal is not among those: its estimate is "rehearsed".
    """
    own = [name for name in ESTIMATORS.names() if name != _BY_METHOD]
    for name in inputs.method_names():
        cls = METHODS.get(name)
        if name != "rehearsal" and not cls.uses_features and not cls.uses_mixed:
            own.append(f"{_BY_METHOD}:{name}")
    return own


def _estimator(name: str) -> tuple[Any, dict[str, str]]:
    """The class and settings of ``mean-confidence:sac``; others have no method behind a colon."""
    first, _, method = name.partition(":")
    if is_own(name) and ESTIMATORS.canonical(first) not in ESTIMATORS.names():
        return ESTIMATORS.get(name), {}
    cls = ESTIMATORS.get(first)
    if method and cls.name != _BY_METHOD:
        raise InputError(f"{first} takes no method; got {name!r}. Say {first}.")
    if method:
        METHODS.get(method)
    return cls, {"method": method} if method else {}


def _estimate_lines(document: dict[str, Any]) -> Iterator[str]:
    accuracy, results = document["accuracy"], document["estimates"]
    header = ["estimator", "accuracy", f"{100 * document['level']:g}% interval"]
    rows = [[r["estimator"], fraction(r["value"]), between(r["low"], r["high"])] for r in results]
    if accuracy is not None:
        header.append("error")
        rows = [[*row, f"{r['error']:+.4f}"] for row, r in zip(rows, results, strict=True)]
    rows_text = count_of(document["n"], "row")
    yield f"{document['target']}: {rows_text}. Accuracies are fractions, not percent."
    yield f"\n{table(header, rows, right=header[1:])}\n"
    raised: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for flag in result["flags"]:
            raised.setdefault((flag["code"], flag["message"]), []).append(result["estimator"])
    for (code, message), names in raised.items():
        whose = "all" if len(names) == len(results) else ", ".join(names)
        yield f"flagged, {code} ({whose}): {message}"
    for name, reason in document["missing"].items():
        yield f"missing: {name} ({reason.rstrip('.')})"
    if accuracy is not None:
        yield f"true accuracy, by the labels of {document['labels']}: {accuracy:.4f}"
