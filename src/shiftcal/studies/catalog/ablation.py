"""What each part of SAC and STS gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from shiftcal import maps
from shiftcal._registry import suggest
from shiftcal.errors import InputError
from shiftcal.report.figures.lines import Lines
from shiftcal.report.tables.table import Table
from shiftcal.studies.catalog._ablation.answers import (
    answer_panel,
    answer_table,
    ladder_lines,
    span,
)
from shiftcal.studies.catalog._ablation.questions import FINE, PARTS, QUESTIONS
from shiftcal.studies.catalog._ablation.remarks import remarks
from shiftcal.studies.catalog._ablation.shares import shares_table
from shiftcal.studies.catalog.base import Findings, Study
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.results import Results, select
from shiftcal.studies.showing import ECE, OVER_SPLITS, severity_lines
from shiftcal.studies.variant import Variant


class Ablation(Study):
    """TS, STS and SAC with one thing varied at a time, in six panels.

    What the parts give (TS to STS: the surrogate sets; STS to SAC: the adaptation), the number of
    sets, their spacing, the number of calibration images, the map inside, and ladders with
    strengths of the plan's own. A panel compares those methods that the plan lists.
    """

    title: ClassVar[str] = "Ablation: what each part gives"
    options: ClassVar[Mapping[str, Any]] = {
        "panels": list(QUESTIONS),
        "sets": [1, 2, 3, 4, 5, 6],
        "spacings": [[1, 2, 3], [2, 3, 4], [3, 4, 5], [1, 3, 5]],
        "images": [100, 200, 500, 1000, 2000, 5000],
        "maps": ["temperature", "ensemble-temperature", "isotonic", "spline"],
    }

    def variants(self, plan: Plan) -> list[Variant]:
        """Every panel's own; what a plan has no place for (a larger J, more images) is left out."""
        chosen = {name: self.option(plan, name) for name in self.options}
        return [
            variant
            for name in chosen["panels"]
            for variant in QUESTIONS[name].variants(plan, chosen)
        ]

    def findings(self, results: Results) -> Findings:
        """A table for each panel, and all panels in one figure; two of them by severity too."""
        severities = results.severities
        tables: dict[str, Table] = {}
        panels = []
        for name, question in QUESTIONS.items():
            own = results.select(panel=name)
            if own:
                tables[_file(name)] = answer_table(question, own, severities)
                panels.append(answer_panel(question, own, severities))
        figures: dict[str, Any] = {}
        if panels:
            figures["ablation"] = Lines(
                panels=tuple(panels),
                y_label=f"mean {ECE}",
                title=f"One thing varied at a time: mean ECE over {span(severities)}",
                note=OVER_SPLITS,
            )
        parts = results.select(panel=PARTS)
        if parts:
            labels = {record.variant: record.label for record in parts}
            figures[_file(PARTS)] = severity_lines(
                parts, labels, severities, title="What the surrogate sets and the adaptation give"
            )
            tables["shares"] = shares_table(parts, severities)
        fine = select(results.records, panel=FINE)
        if fine:
            figures[_file(FINE)] = ladder_lines(fine, severities)
        return Findings(tables, figures, remarks(results.records, severities, results.plan))

    def check(self, plan: Plan) -> None:
        """Refuse panels, maps and severities that there are not, and natural targets."""
        super().check(plan)
        for name in self.option(plan, "panels"):
            if name not in QUESTIONS:
                raise InputError(
                    f"the study ablation has no panel {name!r}. {suggest(name, list(QUESTIONS))}"
                )
        for name in self.option(plan, "maps"):
            maps.get(name)  # raises, with the nearest name
        for name in ("sets", "images"):
            _check_counts(name, self.option(plan, name))
        known = plan.calibration.severities
        for severities in plan.options.get("spacings", ()):
            if not set(severities) <= set(known):
                raise InputError(
                    "spacings of the study ablation must be of the severities of the plan's "
                    f"[calibration], {list(known)}; got {severities}. Add them there, or leave "
                    "them out here."
                )
        if plan.shifts.sets:
            raise InputError(
                f"the study ablation shows means over severities, and the natural set "
                f"{plan.shifts.sets[0].name!r} has none. Put it into a plan of the study natural."
            )


def _check_counts(name: str, values: Any) -> None:
    whole = isinstance(values, (list, tuple)) and all(
        isinstance(each, int) and not isinstance(each, bool) and each > 0 for each in values
    )
    if not whole or len(set(values)) < len(values):
        raise InputError(
            f"{name} of the study ablation must be different whole numbers above 0; got {values!r}."
        )


def _file(panel: str) -> str:
    return panel.replace(" ", "-")
