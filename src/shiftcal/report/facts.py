"""Everything a report states, computed by :func:`make_facts`. All shares are fractions."""

from __future__ import annotations

import copy
import datetime
import json
import math
import platform
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import PurePath
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal import methods
from shiftcal.checks import check_count, check_fraction
from shiftcal.errors import FitWarning, InputError, InputWarning, ShiftcalError
from shiftcal.estimates import AccuracyEstimate, Rehearsed
from shiftcal.methods import Method
from shiftcal.methods.method import Selection
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.metrics import BinTable, bins, bootstrap_checked, ece
from shiftcal.numerics.binning import expected_error
from shiftcal.numerics.samples import exact_intervals
from shiftcal.persistence import clone
from shiftcal.progress import track
from shiftcal.report.verdict import Ranged, Verdict, judge, percent, printable
from shiftcal.scores import Scores, model_digest
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Flag, Floats, Labels, Logits

FORMAT, VERSION = "shiftcal-report", 1
# More bins than these cannot be distinguished in a diagram.
MOST_BINS = 100
# From the least to the most informed; other methods follow by name.
_ORDER = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac", "rehearsal")
# Who raises flags besides methods, and the code of a warning of a fit.
_ESTIMATE, _FILES, _CLASSES, _FIT = "the estimate", "the files", "predicted classes", "fit"
# Those that decide numbers.
_PACKAGES = ("shiftcal", "numpy", "scipy", "scikit-learn")
# Probabilities held in memory at once.
_BLOCK = 1 << 20
# Rows drawn for one bootstrap interval, all draws together, and the fewest draws.
_MOST_DRAWN, _FEWEST_DRAWS = 10_000_000, 50
_STRIP = 20
# Expected accuracy of the operating point, points of its curves, and rows that are listed.
_GOAL, _CURVE, _LISTED = 0.95, 100, 8
# A class is flagged if it is off by this much, or predicted so much more often than before.
_CLASS_GAP, _CLASS_GROWTH, _CLASSES_FLAGGED = 0.1, 0.1, 5
# Classes beyond these, the least predicted ones, are left out.
_MOST_CLASSES = 2000


@dataclass(frozen=True)
class Judging:
    """How numbers with labels are measured.

    Attributes:
        n_bins: Bins of equal size, for ECE and the diagrams.
        level: Coverage of all intervals.
        n_resamples: Bootstrap draws behind an interval of ECE; 0 for none, and none with fewer
            than ``2 / (1 - level) - 1``, which is 39 at 0.95.
        seed: Of the bootstrap, and of methods that draw.
    """

    n_bins: int = 15
    level: float = 0.95
    n_resamples: int = 400
    seed: int = 0


@dataclass(frozen=True)
class Provenance:
    """How to write the report again.

    Attributes:
        date: Default: today.
        command: The command line that wrote it.
        usage: Commands that calibrate with the method.
        model: Digest of the model and its preprocessing, from the bank; empty if unknown.
        files: File to SHA-256.
        versions: Package to version; default: those installed.
    """

    date: str = ""
    command: str = ""
    usage: str = ""
    model: str = ""
    files: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TargetFacts:
    """The target: its name, size, mean raw confidence, and accuracy if it has labels."""

    name: str
    n: int
    n_classes: int
    mean_confidence: float
    accuracy: Ranged | None


@dataclass(frozen=True)
class MethodFacts:
    """What one method does to the target.

    Attributes:
        name: Of the method.
        summary: What it does, in a line.
        choice: Its selection in words.
        selection: Its selection.
        mean_confidence: On the target, after calibration.
        gap: Mean confidence minus accuracy: measured with labels, else estimated.
        ece: On the target, with labels only.
        n_changed: Rows whose predicted class changes.
        bins: Columns of the reliability diagram, on the rows that are shown: those of
            :meth:`shiftcal.metrics.BinTable.to_dict`, and both ends of the accuracies.
        shares: Shares of those rows in twenty bins of equal width.
    """

    name: str
    summary: str
    choice: str
    selection: Selection
    mean_confidence: float
    gap: Ranged
    ece: Ranged | None
    n_changed: int = 0
    bins: dict[str, list[Any]] = field(default_factory=dict)
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class SetFacts:
    """A set of the bank.

    Attributes:
        name: Of the set.
        n: Rows.
        mean_confidence: Raw.
        accuracy: By its labels.
        temperature: The one that fits it best.
        distance: To the target: the method's own, or in mean confidence.
        chosen: Whether the method uses its map.
        nearest: Whether it is the nearest in mean confidence.
    """

    name: str
    n: int
    mean_confidence: float
    accuracy: float
    temperature: float
    distance: float
    chosen: bool
    nearest: bool


