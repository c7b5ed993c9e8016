"""The contract of a study."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from shiftcal._registry import suggest
from shiftcal.errors import InputError
from shiftcal.report.tables.table import Table
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.variant import Ladder, Target, Variant, set_name

if TYPE_CHECKING:
    from shiftcal.report.figures.base import FigureData
    from shiftcal.studies.results import Results


@dataclass(frozen=True)
class Findings:
    """What a study shows.

    Attributes:
        tables: By file name.
        figures: By file name.
        remarks: Sentences for the report, each made from the numbers.
        data: Numbers behind tables that are not in ``records.csv``, by file name: CSV.
    """

    tables: Mapping[str, Table]
    figures: Mapping[str, FigureData]
    remarks: Sequence[str] = field(default_factory=tuple)
    data: Mapping[str, str] = field(default_factory=dict)


class Study(ABC):
    """A question about calibration under shift, and how its answer is shown.

    A new study is one file in this package: a subclass with ``variants`` and ``findings``, and a
    plan of the same name in ``studies/plans``.

    Attributes:
        title: What it is called in its report.
        options: What a plan may set below ``[options]``, with the defaults.
    """

    title: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def variants(self, plan: Plan) -> list[Variant]:
        """What is evaluated."""

    @abstractmethod
    def findings(self, results: Results) -> Findings:
        """Tables and figures of the stored records and scores; nothing else is read."""

    def option(self, plan: Plan, name: str) -> Any:
        """What a plan says about an option, or the default."""
        return plan.options.get(name, self.options[name])

    def check(self, plan: Plan) -> None:
        """Refuse a plan that this study cannot run.

        Raises:
            InputError: Naming what is wrong.
        """
        for name in plan.options:
            if name not in self.options:
                hint = suggest(name, sorted(self.options)) if self.options else "It has none."
                raise InputError(f"the study {plan.study!r} has no option {name!r}. {hint}")


def targets_of(plan: Plan, *, calibration: str | None = None) -> tuple[Target, ...]:
    """The targets of a plan: the clean test images, every corruption, every natural set.

    Args:
        plan: The plan.
        calibration: Corruption of the surrogate sets, which is left out; that of the plan by
            default.
    """
    left_out = {calibration or plan.calibration.corruption}
    left_out |= {ladder.corruption for ladder in plan.ladders if ladder.name in left_out}
    found = []
    if 0 in plan.shifts.severities:
        found.append(Target(set_name("", 0), "none", 0))
    found += [
        Target(set_name(corruption, severity), corruption, severity)
        for corruption in plan.shifts.corruptions
        if corruption not in left_out
        for severity in plan.shifts.severities
        if severity
    ]
    found += [Target(each.name, each.name, None) for each in plan.shifts.sets]
    return tuple(found)


def ladder_of(plan: Plan) -> Ladder:
    """The surrogate sets a plan calibrates on."""
    return Ladder(plan.calibration.corruption, plan.calibration.severities)


def compared(plan: Plan) -> list[Variant]:
    """The methods of a plan as variants, each on all of its targets."""
    ladder, targets = ladder_of(plan), targets_of(plan)
    return [
        Variant(
            key=variant_key(each.name, each.settings),
            label=each.label,
            method=each.name,
            ladder=ladder,
            targets=targets,
            settings=each.settings,
            where=each.where,
        )
        for each in plan.methods
    ]


def variant_key(name: str, settings: Mapping[str, Any]) -> str:
    """The name of the method, and of what is set otherwise than by default."""
    return "-".join([name, *(str(value) for value in settings.values())])
