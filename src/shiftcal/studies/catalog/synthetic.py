"""Synthetic shift: every method on corrupted test images, severity by severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, final

from shiftcal.studies.catalog._synthetic_claims import (
    gain_most,
    lowest_everywhere,
    weighting_improves,
)
from shiftcal.studies.catalog.base import Findings, Study, compared, ladder_of
from shiftcal.studies.comparing import CLEARLY
from shiftcal.studies.details import chosen_table, full_table, temperature_table
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.results import Results, select
from shiftcal.studies.saying import (
    changed_choice,
    flags_raised,
    paper_order,
    ranking,
    same_when_clean,
    targets_above,
    transcal_readings,
    worse_than,
)
from shiftcal.studies.showing import (
    severities_in_words,
    severity_boxes,
    severity_lines,
    severity_table,
)
from shiftcal.studies.variant import Variant

# Where the paper's order must come out.
STRONG = (3, 4, 5)
_BOXES = (
    "A value is the ECE under one corruption, its mean over the splits; severity 0 has one, the "
    "clean test images."
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
    own = select(records, severity=strong)
    where = f"over {severities_in_words(strong)}" if strong else ""
    found = ranking(own, variants, where=where) + lowest_everywhere(records, variants)
    if strong:
        found += gain_most(records, variants, strong)
        found += weighting_improves(plan, records, variants, strong)
        found += paper_order(own, where=where)
        for key, other in (("sac", "sts"), ("sts", "ts")):
            found += targets_above(own, key, other, where=f"at {severities_in_words(strong)}")
    found += targets_above(records, "sac", "ts", where="")
    found += [CLEARLY] * any(" of them clearly" in each for each in found)
    found += changed_choice(records)
    found += same_when_clean(records)
    for other in ("ts", "vanilla"):
        found += worse_than(records, "sts", other, severities)
    corrupted = [record for record in records if record.severity]
    found += transcal_readings(plan, corrupted, where="over the corrupted targets")
    found += flags_raised(records, variants)
    return tuple(found)
