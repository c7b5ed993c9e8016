"""Records of evaluations, and the tables and figures that are made of them."""

from __future__ import annotations

import csv
import io
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np

from shiftcal.errors import FileError
from shiftcal.metrics import facts_of
from shiftcal.numerics.samples import mean_interval
from shiftcal.registry import METRICS
from shiftcal.report.figures import Boxes, BoxSeries, FigureData, Lines, Panel, Series
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.studies.plan import Ladder, Plan, Strict, Variant, targets_of, validated

if TYPE_CHECKING:
    from shiftcal.studies.sources import Archive

Span: TypeAlias = tuple[int, ...]
R = TypeVar("R", bound=Hashable)
C = TypeVar("C", bound=Hashable)

SEVERITY = "Severity of the shift"
ECE = "ECE (%)"
OVER_SPLITS = (
    "Intervals: 95 %, over the splits into calibration and test images; splits share images, so "
    "that they are somewhat narrow."
)
RANGES = (
    "An ECE with [least, most] has the range over the splits instead, where the method chose "
    "different surrogate sets in different splits or an interval would reach below 0."
)
BOXES = (
    "A value is the ECE under one corruption, its mean over the splits; severity 0 has one, the "
    "clean test images."
)


@dataclass(frozen=True)
class Record:
    """A row of ``records.csv``; fractions, not percent.

    Attributes:
        panel: As in the variant.
        setting: As in the variant.
        variant: Its key.
        label: Its label.
        method: Its method.
        calibration: Corruption of the surrogate sets.
        n_sets: How many sets it learned from.
        n_calibration: Images in each.
        split: Seed of the split.
        draw: Which draw of the method's own, from 0.
        target: Name of the scored set.
        corruption: What shifted it.
        severity: How strongly; ``None`` for a natural shift.
        n: Test images.
        ece: Top-1, bins of equal size, of the calibrated confidences.
        debiased_ece: Root mean square error over the same bins, with their noise subtracted; as
            :func:`shiftcal.metrics.debiased_ece`, not an ECE without its bias.
        nll: Mean negative log-likelihood.
        brier: Mean squared error over all classes.
        accuracy: Of the calibrated predictions.
        confidence: Mean calibrated confidence.
        raw_confidence: Mean confidence as the model gave it.
        temperature: What was divided by, if the method has one temperature.
        chosen: Surrogate set that was chosen, if the method chooses.
        flags: Codes of the flags raised, separated by spaces.
        arrays: File of the target's logits, from the folder of the run.
        key: Digest of everything that decides this row.
    """

    panel: str
    setting: str
    variant: str
    label: str
    method: str
    calibration: str
    n_sets: int
    n_calibration: int
    split: int
    draw: int
    target: str
    corruption: str
    severity: int | None
    n: int
    ece: float
    debiased_ece: float
    nll: float
    brier: float
    accuracy: float
    confidence: float
    raw_confidence: float
    temperature: float | None
    chosen: str
    flags: str
    arrays: str
    key: str


def to_csv(kind: Any, rows: Iterable[Any], *more: str) -> str:
    """A table of dataclasses with all digits.

    Args:
        kind: The dataclass, whose fields are the columns.
        rows: Its instances, or dictionaries of columns; others are empty.
        more: Further columns.
    """
    columns = [*(field.name for field in fields(kind)), *more]
    return _csv(columns, (row if isinstance(row, dict) else asdict(row) for row in rows))


def _csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_records(file: Path) -> list[Record]:
    """Read ``records.csv`` back, to the last digit.

    Raises:
        FileError: If it is missing or damaged.
    """
    kinds = {field.name: str(field.type) for field in fields(Record)}
    try:
        text = file.read_bytes().decode()
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        if header != list(kinds) or text[-1] != "\n":
            raise ValueError(f"its last row is cut off, or its columns are {', '.join(header)}")
        return [
            Record(*(_value(*pair) for pair in zip(kinds.values(), row, strict=True)))
            for row in rows
        ]
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    except (ValueError, csv.Error) as error:
        raise FileError(f"{file} is damaged: {error}. Run the study again.") from error


