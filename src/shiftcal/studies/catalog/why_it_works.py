"""Why the map of a surrogate set suits a target: one target looked at closely."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftcal import metrics
from shiftcal.errors import FitWarning, InputError
from shiftcal.maps import Temperature
from shiftcal.metrics import BinTable
from shiftcal.numerics.samples import mean_interval
from shiftcal.numerics.softmax import p_max
from shiftcal.registry import suggest
from shiftcal.report.figures import (
    CalibrationPlots,
    Densities,
    FigureData,
    Lines,
    Panel,
    Reliability,
    Surrogate,
    density,
    stretched_grid,
)
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.studies.archive import Stored
from shiftcal.studies.catalog.base import Findings, Study, compared, ladder_of, targets_of
from shiftcal.studies.evaluation import bank_of, fitted, rows_of
from shiftcal.studies.plan import Plan, Target, Variant
from shiftcal.studies.records import Record, Results
from shiftcal.studies.tables import ECE, OVER_SPLITS, SEVERITY, series, severities_in_words
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Confidence, Logits

# File of all cases.
CASES = "surrogates.csv"
_NEAREST, _BEST, _CLEAN = "closest mean (SAC)", "best set, by the labels", "clean set (TS)"
_POINTS = 201
# If more than half of the target's p_max are above it, a plain axis shows nothing but a peak at 1.
_CROWDED = 0.95
# Half the width that is drawn for a bin without width.
_SLIVER = 5e-4


class WhyItWorks(Study):
    """The paper's first figure and its calibration plots, for one target.

    The temperature of every surrogate set is fitted again from the stored scores and applied to
    the target; all methods are evaluated on that target, SAC on every other one too, so that the
    claim behind the figure is judged on all of them: the closest mean gives the least ECE.
    """

    name: ClassVar[str] = "why-it-works"
    title: ClassVar[str] = "Why it works: a target beside its surrogate sets"
    options: ClassVar[Mapping[str, Any]] = {"target": "elastic_transform-2", "split": None}

    def check(self, plan: Plan) -> None:
        """Reject a target or a split that the plan does not have."""
        super().check(plan)
        wanted, known = self.option(plan, "target"), [each.name for each in targets_of(plan)]
        if wanted not in known:
            raise InputError(
                "target of the study why-it-works must be one of the plan's targets, a corruption "
                f"and its severity or a natural set; got {wanted!r}. {suggest(wanted, known)}"
            )
        if self._split(plan) not in plan.seeds:
            raise InputError(
                f"split of the study why-it-works must be one of the plan's seeds "
                f"{list(plan.seeds)}; got {self._split(plan)!r}."
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """The plan's methods on the one target; SAC on all."""
        one = self._target(plan)
        return [
            each if each.method == "sac" else replace(each, targets=(one,))
            for each in compared(plan)
        ]

    def findings(self, results: Results) -> Findings:
        """Densities and calibration plots of the target, and the claim over all targets."""
        plan = results.plan
        if any(name not in results.archive.entries for name in ladder_of(plan).sets):
            return Findings({}, {})
        cases = list(_cases(results))
        target, split = self._target(plan), self._split(plan)
        shown = next((c for c in cases if (c.target, c.split) == (target, split)), None)
        one = Findings({}, {}) if shown is None else _one_target(results, shown)
        tables, figures = dict(one.tables), dict(one.figures)
        if not cases:
            return one
        tables["claim"] = _claim_table(cases, {each.name: each.title for each in plan.shifts.sets})
        if _severities(cases):
            figures["closest-mean"] = _claim_lines(cases)
        return Findings(tables, figures, {CASES: cases_to_csv(cases)})

    def _target(self, plan: Plan) -> Target:
        name = self.option(plan, "target")
        return next(each for each in targets_of(plan) if each.name == name)

    def _split(self, plan: Plan) -> Any:
        split = self.option(plan, "split")
        return plan.seeds[0] if split is None else split


@dataclass(frozen=True, eq=False)
class Rung:
    """One surrogate set.

    Attributes:
        name: Of the set.
        p_max: ``(n,)`` raw, of its images.
        mean: Of these.
        temperature: Of least NLL on it.
    """

    name: str
    p_max: Confidence
    mean: float
    temperature: float


