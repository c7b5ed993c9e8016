"""Why the map of a surrogate set suits a target: one target looked at closely."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftcal import metrics
from shiftcal.charts import kernel_density
from shiftcal.errors import FitWarning, InputError, suggest
from shiftcal.maps import Temperature
from shiftcal.metrics import BinTable
from shiftcal.numerics.softmax import p_max
from shiftcal.report.figures import (
    CalibrationPlots,
    Densities,
    FigureData,
    Reliability,
    Surrogate,
    stretched_grid,
)
from shiftcal.report.tables import Cell, Column, Table
from shiftcal.studies import tables as show
from shiftcal.studies.evaluation import fitted
from shiftcal.studies.plan import STRICT, Plan
from shiftcal.studies.records import Record, Results, mean_over_splits, select, to_csv
from shiftcal.studies.sources import Stored
from shiftcal.studies.study import Findings, Study, Target, Variant, compared, ladder_of, targets_of
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Confidence

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
    by_severity: ClassVar[bool] = False

    @dataclass(frozen=True)
    class Options:
        """The target, and the seed of the split that is shown; default: the first one."""

        __pydantic_config__ = STRICT
        target: str = "elastic_transform-2"
        split: int | None = None

    def check(self, plan: Plan) -> None:
        """Reject a target or a split that the plan does not have."""
        options, known = self.options(plan), [each.name for each in targets_of(plan)]
        if options.target not in known:
            raise InputError(
                "target of the study why-it-works must be one of the plan's targets, a corruption "
                f"and its severity or a natural set; got {options.target!r}. "
                f"{suggest(options.target, known)}"
            )
        if options.split not in (None, *plan.seeds):
            raise InputError(
                f"split of the study why-it-works must be one of the plan's seeds "
                f"{list(plan.seeds)}; got {options.split}."
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
        plan, options = results.plan, self.options(results.plan)
        split = plan.seeds[0] if options.split is None else options.split
        tables: dict[str, Table] = {}
        figures: dict[str, FigureData] = {}
        cases = _cases(results)
        for case in cases:
            if (case[0].target, case[0].split) == (options.target, split):
                one = _one_target(results, self._target(plan), case)
                tables |= one.tables
                figures |= one.figures
        tables["claim"] = _claim_table(cases, {each.name: each.title for each in plan.shifts.sets})
        severities = _severities(cases)
        if severities:
            rows = {"ts": _CLEAN, "sac": _NEAREST, "best-set": _BEST}
            drawn = show.panel(
                rows,
                show.axis(severities),
                lambda key, span: _mean_ece(_at(cases, span), key),
                x_label=show.SEVERITY,
            )
            figures["closest-mean"] = show.lines("The temperature of which surrogate set?", drawn)
        return Findings(tables, figures, {CASES: to_csv(Fit, chain.from_iterable(cases))})

    def _target(self, plan: Plan) -> Target:
        name = self.options(plan).target
        return next(each for each in targets_of(plan) if each.name == name)


@dataclass(frozen=True)
class Fit:
    """One target in one split under the temperature of one surrogate set; fractions.

    Attributes:
        split: Seed of the split.
        target: Name of the target.
        corruption: What shifted it.
        severity: How strongly; ``None`` for a natural shift.
        target_mean_p_max: Of the target, raw.
        accuracy: Of the model; no temperature changes it.
        surrogate: Name of the set.
        mean_p_max: Of the set, raw.
        distance: ``|mean of the target - mean of the surrogate|``.
        temperature: Of least NLL on the set.
        confidence: Mean confidence of the target under the temperature.
        ece: Of the target under the temperature.
        chosen: 1 for the set with the closest mean, the first of equals: the choice of SAC.
        best: 1 for the set with the least ECE, the first of equals.
    """

    split: int
    target: str
    corruption: str
    severity: int | None
    target_mean_p_max: float
    accuracy: float
    surrogate: str
    mean_p_max: float
    distance: float
    temperature: float
    confidence: float
    ece: float
    chosen: int = 0
    best: int = 0


# A target in one split under every surrogate set, the clean one first.
Case = list[Fit]


def _cases(results: Results) -> list[Case]:
    """Every scored target in every split, under the temperature of every surrogate."""
    plan, archive = results.plan, results.archive
    found = []
    for seed in plan.seeds:
        bank = archive.bank(ladder_of(plan), seed)
        means = [float(each.confidence().mean()) for each in bank]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # a wild temperature shows in the table
            fits = [Temperature().fit(each.logits, each.labels).temperature_ for each in bank]
        for target in targets_of(plan):
            rows = archive.rows(target, seed)
            correct, mean = correctness(rows), float(p_max(rows.logits).mean())
            case = []
            for each, set_mean, temperature in zip(bank, means, fits, strict=True):
                confidence = p_max(rows.logits, temperature)
                case.append(
                    Fit(
                        seed,
                        target.name,
                        target.corruption,
                        target.severity,
                        mean,
                        float(correct.mean()),
                        each.name,
                        set_mean,
                        abs(mean - set_mean),
                        temperature,
                        float(confidence.mean()),
                        metrics.ece(confidence, correct, n_bins=plan.bins),
                    )
                )
            nearest = min(case, key=lambda fit: fit.distance)
            best = min(case, key=lambda fit: fit.ece)
            found.append(
                [replace(fit, chosen=int(fit is nearest), best=int(fit is best)) for fit in case]
            )
    return found


def correctness(target: Stored) -> NDArray[np.bool_]:
    """Whether the model's class is correct, row by row."""
    assert target.labels is not None
    correct: NDArray[np.bool_] = target.logits.argmax(axis=1) == target.labels
    return correct