def _value(kind: str, text: str) -> Any:
    if kind.endswith("None") and not text:
        return None
    return {"str": str, "int": int, "float": float}[kind.partition(" ")[0]](text)


def select(records: Iterable[Record], **wanted: object) -> list[Record]:
    """Records whose fields have these values; a tuple or list stands for any of its items."""
    allowed = {
        name: value if isinstance(value, (tuple, list)) else (value,)
        for name, value in wanted.items()
    }
    return [
        record
        for record in records
        if all(getattr(record, name) in values for name, values in allowed.items())
    ]


def labels_of(records: Iterable[Record]) -> dict[str, str]:
    """Labels of the variants by key, in the order of the plan."""
    return {record.variant: record.label for record in records}


def severities_of(records: Iterable[Record]) -> tuple[int, ...]:
    """Every severity there is a record of, rising."""
    return tuple(sorted({r.severity for r in records if r.severity is not None}))


# --------------------------------------------------------------------------------------
# Means over splits
# --------------------------------------------------------------------------------------


class Mean(NamedTuple):
    """A mean over splits.

    Attributes:
        value: The mean of the means of the splits.
        low: Lower end of its interval; ``None`` with one split.
        high: Upper end.
        splits: The mean of every split.
    """

    value: float
    low: float | None
    high: float | None
    splits: tuple[float, ...]


def mean_over_splits(
    numbers: Iterable[tuple[int, float]], *, least: float = -math.inf, most: float = math.inf
) -> Mean | None:
    """The mean of numbers that each have a split: within every split first, then over the splits.

    The interval is Student's at 95 %, over the splits. It tells how much the choice of calibration
    and test images matters, not how another network or another data set would do: all splits are
    of the same images.

    Args:
        numbers: Split and number; none of them has no mean.
        least: The least number possible, and so the lowest end of an interval.
        most: The largest number possible.
    """
    by_split: dict[int, list[float]] = {}
    for split, number in numbers:
        by_split.setdefault(split, []).append(number)
    if not by_split:
        return None
    splits = tuple(float(np.mean(values)) for values in by_split.values())
    value, low, high = mean_interval(splits)
    if low is not None and high is not None:
        low, high = max(least, low), max(value, min(most, high))
    return Mean(value, low, high, splits)


def mean_of(records: Iterable[Record], field: str = "ece") -> Mean | None:
    """The mean of a field that is a fraction."""
    return mean_over_splits(((r.split, getattr(r, field)) for r in records), least=0.0, most=1.0)


