"""What a study of domain adaptation is made of: domains, tasks, trainers, methods and seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from shiftcal.studies.plan.plan import MethodPlan, Plan

STUDY = "adaptation"
_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class DomainPlan:
    """Images of one kind, source or target of a task.

    Attributes:
        name: In files and records: letters, digits, ``-``, ``_`` and ``.``.
        short: In the titles of tasks, such as ``A`` in ``A2C``.
        title: In tables; the name by default.
        images: Alternatives, of which the first that is there is used; each is a text as
            :func:`shiftcal.datasets.as_image_set` takes it, or several, joined end to end.
        labels: A file of their labels, if they bring none.
        limit: Use only so many of them, of a source with every class's share; ``None`` is all.
        fetch: What to tell someone who does not have the images.
    """

    name: str
    short: str
    title: str
    images: tuple[tuple[str, ...], ...]
    labels: str | None = None
    limit: int | None = None
    fetch: str = ""


@dataclass(frozen=True)
class TrainerPlan:
    """A way to train.

    Attributes:
        name: As ``shiftcal adapt --list`` has them.
        label: In tables and figures.
        settings: Options of the trainer and settings of its training.
        where: Where it stands, for messages.
    """

    name: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """In files and records: the name, and what is set otherwise than by its recipe."""
        said = [key if value is True else f"{key}-{value}" for key, value in self.settings.items()]
        return _NOT_IN_FILES.sub("_", "-".join([self.name, *said]))


@dataclass(frozen=True)
class NetworkPlan:
    """What is trained.

    Attributes:
        backbone: A text as :func:`shiftcal.adaptation.adapt` takes it; several are alternatives.
        frozen: Whether its features are computed once, and only what comes after it is trained.
    """

    backbone: tuple[str, ...]
    frozen: bool = False


@dataclass(frozen=True)
class TrainingPlan:
    """How it is trained; every trainer the same.

    Attributes:
        recipe: Name of the trainers' recipe; ``None`` is as for :func:`shiftcal.adaptation.adapt`.
        transform: What is done to training images, by name; ``None`` is what the recipe says.
        select: ``"last"`` or ``"source-validation"``: which of the weights are kept.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` and so on.
        precision: Of the arithmetic on a GPU; ``None`` is float32.
        threads: That each training uses, of which several then run at once; ``None`` is one if
            the backbone is frozen, else all there are.
        settings: Of the training, for all trainers; those of a trainer come after them.
    """

    recipe: str | None = None
    transform: str | None = None
    select: str = "last"
    device: str = "auto"
    precision: str | None = None
    threads: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SurrogatePlan:
    """The surrogate sets, made of the part of the source that is not trained on.

    Attributes:
        corruption: What makes them.
        severities: At which severities, beside the clean set.
    """

    corruption: str = "pixelate"
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Pair:
    """A task: from which domain to which.

    Attributes:
        source: Its images are labelled.
        target: Its images are not.
    """

    source: DomainPlan
    target: DomainPlan

    @property
    def name(self) -> str:
        """In files and records."""
        return f"{self.source.name}_to_{self.target.name}"

    @property
    def title(self) -> str:
        """In tables, as the paper has it: ``A2C``."""
        return f"{self.source.short}2{self.target.short}"


@dataclass(frozen=True)
class AdaptationPlan:
    """A whole study of domain adaptation.

    Attributes:
        domains: At least two.
        tasks: Names of source and target, in the order of the tables.
        trainers: Ways to train.
        network: What is trained.
        training: How.
        calibration: The surrogate sets.
        about: A sentence for the report.
        methods: What is compared on each trained network.
        seeds: One for each split of source and target, with a training of its own.
        bins: Of the ECE.
        paper: Which table of the paper stands beside: ``"office-home"``, ``"visda"``, or none.
        study: Always the same.
        where: Where it stands, for messages.
    """

    domains: tuple[DomainPlan, ...]
    tasks: tuple[tuple[str, str], ...]
    trainers: tuple[TrainerPlan, ...]
    network: NetworkPlan
    training: TrainingPlan = TrainingPlan()
    calibration: SurrogatePlan = SurrogatePlan()
    about: str = ""
    methods: tuple[MethodPlan, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    bins: int = 15
    paper: str | None = None
    study: str = STUDY
    where: str = field(default="the plan", compare=False)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The tasks with their domains."""
        by_name = {domain.name: domain for domain in self.domains}
        return tuple(Pair(by_name[source], by_name[target]) for source, target in self.tasks)

    def is_source(self, domain: DomainPlan) -> bool:
        """Whether a task has it as its source, so that its labels are known."""
        return any(source == domain.name for source, _ in self.tasks)

    def images_of(self, domain: DomainPlan) -> list[object]:
        """What decides which images a domain has, as far as a plan says it."""
        told: list[object] = [domain.images, domain.labels, domain.limit]
        by_chance = domain.limit is not None and not self.is_source(domain)
        return [*told, "by chance"] if by_chance else told


AnyPlan: TypeAlias = Plan | AdaptationPlan
