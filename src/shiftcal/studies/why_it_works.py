"""Why the map of a surrogate set suits a target: one target looked at closely."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from shiftcal import metrics
from shiftcal.charts import kernel_density
from shiftcal.errors import FitWarning, InputError, suggest
from shiftcal.maps import Temperature
from shiftcal.numerics.softmax import p_max
from shiftcal.report import figures as draw
from shiftcal.report.tables import Cell, Column, Table
from shiftcal.studies import records as show
from shiftcal.studies.plan import CLEAN, Strict, Target, Variant, targets_of
from shiftcal.studies.records import Findings, Record, Study, mean_over_splits, select, to_csv
from shiftcal.studies.sources import Archive, Stored
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Confidence

# File of all cases.
CASES = "surrogates.csv"
_POINTS = 201
# If more than half of the target's p_max are above it, a plain axis shows nothing but a peak at 1.
_CROWDED = 0.95


class WhyItWorks(Study):
    """The paper's first figure and its calibration plots, for one target.

    The temperature of every surrogate set is fitted again from the stored scores and applied to
    the target; all methods are evaluated on that target, SAC on every other one too, so that the
    claim behind the figure is judged on all of them: the closest mean gives the least ECE.
    """

    title = "Why it works: a target beside its surrogate sets"
    by_severity = False

    @dataclass(frozen=True)
    class Options(Strict):
        """The target that is shown, in the first split."""

        target: str = "elastic_transform-2"

    def check(self) -> None:
        """Reject a target that the plan does not have."""
        target, known = self.options.target, [each.name for each in targets_of(self.plan)]
        if target not in known:
            raise InputError(
                f"{self.plan.where} [options] target must be one of the plan's targets; got "
                f"{target!r}. {suggest(target, known)}"
            )

    def variants(self) -> list[Variant]:
        """The plan's methods on the one target; SAC on all."""
        one = self._target()
        return [
            each if each.method == "sac" else replace(each, targets=(one,))
            for each in super().variants()
        ]

    def findings(self, records: Sequence[Record], archive: Archive) -> Findings:
        """Densities and calibration plots of the target, and the claim over all targets."""
        plan, seed, target = self.plan, self.plan.seeds[0], self._target()
        cases, rows = self._cases(archive), archive.rows(target, seed)
        case = next(c for c in cases if (c[0].target, c[0].split) == (target.name, seed))
        titles = {CLEAN: "clean test images", **{s.name: s.title for s in plan.shifts.sets}}
        shown = f"{target.corruption.replace('_', ' ')}, severity {target.severity}"
        title = titles.get(target.name, shown)
        note = f"{len(rows.logits):,} test images of the split with seed {seed}."
        bank = archive.bank(self.ladder, seed)
        figures: dict[str, draw.FigureData] = {
            "densities": _densities(case, bank, rows, title, note)
        }
        own = select(records, target=target.name, split=seed)
        panels = [_reliability(r, rows, plan.bins) for r in own if r.temperature]
        if panels:
            figures["calibration"] = draw.CalibrationPlots(
                panels=tuple(panels),
                title=f"Calibration plots: {title}",
                note=f"{plan.bins} bins of equally many images. {note}",
            )
        tables = {"claim": _claim_table(cases, titles)}
        return Findings(tables, figures, {CASES: to_csv(Fit, chain.from_iterable(cases))})

    def _cases(self, archive: Archive) -> list[Case]:
        """Every scored target in every split, under the temperature of every surrogate."""
        plan, found = self.plan, []
        for seed in plan.seeds:
            bank = archive.bank(self.ladder, seed)
            means = [float(each.confidence().mean()) for each in bank]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)  # a wild temperature shows in the table
                fits = [Temperature().fit(each.logits, each.labels).temperature_ for each in bank]
            for target in targets_of(plan):
                rows = archive.rows(target, seed)
                mean, accuracy = float(p_max(rows.logits).mean()), float(rows.correct.mean())
                about = (seed, target.name, target.corruption, target.severity, mean, accuracy)
                case = []
                for each, set_mean, temperature in zip(bank, means, fits, strict=True):
                    confidence = p_max(rows.logits, temperature)
                    ece = metrics.ece(confidence, rows.correct, n_bins=plan.bins)
                    surrogate = (each.name, set_mean, abs(mean - set_mean), temperature)
                    case.append(Fit(*about, *surrogate, float(confidence.mean()), ece))
                nearest = min(case, key=lambda fit: fit.distance)
                best = min(case, key=lambda fit: fit.ece)
                found.append(
                    [
                        replace(fit, chosen=int(fit is nearest), best=int(fit is best))
                        for fit in case
                    ]
                )
        return found

    def _target(self) -> Target:
        return next(each for each in targets_of(self.plan) if each.name == self.options.target)


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