def _pairs(records: Iterable[Record], others: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Records with the one of ``others`` on the same split and target; without one, left out."""
    partners = {(other.split, other.target): other for other in others}
    found = ((record, partners.get((record.split, record.target))) for record in records)
    return [(record, other) for record, other in found if other is not None]


def difference(records: Iterable[Record], others: Iterable[Record]) -> Mean | None:
    """How much more ECE records have than others on the same split and target."""
    return mean_over_splits((r.split, r.ece - other.ece) for r, other in _pairs(records, others))


def same_set(records: Iterable[Record], others: Iterable[Record]) -> Mean | None:
    """The share of records that chose the same surrogate set as others did."""
    pairs = _pairs(records, others)
    shares = ((r.split, float(r.chosen == other.chosen)) for r, other in pairs)
    return mean_over_splits(shares, least=0.0, most=1.0)


# --------------------------------------------------------------------------------------
# Any table and any figure
# --------------------------------------------------------------------------------------


def table(
    title: str,
    rows: Mapping[R, str],
    columns: Mapping[C, Column],
    cell: Callable[[R, C], Cell],
    *,
    corner: str = "Method",
    note: str = OVER_SPLITS,
) -> Table:
    """A cell for every row and column.

    The best of a column is marked where a column says what is better and two rows are ranked; the
    oracle never is: it has seen the labels.

    Args:
        title: Above it.
        rows: Labels by key.
        columns: By key.
        cell: From the keys of row and column.
        corner: What the rows are.
        note: Below it.
    """
    made = tuple(
        Row(label, tuple(cell(key, column) for column in columns), ranked=key != "oracle")
        for key, label in rows.items()
    )
    found = Table(title, tuple(columns.values()), made, note=note, corner=corner)
    return found.marked() if sum(row.ranked for row in made) > 1 else found


def panel(
    rows: Mapping[R, str], x: Mapping[C, Any], cell: Callable[[R, C], Cell], **words: Any
) -> Panel:
    """The rows of a table as lines over places on the x-axis; ``words`` as for ``Panel``.

    A line has intervals if any of its cells has one.
    """
    drawn = []
    for key, label in rows.items():
        cells = [cell(key, column) for column in x]
        ends = {name: tuple(getattr(each, name) for each in cells) for name in ("low", "high")}
        ends = ends if any(low is not None for low in ends["low"]) else {}
        y = tuple(each.number for each in cells)
        drawn.append(Series(key=str(key), label=label, y=y, **ends))
    return Panel(x=tuple(x.values()), series=tuple(drawn), **words)


def lines(title: str, *panels: Panel, **words: Any) -> Lines:
    """A figure of panels; ``words`` as for ``Lines``."""
    words = {"y_label": f"mean {ECE}", "note": OVER_SPLITS, **words}
    return Lines(panels=panels, title=title, **words)


def percents(names: Mapping[C, str], **words: Any) -> dict[C, Column]:
    """Columns of percentages; ``words`` as for ``Column``."""
    return {key: Column(name, **{"unit": "%", **words}) for key, name in names.items()}


# --------------------------------------------------------------------------------------
# Cells
# --------------------------------------------------------------------------------------


def percent(mean: Mean | None) -> Cell:
    """A mean over splits of a fraction, in percent."""
    return Cell(*(None if end is None else 100 * end for end in mean[:3]) if mean else (None,))


def mean_cell(records: Sequence[Record], field: str = "ece") -> Cell:
    """The mean of some records of one variant, in percent."""
    return percent(mean_of(records, field))


def ece(records: Sequence[Record], **wanted: object) -> Cell:
    """The mean ECE of those records that :func:`select` gives, in percent."""
    return mean_cell(select(records, **wanted))


def temperature_cell(records: Sequence[Record]) -> Cell:
    """The geometric mean of temperatures: a temperature is a ratio, and one may be extreme."""
    mean = mean_over_splits((r.split, math.log(r.temperature)) for r in records if r.temperature)
    return Cell(*(None if end is None else math.exp(end) for end in mean[:3]) if mean else (None,))


def target_cell(records: Sequence[Record]) -> Cell:
    """ECE of one variant on one target, in percent.

    Student's interval is for splits that scatter around their mean. A method that chose one
    surrogate set in some splits and another in others has two clusters, and no error lies below 0:
    both get the least and the most of the splits instead. The CSV says so under ``source``.
    """
    mean = mean_of(records)
    one_choice = len({record.chosen for record in records}) == 1
    if mean is None or mean.low is None or (mean.low > 0 and one_choice):
        return percent(mean)
    ends = (100 * min(mean.splits), 100 * max(mean.splits))
    return Cell(100 * mean.value, *ends, by_ends=True, source="least and most of the splits")


# --------------------------------------------------------------------------------------
# By severity
# --------------------------------------------------------------------------------------


def in_words(severities: Sequence[int]) -> str:
    """Severities for a header: ``3``, ``1 to 5``, ``1, 3``."""
    first, last = severities[0], severities[-1]
    if last > first and list(severities) == list(range(first, last + 1)):
        return f"{first} to {last}"
    return ", ".join(map(str, severities))


def severities_in_words(severities: Sequence[int]) -> str:
    """For a sentence: ``severity 3``, ``severities 1 to 5``."""
    return f"{'severity' if len(severities) == 1 else 'severities'} {in_words(severities)}"


def shifted(severities: Sequence[int]) -> Span:
    """Those from 1 on."""
    return tuple(s for s in severities if s)


def spans(records: Iterable[Record]) -> dict[Span, str]:
    """Headers of columns: each severity by itself, then those from 1 on if there are several."""
    severities = severities_of(records)
    found: dict[Span, str] = {(s,): f"severity {s}" for s in severities}
    strong = shifted(severities)
    return {**found, strong: f"mean of {in_words(strong)}"} if len(strong) > 1 else found


def axis(records: Iterable[Record]) -> dict[Span, float]:
    """Places on an axis of severities."""
    return {(s,): float(s) for s in severities_of(records)}


def by_severity(records: Sequence[Record]) -> Callable[[str, Span], Cell]:
    """Mean ECE of a variant at some severities."""
    return lambda key, span: ece(records, variant=key, severity=span)


def severity_table(records: Sequence[Record], title: str) -> Table:
    """Mean ECE over corruptions, a row for each variant, a column for each severity.

    The last column is the mean over the severities from 1 on.
    """
    columns = percents(spans(records), lower_is_better=True)
    return table(title, labels_of(records), columns, by_severity(records))


def severity_lines(records: Sequence[Record], title: str) -> Lines:
    """Mean ECE over corruptions against severity, a line for each variant."""
    axes = axis(records), by_severity(records)
    return lines(title, panel(labels_of(records), *axes, x_label=SEVERITY))


def severity_boxes(records: Sequence[Record], title: str) -> Boxes:
    """ECE of every corruption against severity, a box for each variant.

    One value is that of one corruption: the mean over splits, and over draws if there are several.
    """
    severities = severities_of(records)

    def by_corruption(key: str, severity: int) -> tuple[float, ...]:
        values: dict[str, list[float]] = {}
        for record in select(records, variant=key, severity=severity):
            values.setdefault(record.corruption, []).append(100 * record.ece)
        return tuple(float(np.mean(each)) for each in values.values())

    boxes = [
        BoxSeries(key=key, label=label, values=tuple(by_corruption(key, s) for s in severities))
        for key, label in labels_of(records).items()
    ]
    return Boxes(
        groups=tuple(map(str, severities)),
        series=tuple(boxes),
        x_label=SEVERITY,
        y_label=ECE,
        title=title,
        note=BOXES,
    )


# --------------------------------------------------------------------------------------
# Behind the means: every target, the temperatures, the choices
# --------------------------------------------------------------------------------------


def full_table(records: Sequence[Record]) -> Table:
    """ECE of every target and method, next to the model's own accuracy and confidence there.

    A row is a corruption at a severity.
    """
    variants = labels_of(records)
    order = {name: i for i, name in enumerate(dict.fromkeys(r.corruption for r in records))}
    places = {r.target: (order[r.corruption], r.severity or 0) for r in records}
    model = {"accuracy": "accuracy", "raw_confidence": "confidence"}

    def cell(target: str, key: str) -> Cell:
        here = select(records, target=target)
        if key in model:
            return mean_cell(select(here, variant=here[0].variant), key)
        return target_cell(select(here, variant=key))

    return table(
        "ECE of every target",
        {target: target for target in sorted(places, key=places.__getitem__)},
        percents(model, group="Model") | percents(variants, group="ECE"),
        cell,
        note=f"{OVER_SPLITS} {RANGES}",
        corner="Target",
    )


def temperature_table(records: Sequence[Record]) -> Table:
    """The temperature every method divided by, severity by severity; Vanilla's is 1."""
    own = [record for record in records if record.temperature and record.method != "vanilla"]
    return table(
        "Temperature",
        labels_of(own),
        {s: Column(f"severity {s}") for s in severities_of(own)},
        lambda key, s: temperature_cell(select(own, variant=key, severity=s)),
        note=f"Geometric means over corruptions and splits. {OVER_SPLITS}",
    )


def chosen_table(records: Sequence[Record], ladder: Sequence[str]) -> Table:
    """How often each surrogate set was chosen, in percent of the targets of a severity.

    Args:
        records: Of which those that chose are counted.
        ladder: Names of the surrogate sets, in order.
    """
    labels = labels_of(record for record in records if record.chosen)
    choices = {
        (key, severity): Counter(r.chosen for r in select(records, variant=key, severity=severity))
        for key in labels
        for severity in sorted({r.severity for r in select(records, variant=key)})  # type: ignore[type-var]
    }
    sets = dict.fromkeys([*ladder, *(name for each in choices.values() for name in each)])
    words = {key: f"{label}, " if len(labels) > 1 else "" for key, label in labels.items()}
    return table(
        "Surrogate sets that were chosen",
        {(key, severity): f"{words[key]}severity {severity}" for key, severity in choices},
        {"": Column("choices", digits=0), **percents({name: name for name in sets}, digits=1)},
        lambda place, name: Cell(
            100 * choices[place][name] / choices[place].total() if name else choices[place].total()
        ),
        note="Shares of all choices at a severity: one for each corruption and split.",
        corner="Target",
    )


# --------------------------------------------------------------------------------------
# Studies
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """What a study shows.

    Attributes:
        tables: By file name.
        figures: By file name.
        data: Numbers behind tables that are not in ``records.csv``, by file name: CSV.
    """

    tables: Mapping[str, Table]
    figures: Mapping[str, FigureData]
    data: Mapping[str, str] = field(default_factory=dict)


def with_metrics(
    findings: Findings, records: Sequence[Record], more: Mapping[str, Mapping[str, float]]
) -> Findings:
    """Findings with the means of the plan's own metrics, and all their values.

    Args:
        findings: What the study shows.
        records: Every evaluation.
        more: Values by key of a record and name of a metric.
    """
    named = ("panel", "setting", "label", "split", "draw", "target")
    rows = [{**{name: getattr(r, name) for name in named}, **more[r.key]} for r in records]
    columns = {
        name: Column(name, digits=4, lower_is_better=facts_of(METRICS.get(name)).better == "lower")
        for name in more[records[0].key]
    }
    variants = {(r.panel, r.setting, r.variant): r for r in records}
    labels = {
        key: " ".join(filter(None, (r.panel, r.setting, r.label))) for key, r in variants.items()
    }

    def cell(key: tuple[str, str, str], name: str) -> Cell:
        own = (r for r in records if (r.panel, r.setting, r.variant) == key)
        mean = mean_over_splits((r.split, more[r.key][name]) for r in own)
        return Cell(*mean[:3]) if mean else Cell(None)

    made = table("Means over all targets", labels, columns, cell)
    return replace(
        findings,
        tables={**findings.tables, "metrics": made},
        data={**findings.data, "metrics.csv": _csv([*named, *columns], rows)},
    )


class Study(ABC):
    """A question about calibration under shift, and how its answer is shown.

    A new study is a subclass with ``title`` and ``findings``, a line in the table of studies in
    ``registry.py``, and a plan of the same name in ``studies/plans``.

    Args:
        plan: The plan.

    Attributes:
        title: Of its report.
        by_severity: Whether it shows means over severities, and so needs shifts that have some.
        Options: What a plan may set below ``[options]``.
        options: The options of the plan, with the defaults.
        ladder: The surrogate sets that the plan calibrates on.

    Raises:
        InputError: If the study cannot run the plan.
    """

    title: ClassVar[str]
    by_severity: ClassVar[bool] = True

    @dataclass(frozen=True)
    class Options(Strict):
        """None, by default."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.options: Any = validated(self.Options, dict(plan.options), f"{plan.where} [options]")
        self.ladder = Ladder(plan.calibration.corruption, plan.calibration.severities)
        self.check()

    def check(self) -> None:  # noqa: B027
        """Reject a plan that this study cannot run.

        Raises:
            InputError: Naming what is wrong.
        """

    def variants(self) -> list[Variant]:
        """What is evaluated; by default the methods of the plan on all of its targets."""
        targets = targets_of(self.plan)
        return [
            Variant(each.key, each.label, each.name, self.ladder, targets, each.settings)
            for each in self.plan.methods
        ]

    @abstractmethod
    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """Tables and figures of every evaluation, and of the stored scores."""
