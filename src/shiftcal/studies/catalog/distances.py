"""Which distance chooses the surrogate set: of the means, Kolmogorov-Smirnov, or Wasserstein."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar, final

from shiftcal.errors import InputError
from shiftcal.report.tables import Column, Row, Table
from shiftcal.studies.catalog.base import Findings, Study
from shiftcal.studies.plan import Plan
from shiftcal.studies.records import Results, same_set
from shiftcal.studies.tables import (
    OVER_SPLITS,
    labels_of,
    percent,
    severity_boxes,
    severity_table,
    spans,
)


@final
class Distances(Study):
    """SAC with several distances between target and surrogate sets, as the plan lists them."""

    name: ClassVar[str] = "distances"
    title: ClassVar[str] = "The distance that chooses the surrogate set"

    def check(self, plan: Plan) -> None:
        """Reject a plan with nothing to compare."""
        super().check(plan)
        if sum(each.name == "sac" for each in plan.methods) < 2:
            raise InputError(
                f"the study {plan.study!r} compares SAC under several distances: methods must list "
                'it at least twice, such as {name = "sac", label = "SAC, KS", distance = "ks"}.'
            )

    def findings(self, results: Results) -> Findings:
        """Boxes and means by severity, and how often two distances choose the same set."""
        records, severities = results.records, results.severities
        if not severities:
            return Findings({}, {})
        labels = labels_of(records)
        title = "Mean ECE by distance"
        tables = {"mean-ece": severity_table(records, labels, severities, title=title)}
        if len(labels_of(results.select(method="sac"))) > 1:
            tables["agreement"] = _agreement(results)
        title = "ECE by distance and severity"
        boxes = severity_boxes(records, labels, severities, title=title)
        return Findings(tables, {"distances": boxes})


def _agreement(results: Results) -> Table:
    """The share of targets for which two variants chose the same surrogate set."""
    columns = spans(results.severities)
    labels = labels_of(results.select(method="sac"))
    rows = []
    for one, other in combinations(labels, 2):
        shares = (
            same_set(
                results.select(variant=one, severity=span),
                results.select(variant=other, severity=span),
            )
            for span in columns.values()
        )
        rows.append(Row(f"{labels[one]} and {labels[other]}", tuple(map(percent, shares))))
    return Table(
        "Targets for which the same surrogate set is chosen",
        tuple(Column(name, unit="%", digits=1) for name in columns),
        tuple(rows),
        note=OVER_SPLITS,
        corner="Pair",
    )
