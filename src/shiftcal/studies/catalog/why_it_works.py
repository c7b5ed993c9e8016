"""Why the map of a surrogate set suits a target: one target looked at closely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from shiftcal._registry import suggest
from shiftcal.errors import InputError
from shiftcal.report.figures.calibration import CalibrationPlots
from shiftcal.report.tables.table import Table
from shiftcal.studies.catalog._why.case import Case, cases_to_csv
from shiftcal.studies.catalog._why.claim import CASES, claim_lines, claim_table
from shiftcal.studies.catalog._why.measured import rungs_of, seen_under
from shiftcal.studies.catalog._why.one_target import densities, surrogates_table
from shiftcal.studies.catalog._why.plots import reliability
from shiftcal.studies.catalog._why.verdicts import claim_said, example_said
from shiftcal.studies.catalog.base import Findings, Study, compared, ladder_of, targets_of
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.results import Results
from shiftcal.studies.stages.outcome import bank_of, rows_of
from shiftcal.studies.variant import Target, Variant

if TYPE_CHECKING:
    from shiftcal.report.figures.base import FigureData


class WhyItWorks(Study):
    """The paper's first figure and its calibration plots, for one target.

    The temperature of every surrogate set is fitted again from the stored scores and applied to
    the target; all methods are evaluated on that target, SAC on every other one too, so that the
    claim behind the figure is judged on all of them: the closest mean gives the least ECE.
    """

    title: ClassVar[str] = "Why it works: a target beside its surrogate sets"
    options: ClassVar[Mapping[str, Any]] = {"target": "elastic_transform-2", "split": None}

    def variants(self, plan: Plan) -> list[Variant]:
        """The plan's methods on the one target; SAC on all."""
        one = self._target(plan)
        return [
            each if each.method == "sac" else replace(each, targets=(one,))
            for each in compared(plan)
        ]

    def findings(self, results: Results) -> Findings:
        """Densities and calibration plots of the target, and the claim over all targets."""
        there = results.archive.entries
        if any(name not in there for name in ladder_of(results.plan).sets):
            return Findings({}, {})
        tables: dict[str, Table] = {}
        figures: dict[str, FigureData] = {}
        remarks: list[str] = []
        cases = list(_cases(results))
        target = self._target(results.plan)
        own = [case for case in cases if case.target == target]
        if own:
            one = _one_target(results, own, self._split(results.plan))
            tables |= one.tables
            figures |= one.figures
            remarks += one.remarks
        data = {}
        if cases:
            data[CASES] = cases_to_csv(cases)
            titles = {each.name: each.title for each in results.plan.shifts.sets}
            tables["claim"] = claim_table(cases, titles)
            remarks.append(claim_said(cases))
            lines = claim_lines(cases)
            if lines is not None:
                figures["closest-mean"] = lines
        return Findings(tables, figures, tuple(remarks), data)

    def check(self, plan: Plan) -> None:
        """Refuse a target or a split that the plan does not have."""
        super().check(plan)
        wanted, known = self.option(plan, "target"), [each.name for each in targets_of(plan)]
        if wanted not in known:
            raise InputError(
                f"target of the study why-it-works must be one of the plan's targets, a "
                f"corruption and its severity or a natural set; got {wanted!r}. "
                f"{suggest(wanted, known)}"
            )
        if self._split(plan) not in plan.seeds:
            raise InputError(
                f"split of the study why-it-works must be one of the plan's seeds "
                f"{list(plan.seeds)}; got {self._split(plan)!r}."
            )

    def _target(self, plan: Plan) -> Target:
        name = self.option(plan, "target")
        return next(each for each in targets_of(plan) if each.name == name)

    def _split(self, plan: Plan) -> Any:
        given = self.option(plan, "split")
        return plan.seeds[0] if given is None else given


def _one_target(results: Results, cases: list[Case], seed: int) -> Findings:
    """The target of these cases beside every surrogate, and under every method, in one split."""
    plan, archive = results.plan, results.archive
    shown = next(case for case in cases if case.split == seed)
    target, rungs, seen = shown.target, shown.rungs, shown.seen
    split = archive.split(seed, plan.calibration.images)
    bank = bank_of(archive, ladder_of(plan), split, seed=seed)
    rows = rows_of(archive.scores(target.name), target, split)
    title = _title(plan, target)
    note = f"{len(rows.logits):,} test images of the split with seed {seed}."
    figures: dict[str, FigureData] = {
        "densities": densities(rungs, rows.logits, seen, title=title, note=note)
    }
    by_key = {each.key: each for each in compared(plan)}
    panels = [
        reliability(
            record, by_key[record.variant], rows, bank=bank, archive=archive, bins=plan.bins
        )
        for record in results.select(target=target.name, split=seed, draw=0)
        if record.variant in by_key
    ]
    if panels:
        figures["calibration"] = CalibrationPlots(
            panels=tuple(panels),
            title=f"Calibration plots: {title}",
            note=f"{plan.bins} bins of equally many images. {note}",
        )
    table = surrogates_table(rungs, seen, title=title, note=note)
    said = example_said(shown, cases, title=title)
    return Findings({"surrogates": table}, figures, (said,))


def _cases(results: Results) -> Iterator[Case]:
    """Every scored target in every split, under the temperature of every surrogate."""
    plan, archive = results.plan, results.archive
    for seed in plan.seeds:
        split = archive.split(seed, plan.calibration.images)
        rungs = rungs_of(bank_of(archive, ladder_of(plan), split, seed=seed))
        for target in targets_of(plan):
            if target.name in archive.entries:
                rows = rows_of(archive.scores(target.name), target, split)
                yield Case(target, seed, rungs, seen_under(rungs, rows, bins=plan.bins))


def _title(plan: Plan, target: Target) -> str:
    if target.natural:
        return next(each.title for each in plan.shifts.sets if each.name == target.name)
    if not target.severity:
        return "clean test images"
    return f"{target.corruption.replace('_', ' ')}, severity {target.severity}"
