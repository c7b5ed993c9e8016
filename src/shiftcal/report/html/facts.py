"""Everything that stands on a report."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from shiftcal._html import lines, piece, table
from shiftcal.report.html.evidence import (
    Choice,
    ClassFacts,
    Densities,
    Example,
    MethodFacts,
    SetFacts,
    Shown,
    Warned,
)
from shiftcal.report.html.parts import (
    EstimateFacts,
    Judging,
    Provenance,
    Ranged,
    TargetFacts,
    Verdict,
)

FORMAT, VERSION = "shiftcal-report", 1


@dataclass(frozen=True, repr=False)
class ReportFacts:
    """All that a report says. :func:`shiftcal.report.html.make_facts` makes it."""

    title: str
    target: TargetFacts
    estimate: EstimateFacts | None
    verdict: Verdict
    method: str
    methods: tuple[MethodFacts, ...]
    missing: dict[str, str]
    shown: Shown
    choice: Choice
    sets: tuple[SetFacts, ...]
    densities: Densities
    classes: tuple[ClassFacts, ...]
    examples: tuple[Example, ...]
    warnings: tuple[Warned, ...]
    judging: Judging
    provenance: Provenance

    def of(self, name: str) -> MethodFacts:
        """The facts of a method by its name."""
        return next(one for one in self.methods if one.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it; pictures are left out."""
        facts: dict[str, Any] = _finite(asdict(self))
        for example in facts["examples"]:
            del example["picture"]
        head = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"shiftcal {version('shiftcal')}",
        }
        return {**head, **facts}

    def __repr__(self) -> str:
        return f"<ReportFacts: {self.target.name}, {self.target.n:,} rows: {self.verdict.headline}>"

    def _repr_html_(self) -> str:
        told = lines([self.verdict.reason, *self.verdict.advice])
        return piece(self.verdict.headline, told, self._methods_html())

    def _methods_html(self) -> str:
        labelled = self.target.accuracy is not None
        what = "ECE" if labelled else "confidence - estimated accuracy"
        rows = [
            (
                one.name,
                "-" if one.temperature is None else f"{one.temperature:.3g}",
                f"{one.mean_confidence:.4f}",
                _told(one.ece if labelled else one.gap),
            )
            for one in self.methods
        ]
        marked = [one.name for one in self.methods].index(self.method)
        head = ("method", "T", "mean confidence", what)
        return table(head, rows, total=len(rows), most=len(rows), marked=marked)


def _told(found: Ranged | None) -> str:
    if found is None:
        return "-"
    ends = "" if found.low is None else f" ({found.low:.4f} to {found.high:.4f})"
    return f"{found.value:.4f}{ends}"


def _finite(value: Any) -> Any:
    """The same with ``None`` for numbers that JSON has no word for."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
