"""Synthetic shift: every method on corrupted test images, severity by severity."""

from __future__ import annotations

from typing import ClassVar, final

from shiftcal.studies.catalog.base import Findings, Study, ladder_of
from shiftcal.studies.records import Results
from shiftcal.studies.tables import (
    chosen_table,
    full_table,
    labels_of,
    severity_boxes,
    severity_lines,
    severity_table,
    temperature_table,
)


@final
class Synthetic(Study):
    """Which method keeps confidences calibrated when images are corrupted in new ways?

    The test images under every corruption of the plan but that of the surrogate sets, at every
    severity. The paper shows the means over corruptions as lines and their quartiles as boxes.
    """

    name: ClassVar[str] = "synthetic"
    title: ClassVar[str] = "Synthetic shift"

    def findings(self, results: Results) -> Findings:
        """Means, boxes, every target, temperatures and choices."""
        severities = results.severities
        records = [record for record in results.records if record.severity is not None]
        if not records:
            return Findings({}, {})
        variants = labels_of(records)
        title = "Mean ECE over corruptions"
        tables = {
            "mean-ece": severity_table(records, variants, severities, title=title),
            "full": full_table(records, variants),
        }
        if any(record.temperature and record.method != "vanilla" for record in records):
            tables["temperatures"] = temperature_table(records, variants, severities)
        if any(record.chosen for record in records):
            tables["chosen"] = chosen_table(records, ladder_of(results.plan).sets)
        boxes = "ECE of every corruption"
        figures = {
            "ece-means": severity_lines(records, variants, severities, title=title),
            "ece-boxes": severity_boxes(records, variants, severities, title=boxes),
        }
        return Findings(tables, figures)
