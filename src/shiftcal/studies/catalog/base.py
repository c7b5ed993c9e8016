"""The contract of a study, and what a plan evaluates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from shiftcal.errors import InputError
from shiftcal.registry import STUDIES, suggest
from shiftcal.report.tables import Table
from shiftcal.studies.plan import Ladder, Plan, Target, Variant, set_name, uses_bank

if TYPE_CHECKING:
    from shiftcal.report.figures import FigureData
    from shiftcal.studies.records import Results


@dataclass(frozen=True)
class Findings:
    """What a study shows.

    Attributes:
        tables: By file name.
        figures: By file name.
        data: Numbers behind tables that are not in ``records.csv``, by file name: CSV.
    """

    tables: Mapping[str, Table]
    figures: Mapping[str, FigureData]
    data: Mapping[str, str] = field(default_factory=dict)


class Study(ABC):
    """A question about calibration under shift, and how its answer is shown.

    A new study is a subclass with ``name`` and ``findings``, a line in the table of studies in
    ``registry.py``, and a plan of the same name in ``studies/plans``.

    Attributes:
        name: What plans call it.
        title: Of its report.
        options: What a plan may set below ``[options]``, with the defaults.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def findings(self, results: Results) -> Findings:
        """Tables and figures of the stored records and scores; nothing else is read."""

    def variants(self, plan: Plan) -> list[Variant]:
        """What is evaluated; by default the methods of the plan on all of its targets."""
        return compared(plan)

    def option(self, plan: Plan, name: str) -> Any:
        """The value of an option in a plan, or the default."""
        return plan.options.get(name, self.options[name])

    def check(self, plan: Plan) -> None:
        """Reject a plan that this study cannot run.

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
        calibration: Corruption of the surrogate sets, which is left out; default: that of the plan.
    """
    left_out = {calibration or plan.calibration.corruption}
    left_out |= {ladder.corruption for ladder in plan.ladders if ladder.name in left_out}
    targets = [Target(set_name("", 0), "none", 0)] if 0 in plan.shifts.severities else []
    targets += [
        Target(set_name(corruption, severity), corruption, severity)
        for corruption in plan.shifts.corruptions
        if corruption not in left_out
        for severity in plan.shifts.severities
        if severity
    ]
    targets += [Target(each.name, each.name, None) for each in plan.shifts.sets]
    return tuple(targets)


def ladder_of(plan: Plan) -> Ladder:
    """The surrogate sets a plan calibrates on."""
    return Ladder(plan.calibration.corruption, plan.calibration.severities)


def compared(plan: Plan) -> list[Variant]:
    """The methods of a plan as variants, each on all of its targets."""
    ladder, targets = ladder_of(plan), targets_of(plan)
    return [
        Variant(each.key, each.label, each.name, ladder, targets, each.settings)
        for each in plan.methods
    ]


def study_of(plan: Plan) -> Study:
    """The study of a plan.

    Raises:
        UnknownName: If there is no study of that name.
        InputError: If the study does not accept the plan.
    """
    study: Study = STUDIES.get(plan.study)()
    study.check(plan)
    return study


def variants_of(plan: Plan, n: int) -> list[Variant]:
    """What a plan evaluates.

    Args:
        plan: The plan.
        n: How many images there are.

    Raises:
        InputError: If too little is left to test on, or nothing is compared.
    """
    test = n - plan.calibration.images
    if test < plan.bins:
        raise InputError(
            f"{plan.where} calibrates on {plan.calibration.images:,} of {n:,} images, which leaves "
            f"{max(test, 0):,} for the test: each of the {plan.bins:,} bins of the ECE needs at "
            "least one, better ten. Lower bins, or [calibration] images."
        )
    variants = study_of(plan).variants(plan)
    targets = {target for variant in variants for target in variant.targets}
    asked = any(plan.shifts.severities) and plan.shifts.corruptions
    if variants and asked and all(target.severity == 0 for target in targets):
        raise InputError(
            f"{plan.where} [shifts] corruptions must name another than that of the surrogate sets, "
            f"which is left out; got {', '.join(plan.shifts.corruptions)} alone."
        )
    if not targets:
        raise InputError(
            f"{plan.where} compares nothing: it needs methods, and shifts to compare them on."
        )
    seen: dict[tuple[str, ...], str] = {}
    for variant in variants:
        if variant.identity in seen:
            raise InputError(
                f"the plan compares {seen[variant.identity]!r} with {variant.label!r}, which have "
                "the same method and settings. Leave one out, or change a setting."
            )
        seen[variant.identity] = variant.label
    learning = [variant for variant in variants if uses_bank(variant.method)]
    if learning and not any(variant.ladder.severities for variant in learning):
        names = ", ".join(dict.fromkeys(variant.label for variant in learning))
        raise InputError(
            f"{plan.where} [calibration] severities must name at least one: {names} learn from "
            "surrogate sets. Add some, or leave the methods out."
        )
    return variants