# --------------------------------------------------------------------------------------
# How often the closest mean gives the least error, over all targets and splits
# --------------------------------------------------------------------------------------


def _claim_table(cases: Sequence[Case], titles: dict[str, str]) -> Table:
    """How often the closest mean is the best set and what it costs otherwise, by severity."""
    severities = sorted({s for case in cases if (s := case[0].severity) is not None})
    spans: dict[show.Span, str] = {(s,): f"severity {s}" for s in severities}
    over = show.shifted(severities)
    if len(over) > 1:
        spans[over] = show.severities_in_words(over)
    own = {name: [c for c in cases if c[0].severity in span] for span, name in spans.items()}
    for case in cases:
        if case[0].severity is None:
            own.setdefault(titles[case[0].target], []).append(case)
    near: dict[str | int, str] = {0: "best set", 1: "best or next to it"}
    sets: dict[str | int, str] = {"chosen": "closest mean (SAC)", "best": "best set, by the labels"}
    sets["clean"] = "clean set (TS)"
    columns = {
        "cases": Column("cases", digits=0),
        **show.percents(near, group="closest mean is", digits=1),
        **show.percents(sets, group="mean ECE of"),
    }

    def cell(row: str, column: str | int) -> Cell:
        if column == "cases":
            return Cell(len(own[row]))
        numbers = []
        for case in own[row]:
            places = {"clean": 0}
            for mark in ("chosen", "best"):
                places[mark] = next(i for i, fit in enumerate(case) if getattr(fit, mark))
            if isinstance(column, str):
                number = case[places[column]].ece
            else:
                number = float(abs(places["chosen"] - places["best"]) <= column)
            numbers.append((case[0].split, number))
        found = show.percent(mean_over_splits(numbers, least=0.0, most=1.0))
        return found if isinstance(column, str) else Cell(found.value)

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


# --------------------------------------------------------------------------------------
# One target next to every surrogate set, and under every method
# --------------------------------------------------------------------------------------


def _densities(
    case: Case, bank: SurrogateBank, rows: Stored, title: str, note: str
) -> draw.Densities:
    """Densities of raw p_max; below, the target under each surrogate's temperature.

    The axis is stretched towards 1 if more than half of the target's p_max are above 0.95.
    """
    confidence = p_max(rows.logits)
    stretched = float(np.median(confidence)) > _CROWDED
    grid = draw.stretched_grid(_POINTS) if stretched else np.linspace(0.0, 1.0, _POINTS)

    def curve(values: Confidence) -> tuple[float, ...]:
        return tuple(kernel_density(values, grid, stretched=stretched).tolist())

    surrogates = [
        draw.Surrogate(
            label=fit.surrogate.replace("_", " ").replace("-", " "),
            density=curve(each.confidence()),
            mean=fit.mean_p_max,
            accuracy=100 * fit.accuracy,
            confidence=100 * fit.confidence,
            ece=100 * fit.ece,
            chosen=bool(fit.chosen),
        )
        for fit, each in zip(case, bank, strict=True)
    ]
    return draw.Densities(
        grid=tuple(grid.tolist()),
        target=curve(confidence),
        target_mean=case[0].target_mean_p_max,
        target_label=title,
        surrogates=tuple(surrogates),
        title=f"Target and surrogate sets: {title}",
        note=note,
        stretched=stretched,
    )


def _reliability(record: Record, rows: Stored, bins: int) -> draw.Reliability:
    """A method's bins of equal size, over the confidence that its temperature gives."""
    confidence = p_max(rows.logits, record.temperature or 1.0)
    table = metrics.bin_table(confidence, rows.correct, n_bins=bins)
    between = (table.upper[:-1] + table.lower[1:]) / 2
    return draw.Reliability(
        key=record.variant,
        label=record.label,
        edges=(float(table.lower[0]), *between.tolist(), float(table.upper[-1])),
        accuracy=tuple((100 * table.accuracy).tolist()),
        confidence=tuple((100 * table.confidence).tolist()),
        count=tuple(table.count.tolist()),
        ece=100 * table.ece,
        temperature=record.temperature,
    )