@dataclass(frozen=True, eq=False)
class Case:
    """One target in one split, under the temperature of every surrogate set; fractions.

    Attributes:
        target: The target.
        split: Seed of the split.
        rungs: The surrogate sets.
        mean: Of the target's raw p_max.
        accuracy: Of the model; no temperature changes it.
        confidences: Mean confidence under each temperature.
        eces: ECE under each temperature.
        distances: ``|mean of the target - mean of the surrogate|``.
    """

    target: Target
    split: int
    rungs: Sequence[Rung]
    mean: float
    accuracy: float
    confidences: tuple[float, ...]
    eces: tuple[float, ...]
    distances: tuple[float, ...]

    @property
    def nearest(self) -> int:
        """The surrogate with the closest mean, the first of equals: the choice of SAC."""
        return int(np.argmin(self.distances))

    @property
    def best(self) -> int:
        """The surrogate under whose temperature the ECE is least, the first of equals."""
        return int(np.argmin(self.eces))


def _cases(results: Results) -> Iterator[Case]:
    """Every scored target in every split, under the temperature of every surrogate."""
    plan, archive = results.plan, results.archive
    for seed in plan.seeds:
        split = archive.split(seed, plan.calibration.images)
        rungs = rungs_of(bank_of(archive, ladder_of(plan), split, seed=seed))
        for target in targets_of(plan):
            if target.name not in archive.entries:
                continue
            rows = rows_of(archive.scores(target.name), target, split)
            correct, mean = correctness(rows), float(p_max(rows.logits).mean())
            calibrated = [p_max(rows.logits, rung.temperature) for rung in rungs]
            yield Case(
                target,
                seed,
                rungs,
                mean=mean,
                accuracy=float(correct.mean()),
                confidences=tuple(float(each.mean()) for each in calibrated),
                eces=tuple(metrics.ece(each, correct, n_bins=plan.bins) for each in calibrated),
                distances=tuple(abs(mean - rung.mean) for rung in rungs),
            )


def rungs_of(bank: SurrogateBank) -> list[Rung]:
    """The sets of a bank, each with the temperature fitted on it."""
    found = []
    for each in bank:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # a wild temperature shows in the table
            scaling = Temperature().fit(each.logits, each.labels)
        confidence = each.confidence()
        found.append(Rung(each.name, confidence, float(confidence.mean()), scaling.temperature_))
    return found


def correctness(target: Stored) -> NDArray[np.bool_]:
    """Whether the model's class is correct, row by row."""
    assert target.labels is not None
    correct: NDArray[np.bool_] = target.logits.argmax(axis=1) == target.labels
    return correct


