"""Everything a report states, computed by :func:`make_facts`. All shares are fractions."""

from __future__ import annotations

import base64
import datetime
import io
import math
import platform
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import PurePath
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from shiftcal import methods
from shiftcal.charts import kernel_density
from shiftcal.checks import check_count, check_features, check_fraction
from shiftcal.datasets import as_image_set
from shiftcal.errors import FitWarning, InputError, InputWarning, ShiftcalError, require
from shiftcal.estimates import Rehearsed
from shiftcal.maps import Temperature
from shiftcal.methods import Method
from shiftcal.methods.method import Selection
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.metrics import bin_table, bootstrap, ece
from shiftcal.numerics.samples import DIGITS, exact_intervals
from shiftcal.numerics.softmax import softmax
from shiftcal.report.verdict import (
    FIT_WARNING,
    FlagFacts,
    Verdict,
    explain_flags,
    judge,
    printable_name,
)
from shiftcal.scores import Scores, model_digest
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Flag, Floats, Images, Labels

FORMAT, VERSION = "shiftcal-report", 1
# More bins than these cannot be distinguished in a diagram.
MOST_BINS = 100
# From the least to the most informed; other methods follow by name.
_ORDER = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac", "rehearsal")
_ESTIMATE, _FILES = "the estimate", "the files"
# Probabilities held in memory at once.
_BLOCK = 1 << 20
# Rows drawn for one bootstrap interval, all draws together, and the fewest draws.
_MOST_DRAWN, _FEWEST_DRAWS = 10_000_000, 50
_STRIP = 20
# Classes beyond these, the least predicted ones, are left out.
_MOST_CLASSES = 2000
_CURVES, _POINTS, _CELLS = 7, 101, 2000
# With a median above it, a plain axis would show one spike.
_NEAR_ONE = 0.9
_MOST_EXAMPLES = 12
# Pixels of the longer side of a picture; smaller images are kept as they are.
_SIDE, _SMALL = 144, 64


@dataclass(frozen=True)
class Ranged:
    """A number with its interval; both ends are ``None`` if there is none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Judging:
    """How numbers with labels are measured.

    Attributes:
        n_bins: Bins of equal size, for ECE and the diagrams.
        level: Coverage of all intervals.
        n_resamples: Bootstrap draws behind an interval of ECE; 0 for none.
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
class EstimateFacts:
    """The accuracy estimated without labels."""

    value: float
    low: float
    high: float
    level: float
    estimator: str


@dataclass(frozen=True)
class Bin:
    """A bin of a reliability diagram; an empty one has ``None`` for confidence and accuracy."""

    lower: float
    upper: float
    count: int
    confidence: float | None
    accuracy: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class MethodFacts:
    """What one method does to the target.

    Attributes:
        name: Of the method.
        summary: What it does, in a line.
        choice: Its selection in words.
        temperature: The temperature it applies, if it applies one.
        temperature_low: Lower end of its interval.
        temperature_high: Upper end.
        mean_confidence: On the target, after calibration.
        gap: Mean confidence minus accuracy: measured with labels, else estimated.
        ece: On the target, with labels only.
        n_changed: Rows whose predicted class changes.
        bins: The reliability diagram, on the rows of :class:`Shown`.
        shares: Shares of those rows in twenty bins of equal width.
    """

    name: str
    summary: str
    choice: str
    temperature: float | None
    temperature_low: float | None
    temperature_high: float | None
    mean_confidence: float
    gap: Ranged | None
    ece: Ranged | None
    n_changed: int = 0
    bins: tuple[Bin, ...] = ()
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class Shown:
    """The labelled rows behind the diagrams: the target, or a surrogate set if it has no labels."""

    kind: Literal["target", "surrogate"]
    name: str
    n: int


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
class Choice:
    """What the method chose, and the margin to the runner-up (``None`` if it chose no set)."""

    method: str
    text: str
    distance: str
    margin: float | None
    runner_up: str | None
    details: dict[str, float]


@dataclass(frozen=True)
class DensityFacts:
    """Densities of raw confidence.

    Attributes:
        stretched: Whether they are densities of ``-log10(1 - confidence)``.
        grid: Confidences.
        target: Density of the target on the grid.
        sets: Position of a set and its density; the one shown instead of the target first.
    """

    stretched: bool
    grid: tuple[float, ...]
    target: tuple[float, ...]
    sets: tuple[tuple[int, tuple[float, ...]], ...]


