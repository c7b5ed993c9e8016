"""Synthetic shift: every method on corrupted test images, severity by severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, final

from shiftcal.studies.catalog.base import Findings, Study, compared, ladder_of
from shiftcal.studies.details import chosen_table, full_table, temperature_table
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.results import Results, select
from shiftcal.studies.saying import (
    flags_raised,
    paper_order,
    ranking,
    same_when_clean,
    transcal_readings,
    worse_than,
)
from shiftcal.studies.showing import severity_boxes, severity_lines, severity_table
from shiftcal.studies.variant import Variant

# Where the paper's order must come out.
STRONG = (3, 4, 5)
_BOXES = (
    "A value is the ECE under one corruption, its mean over the splits; severity 0 has one, the "
    "clean test images. Boxes: quartiles; whiskers: values within 1.5 times their distance; "
    "diamonds: means."
)


@final
class Synthetic(Study):
    """Which method keeps confidences true when images are corrupted in ways nobody calibrated on?

    The test images under every corruption of the plan but that of the surrogate sets, at every
    severity. The paper shows the means over corruptions as lines and their quartiles as boxes.
    """

    title: ClassVar[str] = "Synthetic shift"

    def variants(self, plan: Plan) -> list[Variant]:
        """The methods of the plan on all of its targets."""
        return compared(plan)

    def findings(self, results: Results) -> Findings:
        """Means, boxes, every target, temperatures and choices."""
        severities = results.severities
        records = [record for record in results.records if record.severity is not None]
        if not records:
            return Findings(
                {}, {}, ("No record of this study is of a corruption or the clean set.",)
            )
        variants = {record.variant: record.label for record in records}
        title = "Mean ECE over corruptions"
        tables = {
            "mean-ece": severity_table(records, variants, severities, title=title),
            "full": full_table(records, variants),
        }
        if any(record.temperature and record.method != "vanilla" for record in records):
            tables["temperatures"] = temperature_table(records, variants, severities)
        if any(record.chosen for record in records):
            tables["chosen"] = chosen_table(records, ladder_of(results.plan).sets)
        figures = {
            "ece-means": severity_lines(records, variants, severities, title=title),
            "ece-boxes": severity_boxes(
                records,
                variants,
                severities,
                title="ECE of every corruption",
                note=_BOXES,
            ),
        }
        return Findings(tables, figures, remarks(results.plan, records, variants))


def remarks(plan: Plan, records: Sequence[Record], variants: Mapping[str, str]) -> tuple[str, ...]:
    """What the records say about the paper's claims."""
    severities = sorted({r.severity for r in records if r.severity is not None})
    strong = [severity for severity in severities if severity in STRONG]
    found: list[str] = []
    if strong:
        own = select(records, severity=strong)
        where = f"over {_told(strong)}"
        found += ranking(own, variants, where=where) + paper_order(own, where=where)
    found += same_when_clean(records)
    for other in ("ts", "vanilla"):
        found += worse_than(records, "sts", other, severities)
    corrupted = [record for record in records if record.severity]
    found += transcal_readings(plan, corrupted, where="over the corrupted targets")
    found += flags_raised(records, variants)
    return tuple(found)


def _told(severities: Sequence[int]) -> str:
    first, last = severities[0], severities[-1]
    if len(severities) == 1:
        return f"severity {first}"
    if len(severities) <= last - first:
        return f"severities {' and '.join(map(str, severities))}"
    return f"severities {first} to {last}"