def cases_to_csv(cases: Sequence[Case]) -> str:
    """A row for each split, target and surrogate set, all digits kept; fractions, not percent.

    ``accuracy``, ``confidence`` and ``ece`` are the target's under the temperature of the surrogate
    set; ``chosen`` is 1 for the closest mean, ``best`` for the least ECE.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "split",
            "target",
            "corruption",
            "severity",
            "target_mean_p_max",
            "accuracy",
            "surrogate",
            "mean_p_max",
            "distance",
            "temperature",
            "confidence",
            "ece",
            "chosen",
            "best",
        ]
    )
    for case in cases:
        target = case.target
        severity = "" if target.severity is None else target.severity
        for j, rung in enumerate(case.rungs):
            row = [case.split, target.name, target.corruption, severity, case.mean, case.accuracy]
            row += [rung.name, rung.mean, case.distances[j], rung.temperature]
            row += [case.confidences[j], case.eces[j]]
            writer.writerow([*row, int(j == case.nearest), int(j == case.best)])
    return text.getvalue()


# --------------------------------------------------------------------------------------
# How often the closest mean gives the least error, over all targets and splits
# --------------------------------------------------------------------------------------


def _claim_table(cases: Sequence[Case], titles: Mapping[str, str]) -> Table:
    """How often the closest mean is the best set and what it costs otherwise, by severity."""
    severities = _severities(cases)
    shifted = [s for s in severities if s]
    rows = [_row(f"severity {s}", _at(cases, [s])) for s in severities]
    if len(shifted) > 1:
        row = _row(severities_in_words(shifted), _at(cases, shifted))
        rows.append(replace(row, rule_before=True))
    for name in dict.fromkeys(case.target.name for case in cases if case.target.natural):
        rows.append(_row(titles.get(name, name), [c for c in cases if c.target.name == name]))
    shares = ("best set", "best or next to it")
    return Table(
        "Does the closest mean give the least ECE?",
        (
            Column("cases", digits=0),
            *(Column(name, unit="%", group="closest mean is", digits=1) for name in shares),
            *(Column(name, unit="%", group="mean ECE of") for name in (_NEAREST, _BEST, _CLEAN)),
        ),
        tuple(rows),
        note=(
            "A case is one target in one split; the best set is that under whose temperature the "
            f"target's ECE is least. Every case is in data/{CASES}. {OVER_SPLITS}"
        ),
        corner="Target",
    )


def _claim_lines(cases: Sequence[Case]) -> Lines:
    """Mean ECE under the temperature of three choices of the set."""
    severities = _severities(cases)
    drawn = [
        series(key, label, [_mean(_at(cases, [s]), pick) for s in severities])
        for key, label, pick in (
            ("ts", _CLEAN, _ece_clean),
            ("sac", _NEAREST, _ece_nearest),
            ("best-set", _BEST, _ece_best),
        )
    ]
    panel = Panel(x=tuple(map(float, severities)), series=tuple(drawn), x_label=SEVERITY)
    title = "The temperature of which surrogate set?"
    return Lines(panels=(panel,), y_label=f"mean {ECE}", title=title, note=OVER_SPLITS)


def _ece_nearest(case: Case) -> float:
    return case.eces[case.nearest]


def _ece_best(case: Case) -> float:
    return case.eces[case.best]


def _ece_clean(case: Case) -> float:
    return case.eces[0]


def _row(label: str, cases: Sequence[Case]) -> Row:
    hit = _mean(cases, lambda case: float(case.nearest == case.best))
    near = _mean(cases, lambda case: float(abs(case.nearest - case.best) <= 1))
    errors = (_mean(cases, pick) for pick in (_ece_nearest, _ece_best, _ece_clean))
    return Row(label, (Cell(len(cases)), Cell(hit.value), Cell(near.value), *errors))


def _mean(cases: Sequence[Case], pick: Callable[[Case], float]) -> Cell:
    """The mean within each split, then over the splits, in percent; no end is below 0."""
    by_split: dict[int, list[float]] = {}
    for case in cases:
        by_split.setdefault(case.split, []).append(pick(case))
    value, low, high = mean_interval(float(np.mean(own)) for own in by_split.values())
    if low is None or high is None:
        return Cell(100 * value)
    return Cell(100 * value, 100 * max(0.0, low), 100 * high)


def _severities(cases: Sequence[Case]) -> list[int]:
    return sorted({s for case in cases if (s := case.target.severity) is not None})


def _at(cases: Sequence[Case], severities: Sequence[int]) -> list[Case]:
    return [case for case in cases if case.target.severity in severities]


# --------------------------------------------------------------------------------------
# One target next to every surrogate set, and under every method
# --------------------------------------------------------------------------------------


def _one_target(results: Results, case: Case) -> Findings:
    """The target of a case next to every surrogate, and under every method."""
    plan, archive, target = results.plan, results.archive, case.target
    split = archive.split(case.split, plan.calibration.images)
    bank = bank_of(archive, ladder_of(plan), split, seed=case.split)
    rows = rows_of(archive.scores(target.name), target, split)
    if target.natural:
        title = next(each.title for each in plan.shifts.sets if each.name == target.name)
    elif target.severity:
        title = f"{target.corruption.replace('_', ' ')}, severity {target.severity}"
    else:
        title = "clean test images"
    note = f"{len(rows.logits):,} test images of the split with seed {case.split}."
    figures: dict[str, FigureData] = {"densities": _densities(case, rows.logits, title, note)}
    by_key = {each.key: each for each in compared(plan)}
    panels = []
    for record in results.select(target=target.name, split=case.split, draw=0):
        if record.variant in by_key:
            calibrated = _calibrated(record, by_key[record.variant], rows, bank, results)
            panels.append(_reliability(record, *calibrated, plan.bins))
    if panels:
        figures["calibration"] = CalibrationPlots(
            panels=tuple(panels),
            title=f"Calibration plots: {title}",
            note=f"{plan.bins} bins of equally many images. {note}",
        )
    return Findings({"surrogates": _surrogates_table(case, title, note)}, figures)


def _spoken(name: str) -> str:
    """A set's name for people: ``pixelate-3`` is pixelate 3."""
    return name.replace("_", " ").replace("-", " ")