# --------------------------------------------------------------------------------------
# How often the closest mean gives the least error, over all targets and splits
# --------------------------------------------------------------------------------------


def _claim_table(cases: Sequence[Case], titles: dict[str, str]) -> Table:
    """How often the closest mean is the best set and what it costs otherwise, by severity."""
    severities = _severities(cases)
    over = show.shifted(severities)
    own: dict[str, list[Case]] = {f"severity {s}": _at(cases, (s,)) for s in severities}
    if len(over) > 1:
        own[show.severities_in_words(over)] = _at(cases, over)
    for case in cases:
        if case[0].severity is None:
            own.setdefault(titles[case[0].target], []).append(case)
    columns: dict[str | int, Column] = {
        "cases": Column("cases", digits=0),
        **show.percents(
            {0: "best set", 1: "best or next to it"}, group="closest mean is", digits=1
        ),
        **show.percents({"sac": _NEAREST, "best-set": _BEST, "ts": _CLEAN}, group="mean ECE of"),
    }

    def cell(row: str, column: str | int) -> Cell:
        if column == "cases":
            return Cell(len(own[row]))
        if isinstance(column, str):
            return _mean_ece(own[row], column)
        shares = [
            (case[0].split, float(abs(_place(case, "chosen") - _place(case, "best")) <= column))
            for case in own[row]
        ]
        return Cell(show.percent(mean_over_splits(shares)).value)

    return show.table(
        "Does the closest mean give the least ECE?",
        {name: name for name in own},
        columns,
        cell,
        note=(
            "A case is one target in one split; the best set is that under whose temperature the "
            f"target's ECE is least. Every case is in data/{CASES}. {show.OVER_SPLITS}"
        ),
        corner="Target",
    )


def _place(case: Case, mark: str) -> int:
    """Which of the surrogate sets is marked."""
    return next(i for i, fit in enumerate(case) if getattr(fit, mark))


def _mean_ece(cases: Sequence[Case], choice: str) -> Cell:
    """Under the temperature of the clean set (ts), the closest mean (sac) or the best set."""
    mark = {"sac": "chosen", "best-set": "best"}.get(choice)
    numbers = [(case[0].split, case[_place(case, mark) if mark else 0].ece) for case in cases]
    return show.percent(mean_over_splits(numbers, least=0.0, most=1.0))


def _severities(cases: Sequence[Case]) -> list[int]:
    return sorted({s for case in cases if (s := case[0].severity) is not None})


