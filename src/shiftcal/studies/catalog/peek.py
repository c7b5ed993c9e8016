"""How few target rows SAC has to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, final

from shiftcal._checks import check_count
from shiftcal.errors import InputError
from shiftcal.studies.catalog._peek.peeked import (
    PEEK,
    peeked_of,
    same_set_table,
    shifted_of,
    sizes_table,
)
from shiftcal.studies.catalog._peek.remarks import remarks_of
from shiftcal.studies.catalog._peek.views import sizes_figure
from shiftcal.studies.catalog.base import Findings, Study, compared
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.results import Results, select
from shiftcal.studies.showing import severity_boxes, severity_table
from shiftcal.studies.variant import Variant

if TYPE_CHECKING:
    from shiftcal.report.figures.base import FigureData

_SAC = "sac"
_BOXES = (
    "A value is the ECE under one corruption, its mean over splits and draws; severity 0 has one, "
    "the clean test images."
)


@final
class Peek(Study):
    """SAC that looks at all rows of a target, and at a few drawn at random, several times.

    Every draw has rows of its own: those of one target and split say nothing of those of another.
    """

    title: ClassVar[str] = "How many target rows have to be looked at"
    options: ClassVar[Mapping[str, Any]] = {"sizes": (10, 30, 100, 300, 1000), "draws": 10}

    def check(self, plan: Plan) -> None:
        """Refuse sizes and draws that are no counts, and a plan without SAC."""
        super().check(plan)
        check_count(self.option(plan, "draws"), name="the option draws")
        sizes = self.option(plan, "sizes")
        if not isinstance(sizes, (list, tuple)) or not sizes or len(set(sizes)) < len(sizes):
            raise InputError(
                "the option sizes must be a list of different numbers of rows, such as "
                f"[10, 100]; got {sizes!r}."
            )
        for size in sizes:
            check_count(size, name="every one of the option sizes")
        if not any(each.name == _SAC for each in plan.methods):
            raise InputError(
                f"the study {plan.study!r} is about SAC, and the plan's methods have none of it. "
                'Add {name = "sac", label = "SAC"}.'
            )

    def variants(self, plan: Plan) -> list[Variant]:
        """The methods of the plan, and before each SAC the same with fewer rows, rising."""
        made: list[Variant] = []
        for each in compared(plan):
            if each.method != _SAC or "peek" in each.settings:
                made.append(each)
                continue
            made += [self._peeking(plan, each, size) for size in sorted(self.option(plan, "sizes"))]
            made.append(replace(each, label=f"{each.label}, all rows"))
        return made

    def _peeking(self, plan: Plan, whole: Variant, size: int) -> Variant:
        return replace(
            whole,
            key=f"{whole.key}{PEEK}{size}",
            label=f"{whole.label}, {size} rows",
            settings={**whole.settings, "peek": size},
            setting=str(size),
            draws=self.option(plan, "draws"),
        )

    def findings(self, results: Results) -> Findings:
        """Boxes by severity, means against the number of rows, how often the choice holds."""
        if not results.severities:
            return Findings({}, {}, ("No corrupted or clean target was evaluated.",))
        labels = {record.variant: record.label for record in results.records}
        only_sac = {r.variant: r.label for r in select(results.records, method=_SAC)}
        title = "Mean ECE by the number of target rows looked at"
        tables = {
            "mean-ece": severity_table(results.records, labels, results.severities, title=title)
        }
        figures: dict[str, FigureData] = {}
        if only_sac:
            figures["peek"] = severity_boxes(
                results.records,
                only_sac,
                results.severities,
                title="ECE by the number of target rows looked at",
                note=_BOXES,
            )
        peeked = peeked_of(results)
        if not peeked:
            return Findings(tables, figures, ())
        tables["same-set"] = same_set_table(peeked, results.severities)
        if shifted_of(peeked):
            tables["peek-size"] = sizes_table(peeked)
            figures["peek-size"] = sizes_figure(peeked, results)
        return Findings(tables, figures, tuple(remarks_of(peeked, results)))