def _densities(case: Case, logits: Logits, title: str, note: str) -> Densities:
    """Densities of raw p_max; below, the target under each surrogate's temperature.

    The axis is stretched towards 1 if more than half of the target's p_max are above 0.95.
    """
    confidence = p_max(logits)
    stretched = float(np.median(confidence)) > _CROWDED
    grid = stretched_grid(_POINTS) if stretched else np.linspace(0.0, 1.0, _POINTS)
    surrogates = [
        Surrogate(
            label=_spoken(rung.name),
            density=tuple(density(rung.p_max, grid, stretched=stretched).tolist()),
            mean=rung.mean,
            accuracy=100 * case.accuracy,
            confidence=100 * case.confidences[j],
            ece=100 * case.eces[j],
            chosen=j == case.nearest,
        )
        for j, rung in enumerate(case.rungs)
    ]
    return Densities(
        grid=tuple(grid.tolist()),
        target=tuple(density(confidence, grid, stretched=stretched).tolist()),
        target_mean=case.mean,
        target_label=title,
        surrogates=tuple(surrogates),
        title=f"Target and surrogate sets: {title}",
        note=note,
        stretched=stretched,
    )


def _surrogates_table(case: Case, title: str, note: str) -> Table:
    """Every surrogate in numbers; the least ECE is marked."""
    under = "target under T"
    columns = (
        Column("mean p_max", digits=4),
        Column("difference to the target", digits=4),
        Column("T", digits=3),
        Column("accuracy", unit="%", group=under),
        Column("confidence", unit="%", group=under),
        Column("ECE", unit="%", group=under, lower_is_better=True),
        Column("chosen"),
    )
    rows = []
    for j, rung in enumerate(case.rungs):
        values = (rung.mean, case.distances[j], rung.temperature)
        percents = (case.accuracy, case.confidences[j], case.eces[j])
        cells = [*map(Cell, values), *(Cell(100 * each) for each in percents)]
        rows.append(Row(_spoken(rung.name), (*cells, Cell("yes" if j == case.nearest else "no"))))
    return Table(
        f"Surrogate sets beside the target: {title}",
        columns,
        tuple(rows),
        note=f"Mean p_max of the target: {case.mean:.4f}. {note}",
        corner="Surrogate set",
    ).marked()


def _calibrated(
    record: Record, variant: Variant, target: Stored, bank: SurrogateBank, results: Results
) -> tuple[Confidence, NDArray[np.bool_]]:
    """Confidence and correctness of a method: by its temperature, or else fitted again."""
    if record.temperature is not None:
        return p_max(target.logits, record.temperature), correctness(target)
    method = fitted(variant, bank, results.archive.train_features).method
    assert method is not None  # the oracle has a temperature
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # it is in the record's flags
        method.adapt(target.logits, target.features)
        probs = method.predict_proba(target.logits)
    return probs.max(axis=1), probs.argmax(axis=1) == target.labels


def _reliability(
    record: Record, confidence: Confidence, correct: NDArray[np.bool_], bins: int
) -> Reliability:
    """One method's bins of equal size, over its calibrated confidence."""
    table = metrics.bin_table(confidence, correct, n_bins=bins)
    edges, first = _edges(table)
    count = np.add.reduceat(table.count, first)
    mean_confidence = np.add.reduceat(table.count * table.confidence, first) / count
    accuracy = np.add.reduceat(table.count * table.accuracy, first) / count
    return Reliability(
        key=record.variant,
        label=record.label,
        edges=edges,
        accuracy=tuple((100 * accuracy).tolist()),
        confidence=tuple((100 * mean_confidence).tolist()),
        count=tuple(count.tolist()),
        ece=100 * table.ece,
        temperature=record.temperature,
    )


def _edges(table: BinTable) -> tuple[tuple[float, ...], list[int]]:
    """Edges half-way between neighbouring bins, and the first bin of each that is drawn.

    Bins of one and the same confidence, as at 1, have no width: they are drawn as part of the bin
    before them, or after them if they are the first.
    """
    start, end = float(table.lower[0]), float(table.upper[-1])
    if start == end:  # one confidence everywhere: a sliver, so that it is seen
        start, end = max(0.0, start - _SLIVER), min(1.0, end + _SLIVER)
    edges, first = [start], [0]
    for index, edge in enumerate(((table.upper[:-1] + table.lower[1:]) / 2).tolist(), start=1):
        if edges[-1] < edge < end and table.lower[0] < table.upper[-1]:
            edges.append(edge)
            first.append(index)
    return (*edges, end), first
