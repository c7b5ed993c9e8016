"""What a study is: the variants it evaluates, and the tables and figures it shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from shiftcal.errors import InputError
from shiftcal.registry import STUDIES
from shiftcal.report.tables import Table
from shiftcal.studies.plan import CLEAN, STRICT, Plan, check_learning, uses_bank, validated

if TYPE_CHECKING:
    from shiftcal.report.figures import FigureData
    from shiftcal.studies.records import Results


def set_name(corruption: str, severity: int) -> str:
    """Name of the images under a corruption in files and records."""
    return f"{corruption}-{severity}" if severity else CLEAN


@dataclass(frozen=True)
class Ladder:
    """The surrogate sets a method learns from.

    Attributes:
        corruption: What made them.
        severities: In addition to the clean set, which always is the first.
        images: How many calibration images; default: all of the split.
    """

    corruption: str
    severities: tuple[int, ...]
    images: int | None = None

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets, the clean one first."""
        return (CLEAN, *(set_name(self.corruption, s) for s in self.severities))


@dataclass(frozen=True)
class Target:
    """Images to be calibrated for.

    Attributes:
        name: Of the scored set.
        corruption: What shifted it; the name itself for a natural shift.
        severity: 0 for the clean test images; ``None`` for a natural shift.
    """

    name: str
    corruption: str
    severity: int | None

    @property
    def natural(self) -> bool:
        """Whether it has its own images, all of which are tested on."""
        return self.severity is None


@dataclass(frozen=True)
class Variant:
    """One thing that is compared: a method, its settings and its surrogate sets.

    Attributes:
        key: Short name, unique within a panel and a setting; the same method has the same key, and
            so the same colour, in every study.
        label: In tables and legends.
        method: Name of a method, or ``"oracle"``.
        ladder: What it learns from.
        targets: What it is evaluated on.
        settings: Of the method.
        panel: Which question of the study it belongs to; one question has none.
        setting: What is varied within the panel, as text.
        draws: How often it is evaluated with another ``seed``, for methods that draw.
    """

    key: str
    label: str
    method: str
    ladder: Ladder
    targets: tuple[Target, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    panel: str = ""
    setting: str = ""
    draws: int = 1


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

    A new study is a subclass with ``name``, ``title`` and ``findings``, a line in the table of
    studies in ``registry.py``, and a plan of the same name in ``studies/plans``.

    Attributes:
        name: What plans call it.
        title: Of its report.
        by_severity: Whether it shows means over severities, and so needs shifts that have some.
        Options: What a plan may set below ``[options]``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    by_severity: ClassVar[bool] = True

    @dataclass(frozen=True)
    class Options:
        """None, by default."""

        __pydantic_config__ = STRICT

    @abstractmethod
    def findings(self, results: Results) -> Findings:
        """Tables and figures of the stored records and scores; nothing else is read."""

    def variants(self, plan: Plan) -> list[Variant]:
        """What is evaluated; by default the methods of the plan on all of its targets."""
        return compared(plan)

    def options(self, plan: Plan) -> Any:
        """The options of a plan, with the defaults."""
        return validated(self.Options, dict(plan.options), f"{plan.where} [options]")

    def check(self, plan: Plan) -> None:
        """Reject a plan that this study cannot run.

        Raises:
            InputError: Naming what is wrong.
        """
        self.options(plan)


def targets_of(plan: Plan, *, calibration: str | None = None) -> tuple[Target, ...]:
    """The targets of a plan: the clean test images, every corruption, every natural set.

    Args:
        plan: The plan.
        calibration: Corruption of the surrogate sets, which is left out; default: that of the plan.
    """
    left_out = {calibration or plan.calibration.corruption}
    left_out |= {ladder.corruption for ladder in plan.ladders if ladder.name in left_out}
    targets = [Target(CLEAN, "none", 0)] if 0 in plan.shifts.severities else []
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


def variants_of(plan: Plan) -> list[Variant]:
    """What a plan evaluates.

    Raises:
        InputError: If nothing is compared.
    """
    study = study_of(plan)
    variants = study.variants(plan)
    targets = {target for variant in variants for target in variant.targets}
    if not targets or (study.by_severity and not any(target.severity for target in targets)):
        raise InputError(
            f"{plan.where} compares nothing: it needs methods, and [shifts] corruptions and "
            "severities to compare them on; the corruption of the surrogate sets is left out."
        )
    check_learning(plan, {v.label: v.ladder.severities for v in variants if uses_bank(v.method)})
    return variants