def _at(cases: Sequence[Case], severities: Sequence[int]) -> list[Case]:
    return [case for case in cases if case[0].severity in severities]


# --------------------------------------------------------------------------------------
# One target next to every surrogate set, and under every method
# --------------------------------------------------------------------------------------


def _one_target(results: Results, target: Target, case: Case) -> Findings:
    """A target in one split next to every surrogate, and under every method."""
    plan, archive, seed = results.plan, results.archive, case[0].split
    bank = archive.bank(ladder_of(plan), seed)
    rows = archive.rows(target, seed)
    if target.natural:
        title = next(each.title for each in plan.shifts.sets if each.name == target.name)
    elif target.severity:
        title = f"{target.corruption.replace('_', ' ')}, severity {target.severity}"
    else:
        title = "clean test images"
    note = f"{len(rows.logits):,} test images of the split with seed {seed}."
    figures: dict[str, FigureData] = {"densities": _densities(case, bank, rows, title, note)}
    variants = {each.key: each for each in compared(plan)}
    panels = []
    for record in select(results.records, target=target.name, split=seed, draw=0):
        confidence, correct = _calibrated(record, variants[record.variant], rows, bank, results)
        panels.append(_reliability(record, confidence, correct, plan.bins))
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


def _densities(case: Case, bank: SurrogateBank, rows: Stored, title: str, note: str) -> Densities:
    """Densities of raw p_max; below, the target under each surrogate's temperature.

    The axis is stretched towards 1 if more than half of the target's p_max are above 0.95.
    """
    confidence = p_max(rows.logits)
    stretched = float(np.median(confidence)) > _CROWDED
    grid = stretched_grid(_POINTS) if stretched else np.linspace(0.0, 1.0, _POINTS)

    def curve(values: Confidence) -> tuple[float, ...]:
        return tuple(kernel_density(values, grid, stretched=stretched).tolist())

    surrogates = [
        Surrogate(
            label=_spoken(fit.surrogate),
            density=curve(each.confidence()),
            mean=fit.mean_p_max,
            accuracy=100 * fit.accuracy,
            confidence=100 * fit.confidence,
            ece=100 * fit.ece,
            chosen=bool(fit.chosen),
        )
        for fit, each in zip(case, bank, strict=True)
    ]
    return Densities(
        grid=tuple(grid.tolist()),
        target=curve(confidence),
        target_mean=case[0].target_mean_p_max,
        target_label=title,
        surrogates=tuple(surrogates),
        title=f"Target and surrogate sets: {title}",
        note=note,
        stretched=stretched,
    )


def _surrogates_table(case: Case, title: str, note: str) -> Table:
    """Every surrogate in numbers; the least ECE is marked."""
    under: dict[str, Any] = {"unit": "%", "group": "target under T"}
    columns = {
        "mean_p_max": Column("mean p_max", digits=4),
        "distance": Column("difference to the target", digits=4),
        "temperature": Column("T", digits=3),
        "accuracy": Column("accuracy", **under),
        "confidence": Column("confidence", **under),
        "ece": Column("ECE", lower_is_better=True, **under),
        "chosen": Column("chosen"),
    }

    def cell(row: int, field: str) -> Cell:
        value = getattr(case[row], field)
        if field == "chosen":
            return Cell("yes" if value else "no")
        return Cell(100 * value if columns[field].unit else value)

    return show.table(
        f"Surrogate sets beside the target: {title}",
        {i: _spoken(fit.surrogate) for i, fit in enumerate(case)},
        columns,
        cell,
        note=f"Mean p_max of the target: {case[0].target_mean_p_max:.4f}. {note}",
        corner="Surrogate set",
    )


def _calibrated(
    record: Record, variant: Variant, target: Stored, bank: SurrogateBank, results: Results
) -> tuple[Confidence, NDArray[np.bool_]]:
    """Confidence and correctness of a method: by its temperature, or else fitted again."""
    if record.temperature is not None:
        return p_max(target.logits, record.temperature), correctness(target)
    method = fitted(variant, bank, results.archive.train_features)
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