@dataclass(frozen=True)
class ClassFacts:
    """The rows predicted as one class, after calibration if it is recommended, else before.

    Attributes:
        index: Of the class.
        name: Of the class.
        n: Rows.
        share: Of all rows.
        before: Mean raw confidence.
        after: Mean confidence after calibration.
        accuracy: With labels only.
        gap: Mean confidence minus accuracy, with labels only: after calibration if it is
            recommended, else before.
        clean_share: Share of the calibration rows that are predicted as this class.
    """

    index: int
    name: str
    n: int
    share: float
    before: float | None
    after: float | None
    accuracy: Ranged | None
    gap: Ranged | None = None
    clean_share: float = 0.0


@dataclass(frozen=True)
class RowFacts:
    """A row of the target: its name, predicted and true class, confidence before and after."""

    name: str
    predicted: str
    label: str | None
    before: float
    after: float


@dataclass(frozen=True)
class KeptFacts:
    """What accuracy is to be expected if only the most confident rows are kept.

    Attributes:
        goal: The expected accuracy behind the operating point.
        by: The method whose confidences decide: the main one if it is recommended, else vanilla.
        threshold: Least confidence of the rows to keep; ``None`` if none can be kept, or no
            confidence can be trusted.
        share: Of rows that are kept.
        accuracy: Of those, with labels only.
        raw_share: Share that would be kept if raw confidences were believed.
        raw_accuracy: Of those, with labels only.
        shares: The x axis of the curves.
        expected: Mean confidence of the rows kept.
        raw: The same for raw confidences.
        measured: Accuracy of the rows kept, with labels only.
    """

    goal: float
    by: str
    threshold: float | None
    share: float
    accuracy: Ranged | None
    raw_share: float | None
    raw_accuracy: float | None
    shares: tuple[float, ...]
    expected: tuple[float, ...]
    raw: tuple[float, ...]
    measured: tuple[float, ...] | None


@dataclass(frozen=True)
class FlagFacts:
    """A flag: its code, who raised it, the messages, and whether it concerns the conclusion."""

    code: str
    by: tuple[str, ...]
    messages: tuple[str, ...]
    serious: bool