@dataclass(frozen=True)
class ClassFacts:
    """The rows predicted as one class: count, mean confidence before and after, accuracy."""

    index: int
    name: str
    n: int
    share: float
    before: float | None
    after: float | None
    accuracy: Ranged | None


@dataclass(frozen=True)
class Example:
    """A row whose confidence changed much; ``picture`` is a data URI and not part of the JSON."""

    row: int
    id: str
    predicted: str
    label: str | None
    before: float
    after: float
    picture: str = ""


@dataclass(frozen=True, repr=False)
class ReportFacts:
    """Everything a report states; :func:`make_facts` computes it."""

    title: str
    target: TargetFacts
    estimate: EstimateFacts | None
    verdict: Verdict
    method: str
    methods: tuple[MethodFacts, ...]
    missing: dict[str, str]
    shown: Shown
    choice: Choice
    sets: tuple[SetFacts, ...]
    densities: DensityFacts
    classes: tuple[ClassFacts, ...]
    examples: tuple[Example, ...]
    warnings: tuple[FlagFacts, ...]
    judging: Judging
    provenance: Provenance

    def of(self, name: str) -> MethodFacts:
        """The facts of a method."""
        return next(method for method in self.methods if method.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The facts in JSON's types, without pictures; infinite numbers are ``None``."""
        facts: dict[str, Any] = _json_ready(asdict(self))
        for example in facts["examples"]:
            del example["picture"]
        by = f"shiftcal {version('shiftcal')}"
        return {"format": FORMAT, "version": VERSION, "written_by": by, **facts}

    def __repr__(self) -> str:
        return f"<ReportFacts: {self.target.name}, {self.target.n:,} rows: {self.verdict.headline}>"


def _json_ready(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_ready(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Outputs(NamedTuple):
    """Confidence and predicted class ``(n,)`` of every row under an adapted method."""

    confidence: Floats
    predicted: NDArray[np.intp]


def _outputs(method: Method, values: Floats) -> _Outputs:
    n, k = values.shape
    found = _Outputs(np.empty(n), np.empty(n, dtype=np.intp))
    step = max(1, _BLOCK // k)
    for start in range(0, n, step):
        block = slice(start, start + step)
        probs = method.predict_proba(values[block])
        found.confidence[block], found.predicted[block] = probs.max(axis=1), probs.argmax(axis=1)
    return found


def make_facts(
    bank: SurrogateBank,
    target: object,
    *,
    method: str | Method = "rehearsal",
    images: object = None,
    source_features: object = None,
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
        method: The method the report is about, by name or unfitted with its settings.
        images: The images that were scored, for examples: any
            :func:`shiftcal.datasets.as_image_set` opens.
        source_features: ``(m, d)`` of training samples, for methods that weight by features.
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
    check_count(judging.n_resamples, name="n_resamples", least=0)
    check_count(judging.seed, name="seed", least=0)
    if judging.n_resamples == 1:
        raise InputError("n_resamples must be 0 (no intervals) or at least 2; got 1.")
    if not isinstance(bank, SurrogateBank):
        raise InputError(
            f"bank must be a SurrogateBank; got {type(bank).__name__}. See SurrogateBank.load."
        )
    scores = target if isinstance(target, Scores) else Scores(target, input=bank.input)  # type: ignore[arg-type]
    if scores.k != bank.n_classes:
        raise InputError(
            f"target must have the classes of the bank: it has {bank.n_classes}, and the target "
            f"has {scores.k}. Both must come from one model."
        )
    image_of_row = None if images is None else _match_images(images, scores)
    source = None
    if source_features is not None:
        source = check_features(source_features, name="source_features")

    main, fitted, missing, flags = _fit_all(method, bank, scores, source, judging)
    estimate = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the rehearsal has warned
            rehearsal = fitted.get("rehearsal")
            estimator = (
                Rehearsed.of(rehearsal)
                if isinstance(rehearsal, Rehearsal)
                else Rehearsed(seed=judging.seed, input=bank.input).fit(bank)
            )
            found = estimator.estimate(scores, level=judging.level)
        estimate = EstimateFacts(found.value, found.low, found.high, found.level, found.estimator)
        flags[_ESTIMATE] = found.flags
    except ShiftcalError as error:
        missing["the estimated accuracy"] = str(error)
    known_model = model_digest(bank.origin)
    if None not in (known_model, target_model) and known_model != target_model:
        text = "the target was scored by another model, or preprocessed differently, than the bank."
        flags = {_FILES: (Flag("another-model", text),), **flags}
    notes = explain_flags(flags, serious=frozenset({main, _ESTIMATE, _FILES}))

    values = scores.as_kind(bank.input).values
    outputs = {name: _outputs(one, values) for name, one in fitted.items()}
    raw, calibrated = outputs["vanilla"], outputs[main]
    name = printable_name(PurePath(scores.source).name if scores.source else "target")
    accuracy = None
    if scores.labels is not None:
        accuracy = _share(float((raw.predicted == scores.labels).sum()), scores.n, judging.level)
    about = TargetFacts(name, scores.n, scores.k, float(raw.confidence.mean()), accuracy)
    selection = _selection(fitted[main])
    sets = _sets(bank, fitted, selection, about.mean_confidence)
    shown_set = selection.index
    if shown_set is None:
        shown_set = next(j for j, one in enumerate(sets) if one.nearest)
    # Diagrams need labels: those of the target, or of the surrogate set most like it.
    if scores.labels is not None:
        shown, diagrams, labels = Shown("target", name, scores.n), outputs, scores.labels
        draws = max(_FEWEST_DRAWS, _MOST_DRAWN // scores.n)
        judging = replace(judging, n_resamples=min(judging.n_resamples, draws))
    else:
        near = bank[shown_set]
        rows = near.logits if bank.input == "logits" else softmax(near.logits)
        diagrams = {name: _outputs(one, rows) for name, one in fitted.items()}
        shown, labels = Shown("surrogate", printable_name(near.name), len(near)), near.labels
    facts_of = {
        name: _method(
            one, outputs[name], raw, scores.labels, estimate, judging, diagrams[name], labels
        )
        for name, one in fitted.items()
    }
    serious = frozenset(note.code for note in notes if note.serious)
    names = [
        printable_name(one) for one in bank.classes or scores.classes or map(str, range(scores.k))
    ]
    provenance = provenance or Provenance()
    others = sorted((one for one in sets if not one.chosen), key=lambda one: one.distance)
    return ReportFacts(
        title=printable_name(title) or f"Calibration of {about.name}",
        target=about,
        estimate=estimate,
        verdict=judge(about, estimate, facts_of["vanilla"], facts_of[main], selection, serious),
        method=main,
        methods=tuple(facts_of.values()),
        missing={name: printable_name(why, 400) for name, why in missing.items()},
        shown=shown,
        choice=Choice(
            method=selection.method,
            text=facts_of[main].choice,
            distance=selection.distance or "mean",
            margin=selection.margin,
            runner_up=others[0].name if selection.index is not None and others else None,
            details=dict(selection.details),
        ),
        sets=sets,
        densities=_densities(raw.confidence, bank, sets, shown_set),
        classes=_classes(raw, calibrated, names, scores, judging.level),
        examples=_examples(image_of_row, scores, raw, calibrated, names),
        warnings=notes,
        judging=judging,
        provenance=Provenance(
            provenance.date or datetime.datetime.now(datetime.UTC).date().isoformat(),
            _copyable(provenance.command),
            _copyable(provenance.usage),
            known_model or "",
            {_copyable(name): digest for name, digest in provenance.files.items()},
            provenance.versions or _versions(),
        ),
    )


def _fit_all(
    main: str | Method,
    bank: SurrogateBank,
    target: Scores,
    source: Floats | None,
    judging: Judging,
) -> tuple[str, dict[str, Method], dict[str, str], dict[str, tuple[Flag, ...]]]:
    """Name of the main method, all methods adapted to the target, why others are missing, flags.

    An error of the main method is raised; that of another is the reason why it is missing.
    """
    wanted = clone(main).set_params(input=bank.input) if isinstance(main, Method) else None
    main = methods.get(main).name if wanted is None else wanted.name
    order = sorted(methods.names(), key=lambda n: (_ORDER.index(n) if n in _ORDER else 99, n))
    fitted: dict[str, Method] = {}
    missing: dict[str, str] = {}
    flags: dict[str, tuple[Flag, ...]] = {}
    for name in dict.fromkeys([*order, main]):
        method = wanted
        if method is None or name != main:
            cls = methods.get(name)
            options: dict[str, Any] = {"seed": judging.seed, "level": judging.level}
            known = cls._get_param_names()
            method = cls(input=bank.input, **{k: v for k, v in options.items() if k in known})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                method.fit(bank, source_features=source)
                method.adapt(target)
            except ShiftcalError as error:
                if name == main:
                    raise
                missing[name] = str(error)
                continue
        fitted[name] = method
        messages = []
        for message, category in {str(one.message): one.category for one in caught}.items():
            ours = issubclass(category, (FitWarning, InputWarning))
            messages += [message] * ours
            if name == main or not ours:
                warnings.warn(message, category, stacklevel=3)  # in the caller of make_facts
        flags[name] = (*_selection(method).flags, *(Flag(FIT_WARNING, one) for one in messages))
    return main, fitted, missing, flags


def _selection(method: Method) -> Selection:
    assert method.selection_ is not None
    return method.selection_


def _share(hits: float, n: float, level: float) -> Ranged:
    """``hits / n`` with the exact interval of Clopper and Pearson."""
    low, high = exact_intervals(np.array([float(hits)]), np.array([float(n)]), level=level)
    return Ranged(min(max(hits / n, 0.0), 1.0), float(low[0]), float(high[0]))


def _method(
    method: Method,
    outputs: _Outputs,
    raw: _Outputs,
    labels: Labels | None,
    estimate: EstimateFacts | None,
    judging: Judging,
    shown: _Outputs,
    shown_labels: Labels,
) -> MethodFacts:
    """What a method does to the target; the diagram is of the rows that are shown."""
    selection = _selection(method)
    confidence, mean = outputs.confidence, float(outputs.confidence.mean())
    gap, error = None, None
    if labels is not None:
        correct = outputs.predicted == labels
        gap = _gap(confidence - correct, judging.level)
        bins: dict[str, Any] = {"n_bins": judging.n_bins}
        error = Ranged(ece(confidence, correct, **bins))
        if judging.n_resamples and len(correct) > 1:
            draws = {"n_resamples": judging.n_resamples, "seed": judging.seed}
            drawn = bootstrap(ece, confidence, correct, level=judging.level, **draws, **bins)
            error = Ranged(drawn.value, drawn.low, drawn.high)
    elif estimate is not None:
        gap = Ranged(mean - estimate.value, mean - estimate.high, mean - estimate.low)
    interval = selection.temperature_interval
    counts, _ = np.histogram(shown.confidence, bins=_STRIP, range=(0.0, 1.0))
    return MethodFacts(
        name=method.name,
        summary=type(method).summary().replace("``", ""),
        choice=printable_name(str(selection), 400),
        temperature=selection.temperature,
        temperature_low=None if interval is None else interval.low,
        temperature_high=None if interval is None else interval.high,
        mean_confidence=mean,
        gap=gap,
        ece=error,
        n_changed=int(np.count_nonzero(outputs.predicted != raw.predicted)),
        bins=_bins(shown, shown_labels, judging),
        shares=tuple((counts / len(shown.confidence)).tolist()),
    )


def _gap(differences: Floats, level: float) -> Ranged:
    """The mean with its normal interval, within [-1, 1]; no interval for a single row."""
    value, n = float(differences.mean()), len(differences)
    if n < 2:
        return Ranged(value)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return Ranged(value, max(value - half, -1.0), min(value + half, 1.0))


def _bins(outputs: _Outputs, labels: Labels, judging: Judging) -> tuple[Bin, ...]:
    correct = outputs.predicted == labels
    columns = bin_table(outputs.confidence, correct, n_bins=judging.n_bins).to_dict()
    names = ("lower", "upper", "count", "confidence", "accuracy")
    bins = []
    for lower, upper, count, mean, accuracy in zip(*(columns[n] for n in names), strict=True):
        ends = Ranged(0.0) if accuracy is None else _share(accuracy * count, count, judging.level)
        bins.append(Bin(lower, upper, int(count), mean, accuracy, ends.low, ends.high))
    return tuple(bins)


def _sets(
    bank: SurrogateBank, fitted: dict[str, Method], selection: Selection, confidence: float
) -> tuple[SetFacts, ...]:
    temperatures = getattr(fitted.get("rehearsal"), "temperatures_", None)
    if temperatures is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # methods that use them have warned
            temperatures = [Temperature().fit(s.logits, s.labels).temperature_ for s in bank]
    summaries = bank.summaries()
    away = [abs(confidence - summary.mean_confidence) for summary in summaries]
    distances = selection.distances or away
    nearest = int(np.argmin(away))
    return tuple(
        SetFacts(
            printable_name(summary.name),
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


def _densities(
    target: Floats, bank: SurrogateBank, sets: Sequence[SetFacts], shown_set: int
) -> DensityFacts:
    """Densities of the target and of the sets nearest to it."""
    stretched = bool(np.median(target) > _NEAR_ONE)
    grid = np.linspace(0.0, 1.0, _POINTS)
    if stretched:
        grid = 1 - 10 ** -(DIGITS * grid)

    def density(confidence: Floats) -> tuple[float, ...]:
        held = np.minimum(confidence, grid[-1])  # what lies beyond the axis is shown at its end
        values = kernel_density(held, grid, stretched=stretched, cells=_CELLS)
        return tuple(np.round(values, 4).tolist())

    mean = float(target.mean())
    order = sorted(
        range(len(sets)),
        key=lambda j: (j != shown_set, j != 0, abs(sets[j].mean_confidence - mean)),
    )
    curves = tuple((j, density(bank[j].confidence())) for j in order[:_CURVES])
    return DensityFacts(stretched, tuple(np.round(grid, 8).tolist()), density(target), curves)


def _classes(
    raw: _Outputs,
    calibrated: _Outputs,
    names: Sequence[str],
    scores: Scores,
    level: float,
) -> tuple[ClassFacts, ...]:
    """Every class by what the model predicts, the most predicted first."""

    def summed(weights: NDArray[Any] | None) -> NDArray[Any]:
        return np.bincount(raw.predicted, weights=weights, minlength=scores.k)

    counts, before, after = summed(None), summed(raw.confidence), summed(calibrated.confidence)
    hits = None if scores.labels is None else summed(raw.predicted == scores.labels)
    classes = []
    for j in np.argsort(-counts, kind="stable")[:_MOST_CLASSES].tolist():
        n = int(counts[j])
        accuracy = None if hits is None or not n else _share(float(hits[j]), float(n), level)
        means: tuple[float | None, float | None] = (None, None)
        if n:
            means = float(before[j] / n), float(after[j] / n)
        classes.append(ClassFacts(j, names[j], n, n / scores.n, *means, accuracy))
    return tuple(classes)


def _match_images(images: object, target: Scores) -> tuple[Any, NDArray[np.intp]]:
    """The image set, and the image of every row: by ids if every row has its image, else by order.

    Raises:
        InputError: If images and rows cannot be matched.
    """
    require("PIL.Image", extra="images", needed_by="pictures on a report")
    opened = as_image_set(images)
    if target.ids is not None:
        positions = {name: i for i, name in enumerate(opened.ids(range(len(opened))))}
        found = [positions.get(name, -1) for name in target.ids.tolist()]
        if -1 not in found:
            return opened, np.array(found, dtype=np.intp)
    if len(opened) != target.n:
        raise InputError(
            f"images must be those that were scored: the target has {target.n:,} rows, and "
            f"{opened.name} has {len(opened):,} images. Pass the images given to `shiftcal score`."
        )
    return opened, np.arange(target.n)


def _examples(
    image_of_row: tuple[Any, NDArray[np.intp]] | None,
    target: Scores,
    raw: _Outputs,
    calibrated: _Outputs,
    names: Sequence[str],
) -> tuple[Example, ...]:
    """The rows whose confidence changed most, with their images; ties in the order of rows."""
    if image_of_row is None:
        return ()
    images, places = image_of_row
    change = np.abs(calibrated.confidence - raw.confidence)
    examples = []
    for row in np.argsort(-change, kind="stable")[:_MOST_EXAMPLES].tolist():
        place = int(places[row])
        batch = images.read([place])
        if not change[row] or not len(batch.images):  # unchanged, or unreadable today
            continue
        name = images.ids([place])[0] if target.ids is None else str(target.ids[row])
        label = None if target.labels is None else names[int(target.labels[row])]
        words = printable_name(name), names[int(raw.predicted[row])], label
        change_of_row = float(raw.confidence[row]), float(calibrated.confidence[row])
        examples.append(Example(row, *words, *change_of_row, picture(batch.images[0])))
    return tuple(examples)


def picture(image: Images) -> str:
    """An image as a data URI: small ones exact, large ones reduced and compressed."""
    pillow = require("PIL.Image", extra="images", needed_by="pictures on a report")
    opened: Any = pillow.fromarray(np.ascontiguousarray(image))

    def uri(kind: str, **options: Any) -> str:
        content = io.BytesIO()
        opened.save(content, format=kind, **options)
        return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"

    if max(opened.size) <= _SMALL:
        return uri("png", optimize=True)
    opened.thumbnail((_SIDE, _SIDE), pillow.Resampling.LANCZOS)
    return uri("jpeg", quality=85)


def _copyable(text: str) -> str:
    """The text uncut with its line ends, control characters escaped."""
    return "\n".join(printable_name(line, None) for line in text.split("\n"))


def _versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide numbers."""
    packages = ("shiftcal", "numpy", "scipy", "scikit-learn", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