@dataclass(frozen=True, repr=False)
class ReportFacts:
    """Everything a report states; :func:`make_facts` computes it.

    ``shown`` names the labelled rows behind the diagrams: the target, or the surrogate set that
    resembles it most if it has no labels. ``rows`` are the most confident mistakes, or without
    labels the rows whose confidence changes most.
    """

    title: str
    target: TargetFacts
    estimate: Ranged
    verdict: Verdict
    method: str
    methods: tuple[MethodFacts, ...]
    missing: dict[str, str]
    shown: str
    sets: tuple[SetFacts, ...]
    kept: KeptFacts
    classes: tuple[ClassFacts, ...]
    rows: tuple[RowFacts, ...]
    warnings: tuple[FlagFacts, ...]
    judging: Judging
    provenance: Provenance

    def of(self, name: str) -> MethodFacts:
        """The facts of a method."""
        return next(method for method in self.methods if method.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The facts in JSON's types; infinite numbers are ``None``."""
        by = f"shiftcal {version('shiftcal')}"
        facts = json.loads(json.dumps(asdict(self)), parse_constant=lambda _: None)
        return {"format": FORMAT, "version": VERSION, "written_by": by, **facts}

    def __repr__(self) -> str:
        return f"<ReportFacts: {self.target.name}, {self.target.n:,} rows: {self.verdict.headline}>"


class _Outputs(NamedTuple):
    """Confidence and predicted class ``(n,)`` of every row under an adapted method."""

    confidence: Floats
    predicted: NDArray[np.intp]


def _outputs(method: Method, logits: Logits) -> _Outputs:
    n, k = logits.shape
    found = _Outputs(np.empty(n), np.empty(n, dtype=np.intp))
    step = max(1, _BLOCK // k)
    for start in range(0, n, step):
        block = slice(start, start + step)
        probs = method._apply(logits[block])
        found.confidence[block], found.predicted[block] = probs.max(axis=1), probs.argmax(axis=1)
    return found


def make_facts(
    bank: SurrogateBank,
    target: object,
    *,
    method: str | Method = "rehearsal",
    source_features: Floats | None = None,
    target_model: str | None = None,
    title: str = "",
    judging: Judging | None = None,
    provenance: Provenance | None = None,
) -> ReportFacts:
    """Everything a report states: all methods on one target, what they choose and how good it is.

    Labels of the target are used to measure; no method and no estimate sees them.

    Args:
        bank: The surrogate bank.
        target: :class:`Scores`, or logits ``(n, k)`` (probabilities if the bank has those).
        method: The method the report is about: by name, unfitted with its settings, or fitted on
            this bank.
        source_features: ``(m, d)`` of training samples, checked, for methods that need them.
        target_model: Digest of the model that scored the target, if known.
        title: Of the report.
        judging: Bins, level, draws and seed.
        provenance: How to write the report again; date and versions are filled in.

    Raises:
        InputError: If an input cannot be used, or the method cannot be fitted.
    """
    judging = judging or Judging()
    check_count(judging.n_bins, name="n_bins", most=MOST_BINS)
    check_fraction(judging.level, name="level")
    check_count(judging.n_resamples, name="n_resamples", least=2 if judging.n_resamples else 0)
    check_count(judging.seed, name="seed", least=0)
    if not isinstance(bank, SurrogateBank):
        raise InputError(f"bank must be a SurrogateBank; got {type(bank).__name__}.")
    scores = target if isinstance(target, Scores) else Scores(target, input=bank.input)  # type: ignore[arg-type]
    scores = scores.as_kind(bank.input)
    wanted = _method(method, bank, judging) if isinstance(method, str) else copy.copy(method)
    if not hasattr(wanted, "n_classes_"):
        wanted = clone(wanted).set_params(input=bank.input)
    main = wanted.name
    fitted, missing, flags = _fit_all(wanted, bank, scores, source_features, judging)
    rehearsal = fitted["rehearsal"]
    assert isinstance(rehearsal, Rehearsal)
    estimated = Rehearsed.of(rehearsal).estimate(scores, level=judging.level)
    estimate = Ranged(estimated.value, estimated.low, estimated.high)
    flags[_ESTIMATE] = estimated.flags
    known_model = model_digest(bank.origin)
    if None not in (known_model, target_model) and known_model != target_model:
        text = (
            "the target was scored by another model, or preprocessed differently, than the bank. "
            "Score it with shiftcal score --bank."
        )
        flags = {_FILES: (Flag("another-model", text),), **flags}
    outputs = {name: _outputs(one, scores.logits()) for name, one in fitted.items()}
    raw, calibrated = outputs["vanilla"], outputs[main]
    name = printable(PurePath(scores.source).name if scores.source else "target")
    accuracy = None
    if scores.labels is not None:
        accuracy = _share(float((raw.predicted == scores.labels).sum()), scores.n, judging.level)
    about = TargetFacts(name, scores.n, scores.k, float(raw.confidence.mean()), accuracy)
    selection = _selection(fitted[main])
    sets = _sets(bank, rehearsal.temperatures_, selection, about.mean_confidence)
    shown_set = selection.index
    if shown_set is None:
        shown_set = next(j for j, one in enumerate(sets) if one.nearest)
    # Diagrams need labels: those of the target, or of the surrogate set most like it.
    if scores.labels is not None:
        shown, diagrams, labels = name, outputs, scores.labels
        draws = max(_FEWEST_DRAWS, _MOST_DRAWN // scores.n)
        judging = replace(judging, n_resamples=min(judging.n_resamples, draws))
    else:
        near = bank[shown_set]
        diagrams = {name: _outputs(one, near.logits) for name, one in fitted.items()}
        shown, labels = printable(near.name), near.labels
    facts_of = {}
    for name, one in fitted.items():
        counts, _ = np.histogram(diagrams[name].confidence, bins=_STRIP, range=(0.0, 1.0))
        facts_of[name] = MethodFacts(
            name=name,
            summary=type(one).summary().replace("``", ""),
            choice=printable(str(_selection(one)), 400),
            selection=_selection(one),
            mean_confidence=float(outputs[name].confidence.mean()),
            gap=_gap(outputs[name], scores.labels, estimated),
            ece=None if scores.labels is None else _ece(outputs[name], scores.labels, judging),
            n_changed=int(np.count_nonzero(outputs[name].predicted != raw.predicted)),
            bins=_bins(diagrams[name], labels, judging),
            shares=tuple((counts / len(labels)).tolist()),
        )
    names = [printable(one) for one in bank.classes or scores.classes or map(str, range(scores.k))]
    codes = {flag.code for by in (main, _ESTIMATE, _FILES) for flag in flags.get(by, ())}
    verdict = judge(about, estimate, facts_of["vanilla"], facts_of[main], frozenset(codes))
    used = calibrated if verdict.use else raw
    classes = _classes(raw, calibrated, used, names, scores, bank, judging.level)
    flags[_CLASSES] = tuple(_class_flags(classes, judging.level))
    notes = _flags(flags, serious={main, _ESTIMATE, _FILES, _CLASSES})
    provenance = provenance or Provenance()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    versions = {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
    return ReportFacts(
        title=printable(title) or f"Calibration of {about.name}",
        target=about,
        estimate=estimate,
        verdict=verdict,
        method=main,
        methods=tuple(facts_of.values()),
        missing={name: printable(why, 400) for name, why in missing.items()},
        shown=shown,
        sets=sets,
        kept=_kept(raw, used, scores.labels, main, verdict, judging.level),
        classes=classes[:_MOST_CLASSES],
        rows=_rows(raw, calibrated, names, scores),
        warnings=notes,
        judging=judging,
        provenance=Provenance(
            date=provenance.date or today,
            command=printable(provenance.command, 10_000),
            usage=printable(provenance.usage, 10_000),
            model=known_model or "",
            files={printable(name, 10_000): digest for name, digest in provenance.files.items()},
            versions=provenance.versions or versions,
        ),
    )


def _method(name: str, bank: SurrogateBank, judging: Judging) -> Method:
    """An unfitted method with the seed and the level of the report, where it has such settings."""
    cls = methods.get(name)
    options: dict[str, Any] = {"seed": judging.seed, "level": judging.level, "input": bank.input}
    return cls(**{key: options[key] for key in options if key in cls().get_params(deep=False)})


def _fit_all(
    main: Method, bank: SurrogateBank, target: Scores, source: Floats | None, judging: Judging
) -> tuple[dict[str, Method], dict[str, str], dict[str, tuple[Flag, ...]]]:
    """All methods adapted to the target, why others are missing, and their flags and warnings.

    An error of the main method and of Rehearsal, which the estimate needs, is raised; that of
    another is the reason why it is missing.
    """
    fitted: dict[str, Method] = {}
    missing: dict[str, str] = {}
    flags: dict[str, tuple[Flag, ...]] = {}
    order = sorted(methods.names(), key=lambda n: (_ORDER.index(n) if n in _ORDER else 99, n))
    for name in track(dict.fromkeys([*order, main.name]), "methods"):
        method = main if name == main.name else _method(name, bank, judging)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if not hasattr(method, "n_classes_"):
                    method._fit_checked(bank, source)
                selection = method.adapt(target)
            except ShiftcalError as error:
                if name in (main.name, "rehearsal"):
                    raise
                missing[name] = str(error)
                continue
        fitted[name] = method
        ours = [one for one in caught if issubclass(one.category, (FitWarning, InputWarning))]
        texts = dict.fromkeys(str(one.message) for one in ours)
        flags[name] = (*selection.flags, *(Flag(_FIT, text) for text in texts))
    return fitted, missing, flags


def _selection(method: Method) -> Selection:
    assert method.selection_ is not None
    return method.selection_


def _flags(raised: Mapping[str, Sequence[Flag]], *, serious: set[str]) -> tuple[FlagFacts, ...]:
    """Every flag once, with all who raised it and their messages; the serious ones first.

    Args:
        raised: Who raised what.
        serious: Those whose flags concern the conclusion. Of a serious flag only their messages
            are kept.
    """
    messages: dict[str, list[tuple[str, str]]] = {}
    for who, flags in raised.items():
        for flag in flags:
            messages.setdefault(flag.code, []).append((who, printable(flag.message, 1000)))
    explained = []
    for code, pairs in messages.items():
        concerned = [pair for pair in pairs if pair[0] in serious]
        by, texts = (
            tuple(dict.fromkeys(words)) for words in zip(*(concerned or pairs), strict=True)
        )
        explained.append(
            FlagFacts(code, by, texts[:20], serious=bool(concerned) and code != "like-clean")
        )
    return tuple(sorted(explained, key=lambda flag: not flag.serious))


def _share(hits: float, n: float, level: float) -> Ranged:
    """``hits / n`` with the exact interval of Clopper and Pearson."""
    low, high = exact_intervals(np.array([float(hits)]), np.array([float(n)]), level=level)
    return Ranged(min(max(hits / n, 0.0), 1.0), float(low[0]), float(high[0]))


def _gap(outputs: _Outputs, labels: Labels | None, estimate: AccuracyEstimate) -> Ranged:
    """Mean confidence minus accuracy: by the labels with a normal interval, else estimated."""
    if labels is None:
        mean = float(outputs.confidence.mean())
        return Ranged(mean - estimate.value, mean - estimate.high, mean - estimate.low)
    differences = outputs.confidence - (outputs.predicted == labels)
    value, n = float(differences.mean()), len(differences)
    if n < 2:
        return Ranged(value)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    half = NormalDist().inv_cdf((1 + estimate.level) / 2) * error
    return Ranged(value, max(value - half, -1.0), min(value + half, 1.0))


def _ece(outputs: _Outputs, labels: Labels, judging: Judging) -> Ranged:
    """ECE with its bootstrap interval, if one is wanted and there are draws enough for one.

    Below ``2 / (1 - level) - 1`` draws no lower end is ever above 0: it would say nothing.
    """
    confidence, correct = outputs.confidence, outputs.predicted == labels
    if (judging.n_resamples + 1) * (1 - judging.level) < 2 - 1e-9 or len(labels) < 2:
        return Ranged(expected_error(bins(confidence, correct, judging.n_bins, "size")))
    drawn = bootstrap_checked(ece, confidence, correct, **asdict(judging))
    return Ranged(drawn.value, drawn.low, drawn.high)


def _bins(outputs: _Outputs, labels: Labels, judging: Judging) -> dict[str, list[Any]]:
    sums = bins(outputs.confidence, outputs.predicted == labels, judging.n_bins, "size")
    columns: dict[str, list[Any]] = BinTable.from_sums(sums).to_dict()
    ends = [
        _share(accuracy * n, n, judging.level) if n else Ranged(math.nan)
        for accuracy, n in zip(columns["accuracy"], columns["count"], strict=True)
    ]
    return {**columns, "low": [one.low for one in ends], "high": [one.high for one in ends]}


def _sets(
    bank: SurrogateBank, temperatures: Any, selection: Selection, confidence: float
) -> tuple[SetFacts, ...]:
    summaries = bank.summaries()
    away = [abs(confidence - summary.mean_confidence) for summary in summaries]
    distances = selection.distances or away
    nearest = int(np.argmin(away))
    return tuple(
        SetFacts(
            printable(summary.name),
            summary.n,
            summary.mean_confidence,
            summary.accuracy,
            float(temperatures[j]),
            float(distances[j]),
            chosen=selection.index == j,
            nearest=nearest == j,
        )
        for j, summary in enumerate(summaries)
    )


def _classes(
    raw: _Outputs,
    calibrated: _Outputs,
    used: _Outputs,
    names: Sequence[str],
    scores: Scores,
    bank: SurrogateBank,
    level: float,
) -> tuple[ClassFacts, ...]:
    """Every class by what is predicted, the most predicted first; ``used`` is one of the two."""
    correct = None if scores.labels is None else used.predicted == scores.labels
    counts, before, after, means, hits = (
        np.bincount(used.predicted, weights=weights, minlength=scores.k).tolist()
        for weights in (None, raw.confidence, calibrated.confidence, used.confidence, correct)
    )
    clean = np.bincount(bank.clean.logits.argmax(axis=1), minlength=scores.k) / len(bank.clean)
    classes = []
    for j in np.argsort(-np.array(counts), kind="stable").tolist():
        n, accuracy, gap = counts[j], None, None
        if n and correct is not None:
            accuracy = _share(hits[j], n, level)
            assert accuracy.low is not None
            assert accuracy.high is not None
            mean = means[j] / n
            gap = Ranged(mean - accuracy.value, mean - accuracy.high, mean - accuracy.low)
        first, then = (total[j] / n if n else None for total in (before, after))
        classes.append(
            ClassFacts(j, names[j], n, n / scores.n, first, then, accuracy, gap, float(clean[j]))
        )
    return tuple(classes)


def _class_flags(classes: Sequence[ClassFacts], level: float) -> Iterator[Flag]:
    """With labels, classes whose confidence is far off; without, those predicted too often."""
    off = []
    for one in classes:
        if one.accuracy is not None and one.gap is not None and abs(one.gap.value) > _CLASS_GAP:
            # At the level of all classes together: one of many is off by chance.
            strict = _share(one.accuracy.value * one.n, one.n, 1 - (1 - level) / len(classes))
            mean = one.accuracy.value + one.gap.value
            assert strict.low is not None
            assert strict.high is not None
            if not strict.low <= mean <= strict.high:
                text = (
                    f"class {one.name!r}: {percent(one.share, 0)} of the rows, confidence "
                    f"{percent(mean, 0)}, correct {percent(one.accuracy.value, 0)}."
                )
                off.append((one.n * abs(one.gap.value), text))
        grown = one.share > max(2 * one.clean_share, one.clean_share + _CLASS_GROWTH)
        if one.accuracy is None and grown:
            yield Flag(
                "class-share",
                f"class {one.name!r} is predicted for {percent(one.share, 0)} of the rows, and for "
                f"{percent(one.clean_share, 0)} of the calibration set. Either the target has more "
                "of it, or the model mistakes others for it: look at some of these rows.",
            )
    for _, text in sorted(off, reverse=True)[:_CLASSES_FLAGGED]:
        yield Flag("class-gap", text)


def _rows(
    raw: _Outputs, calibrated: _Outputs, names: Sequence[str], scores: Scores
) -> tuple[RowFacts, ...]:
    """The most confident mistakes; without labels, the rows whose confidence changes most."""
    if scores.labels is not None:
        rank = np.where(calibrated.predicted != scores.labels, calibrated.confidence, -1.0)
    else:
        rank = np.abs(calibrated.confidence - raw.confidence)
    first = [i for i in np.argsort(-rank, kind="stable")[:_LISTED].tolist() if rank[i] > 0]
    return tuple(
        RowFacts(
            f"row {i + 1:,}" if scores.ids is None else printable(str(scores.ids[i])),
            names[calibrated.predicted[i]],
            None if scores.labels is None else names[scores.labels[i]],
            float(raw.confidence[i]),
            float(calibrated.confidence[i]),
        )
        for i in first
    )


def _kept(
    raw: _Outputs, used: _Outputs, labels: Labels | None, main: str, verdict: Verdict, level: float
) -> KeptFacts:
    """The rows in order of the confidences that are ``used``: the method's, or raw ones."""
    order = np.argsort(-used.confidence, kind="stable")
    ranked, n = used.confidence[order], len(order)
    expected = np.cumsum(ranked) / np.arange(1, n + 1)
    raw_ranked = np.sort(raw.confidence)[::-1]
    raw_expected = np.cumsum(raw_ranked) / np.arange(1, n + 1)
    at = np.unique(np.ceil(np.linspace(0, n, _CURVE + 1)[1:]).astype(int)) - 1
    measured = None
    if labels is not None:
        correct = np.cumsum((used.predicted == labels)[order])
        measured = tuple((correct[at] / (at + 1)).tolist())
    threshold, share, accuracy = _operating_point(used, labels, level)
    _, raw_share, raw_accuracy = _operating_point(raw, labels, level)
    if verdict.unsupported and labels is None:
        threshold, share = None, 0.0
    return KeptFacts(
        goal=_GOAL,
        by=main if verdict.use else "vanilla",
        threshold=threshold,
        share=share,
        accuracy=accuracy,
        raw_share=raw_share or None,
        raw_accuracy=None if raw_accuracy is None else raw_accuracy.value,
        shares=tuple(((at + 1) / n).tolist()),
        expected=tuple(expected[at].tolist()),
        raw=tuple(raw_expected[at].tolist()),
        measured=measured,
    )


def _operating_point(
    outputs: _Outputs, labels: Labels | None, level: float
) -> tuple[float | None, float, Ranged | None]:
    """Threshold, share and accuracy of the most rows that can be kept; ties stay together."""
    values, counts = np.unique(outputs.confidence, return_counts=True)
    values, counts = values[::-1], counts[::-1]
    expected = np.cumsum(values * counts) / np.cumsum(counts)
    enough = int(np.count_nonzero(expected >= _GOAL))
    if not enough:
        return None, 0.0, None
    threshold = float(values[enough - 1])
    kept = outputs.confidence >= threshold
    accuracy = None
    if labels is not None:
        hits = float((outputs.predicted == labels)[kept].sum())
        accuracy = _share(hits, float(kept.sum()), level)
    return threshold, float(kept.mean()), accuracy
