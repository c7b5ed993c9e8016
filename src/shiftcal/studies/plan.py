"""Plans: what a study is made of and evaluates, read from TOML and written to it.

A plan is data and may come from anybody. Its tables are the dataclasses below, which pydantic reads
from TOML; ``to_toml`` writes them back.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from shiftcal import corruptions
from shiftcal.corruptions import Corruption
from shiftcal.errors import FileError, InputError, UnknownName, suggest
from shiftcal.registry import CORRUPTIONS, METHODS, METRICS, TRAINERS, is_own

ORACLE, CLEAN, ADAPTATION = "oracle", "clean", "adaptation"
BUILT_IN = Path(__file__).parent / "plans"
# How a user names the model of a plan.
NAME_IT = "--model {0}, in Python read_plan(..., model={0})"


# --------------------------------------------------------------------------------------
# Types of entries
# --------------------------------------------------------------------------------------


def _different(*attributes: str) -> AfterValidator:
    """No two values are the same, or have the same value of one of the attributes."""

    def check(values: tuple[Any, ...]) -> tuple[Any, ...]:
        for name in attributes or ("",):
            compared = [getattr(each, name) if name else each for each in values]
            if len(set(compared)) < len(compared):
                raise ValueError(f"must have a different {name or 'value'} each; got {compared}")
        return values

    return AfterValidator(check)


def _called(*entries: str) -> BeforeValidator:
    """Entries of a table that by default are its name."""

    def filled(value: Any) -> Any:
        by_name = dict.fromkeys(entries, value.get("name")) if isinstance(value, dict) else None
        return value if by_name is None else {**by_name, **value}

    return BeforeValidator(filled)


def _as_list(value: object) -> object:
    return [value] if isinstance(value, (str, int, float)) else value


def _as_lists(value: object) -> object:
    return [_as_list(each) for each in value] if isinstance(value, list) else value


def _named(value: object) -> object:
    """A method or trainer: a name alone, or a table with the settings next to the name."""
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        return table
    own = {key: table[key] for key in ("name", "label") if key in table}
    return {**own, "settings": {key: table[key] for key in table if key not in own}}


def _method(plan: NamedPlan) -> NamedPlan:
    if plan.name == ORACLE:
        if plan.settings:
            raise ValueError(f"the oracle has no settings; got {', '.join(plan.settings)}")
        return replace(plan, label=plan.label or "Oracle")
    method = METHODS.get(plan.name)
    if method.uses_mixed:
        raise ValueError(f"{method.__name__} needs mixed target images, which no study scores")
    method().set_params(**plan.settings)
    return replace(plan, label=plan.label or method.__name__)


def _trainer(plan: NamedPlan) -> NamedPlan:
    return replace(plan, label=plan.label or TRAINERS.get(plan.name).label)


def _metric(name: str) -> str:
    METRICS.get(name)  # raises
    return METRICS.canonical(name)


def _ladder(ladder: LadderPlan) -> LadderPlan:
    corruptions.Strengths(ladder.corruption, ladder.strengths, name=ladder.name)  # raises
    return ladder


_Word = Annotated[str, Field(min_length=1)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
_Corruption = Annotated[_Word, AfterValidator(CORRUPTIONS.canonical)]
Count = Annotated[int, Field(strict=True, ge=1)]
_Seed = Annotated[int, Field(strict=True, ge=0)]
_List = BeforeValidator(_as_list)
_Places = Annotated[tuple[_Word, ...], _List, Field(min_length=1)]
_Rising = AfterValidator(lambda values: tuple(sorted(values)))
Names = Annotated[tuple[_Word, ...], _different(), Field(min_length=1)]
Counts = Annotated[tuple[Count, ...], _different(), _Rising]
_Seeds = Annotated[tuple[_Seed, ...], _different(), Field(min_length=1)]
_Numbers = Annotated[tuple[Annotated[float, Field(strict=True)], ...], Field(min_length=1)]
_Methods = Annotated[
    tuple[Annotated["NamedPlan", BeforeValidator(_named), AfterValidator(_method)], ...],
    _different("label", "key"),
]
_Metrics = Annotated[tuple[Annotated[_Word, AfterValidator(_metric)], ...], _different()]
_Trainers = Annotated[
    tuple[Annotated["NamedPlan", BeforeValidator(_named), AfterValidator(_trainer)], ...],
    _different("label", "key"),
]


# --------------------------------------------------------------------------------------
# What studies are made of
# --------------------------------------------------------------------------------------


class Strict:
    """A table in which no other entries may be."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}


@dataclass(frozen=True)
class ModelPlan(Strict):
    """The classifier.

    Attributes:
        spec: As :func:`shiftcal.models.as_model` takes it; several are alternatives, of which the
            first that exists is used.
        groups: Name of a grouping of its classes into fewer, such as ``"imagenet16"``.
    """

    spec: _Places
    groups: str | None = None


@dataclass(frozen=True)
class DataPlan(Strict):
    """Images like those the model was trained on.

    Attributes:
        images: To calibrate and to test on, as :func:`shiftcal.datasets.as_image_set` takes them;
            several are alternatives, of which the first that exists is used.
        labels: A file of their labels, if they bring none.
        limit: Use only so many of them, a stratified choice; default: all.
        train: Training images, for methods that need their features.
        train_labels: As ``labels``.
        train_limit: How many of the training images are used.
        fetch: How to get the images.
    """

    images: _Places
    labels: str | None = None
    limit: Count | None = None
    train: Annotated[tuple[_Word, ...], _List] = ()
    train_labels: str | None = None
    train_limit: Count = 10_000
    fetch: str = ""


@dataclass(frozen=True)
class SurrogatePlan(Strict):
    """The surrogate sets; for domain adaptation of the part of the source that is not trained on.

    Attributes:
        corruption: What makes them.
        severities: At which severities, in addition to the clean set.
    """

    corruption: _Corruption = "pixelate"
    severities: Counts = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class CalibrationPlan(SurrogatePlan):
    """The surrogate sets, made of the calibration images.

    Attributes:
        images: How many images are calibrated on; the others are tested on.
    """

    images: Count = 5000


@dataclass(frozen=True)
class NaturalSet(Strict):
    """A target with its own images.

    Attributes:
        name: In files and records: letters, digits, ``-``, ``_`` and ``.``.
        title: In tables; default: the name.
        images: As for :class:`DataPlan`.
        labels: As for :class:`DataPlan`.
        fetch: As for :class:`DataPlan`.
    """

    name: _Name
    title: _Word
    images: _Places
    labels: str | None = None
    fetch: str = ""


@dataclass(frozen=True)
class ShiftPlan(Strict):
    """The targets.

    Attributes:
        corruptions: By which the test images are shifted.
        severities: At which severities; 0 is the clean test images.
        seed: Of the corruptions' random numbers.
        sets: Natural targets.
    """

    corruptions: Annotated[tuple[_Corruption, ...], _List, _different()] = ()
    severities: Annotated[tuple[_Seed, ...], _different(), _Rising] = (0, 1, 2, 3, 4, 5)
    seed: _Seed = 0
    sets: Annotated[
        tuple[Annotated[NaturalSet, _called("title")], ...], _different("name", "title")
    ] = ()


@dataclass(frozen=True)
class LadderPlan(Strict):
    """A corruption with the plan's own strengths.

    Attributes:
        name: By which the plan calls it.
        corruption: The published corruption.
        strengths: One setting for each severity from 1 on.
    """

    name: _Corruption
    corruption: _Corruption
    strengths: Annotated[tuple[_Numbers, ...], BeforeValidator(_as_lists)]


@dataclass(frozen=True)
class NamedPlan:
    """A method or a trainer.

    Attributes:
        name: As ``shiftcal list`` shows them; or ``"oracle"``.
        label: In tables and figures.
        settings: Of the method; or options of the trainer and settings of its training.
    """

    name: Annotated[_Word, AfterValidator(METHODS.canonical)]
    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """In files and records: the name, and the values of the settings."""
        values = (key if value is True else str(value) for key, value in self.settings.items())
        return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join([self.name, *values]))


@dataclass(frozen=True)
class Plan(Strict):
    """A whole study.

    Attributes:
        study: Which of :func:`shiftcal.studies.names`.
        about: A sentence for the report.
        model: The classifier.
        data: Its images.
        calibration: The surrogate sets.
        shifts: The targets.
        methods: What is compared.
        seeds: One for each split into calibration and test.
        bins: Of the ECE.
        metrics: What else is computed of every evaluation, by names of ``shiftcal list``.
        ladders: Corruptions with the plan's own strengths.
        options: Of the study itself.
        where: Its name in messages.
        stored: Whether its model is named by a text that may be anybody's, and not by the user or
            by shiftcal: then it is loaded only if it is read as data.
    """

    study: _Word
    model: ModelPlan
    data: DataPlan
    about: str = ""
    calibration: CalibrationPlan = CalibrationPlan()
    shifts: ShiftPlan = ShiftPlan()
    methods: _Methods = ()
    seeds: _Seeds = (0, 1, 2, 3, 4)
    bins: Count = 15
    metrics: _Metrics = ()
    ladders: Annotated[
        tuple[Annotated[LadderPlan, AfterValidator(_ladder)], ...], _different("name")
    ] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="the plan", compare=False)
    stored: bool = field(default=False, compare=False)


# --------------------------------------------------------------------------------------
# What studies of domain adaptation are made of
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DomainPlan(Strict):
    """Images of one kind, source or target of a task.

    Attributes:
        name: In files and records: letters, digits, ``-``, ``_`` and ``.``.
        short: In the titles of tasks, such as ``A`` in ``A2C``; default: the name.
        title: In tables; default: the name.
        images: Alternatives, of which the first that exists is used; each is a text as
            :func:`shiftcal.datasets.as_image_set` takes it, or several, joined end to end.
        labels: A file of their labels, if they bring none.
        limit: Use only so many of them, of a source with every class's share; default: all.
        fetch: How to get the images.
    """

    name: _Name
    short: _Word
    title: _Word
    images: Annotated[
        tuple[Annotated[tuple[_Word, ...], Field(min_length=1)], ...],
        BeforeValidator(lambda value: _as_lists(_as_list(value))),
        Field(min_length=1),
    ]
    labels: str | None = None
    limit: Count | None = None
    fetch: str = ""


@dataclass(frozen=True)
class NetworkPlan(Strict):
    """What is trained.

    Attributes:
        backbone: As :func:`shiftcal.adaptation.adapt` takes it; several are alternatives.
        frozen: Whether its features are computed once, and only what comes after it is trained.
    """

    backbone: _Places
    frozen: Annotated[bool, Field(strict=True)] = False


@dataclass(frozen=True)
class TrainingPlan(Strict):
    """How it is trained; every trainer the same.

    Attributes:
        recipe: Name of the trainers' recipe; default: as for :func:`shiftcal.adaptation.adapt`.
        transform: Transform of training images, by name; default: that of the recipe.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` and so on.
        threads: That each training uses, of which several then run at once; default: one if the
            backbone is frozen, else all.
        settings: Of the training, for all trainers; those of a trainer override them.
    """

    recipe: str | None = None
    transform: str | None = None
    device: Annotated[_Word, Field(pattern=r"^[a-z]+(:[0-9]+)?$")] = "auto"
    threads: Count | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class Pair(NamedTuple):
    """A task: from the labelled images of a source to the unlabelled ones of a target."""

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
class AdaptationPlan(Strict):
    """A whole study of domain adaptation.

    Attributes:
        domains: At least two.
        tasks: Names of source and target, in the order of the tables; default: all pairs.
        trainers: Ways to train.
        network: What is trained.
        training: How.
        calibration: The surrogate sets.
        about: A sentence for the report.
        methods: What is compared on each trained network.
        seeds: One for each split of source and target, with its own training.
        bins: Of the ECE.
        metrics: As for :class:`Plan`.
        study: Always ``"adaptation"``.
        where: Its name in messages.
        stored: As for :class:`Plan`.
    """

    domains: Annotated[
        tuple[Annotated[DomainPlan, _called("title", "short")], ...],
        _different("name", "short"),
        Field(min_length=2),
    ]
    tasks: Annotated[tuple[tuple[str, str], ...], _different(), Field(min_length=1)]
    trainers: _Trainers
    network: NetworkPlan
    training: TrainingPlan = TrainingPlan()
    calibration: SurrogatePlan = SurrogatePlan()
    about: str = ""
    methods: Annotated[_Methods, Field(min_length=1)] = ()
    seeds: _Seeds = (0, 1, 2, 3, 4)
    bins: Count = 15
    metrics: _Metrics = ()
    study: str = ADAPTATION
    where: str = field(default="the plan", compare=False)
    stored: bool = field(default=False, compare=False)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The tasks with their domains."""
        by_name = {domain.name: domain for domain in self.domains}
        return tuple(Pair(by_name[source], by_name[target]) for source, target in self.tasks)

    def is_source(self, domain: DomainPlan) -> bool:
        """Whether a task has it as its source, so that its labels are known."""
        return any(source == domain.name for source, _ in self.tasks)


AnyPlan: TypeAlias = Plan | AdaptationPlan


def image_specs(plan: AnyPlan) -> list[str]:
    """Every text of images in a plan."""
    if isinstance(plan, AdaptationPlan):
        return [text for domain in plan.domains for texts in domain.images for text in texts]
    sets = [text for each in plan.shifts.sets for text in each.images]
    return [*plan.data.images, *plan.data.train, *sets]


def uses_bank(method: str) -> bool:
    """Whether a method learns from surrogate sets."""
    return method != ORACLE and bool(METHODS.get(method).uses_bank)


def uses_features(method: str) -> bool:
    """Whether a method needs features of training images and target."""
    return method != ORACLE and bool(METHODS.get(method).uses_features)


def digest(*entries: object) -> str:
    """A short digest of entries of a plan."""
    return hashlib.blake2b(json.dumps(entries).encode(), digest_size=4).hexdigest()


def corruption_of(plan: AnyPlan, name: str) -> Corruption:
    """A corruption by its name in a plan, which may be that of one of its ladders."""
    for ladder in plan.ladders if isinstance(plan, Plan) else ():
        if ladder.name == name:
            # Files of other strengths under the same name stay what they are.
            unique = f"{ladder.name}..{digest(ladder.corruption, ladder.strengths)}"
            return corruptions.Strengths(ladder.corruption, ladder.strengths, name=unique)
    return corruptions.as_corruption(name)


def check_severity(plan: AnyPlan, name: str, severity: int) -> None:
    """Reject a severity that a corruption does not have.

    Raises:
        UnknownName: If there is no such corruption.
        InputError: If it has fewer severities.
    """
    most = corruption_of(plan, name).severities
    if severity > most:
        raise InputError(f"{plan.where}: {name} has the severities 1 to {most}; got {severity}.")


# --------------------------------------------------------------------------------------
# What a plan evaluates
# --------------------------------------------------------------------------------------


def set_name(corruption: str, severity: int) -> str:
    """Name of the images under a corruption in files and records."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{corruption}-{severity}") if severity else CLEAN


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


# --------------------------------------------------------------------------------------
# From TOML to a plan
# --------------------------------------------------------------------------------------

# Entries that hold names of methods, maps, metrics, corruptions and trainers.
_NAMES = {"methods", "trainers", "name", "method", "estimator", "map", "maps"}
_NAMES |= {"corruption", "corruptions", "choices", "metrics"}
# Never from a text: where it was read, and whether it is trusted.
_HIDDEN = ("where", "stored")


def names() -> list[str]:
    """The studies that shiftcal knows by name."""
    return sorted(file.stem for file in BUILT_IN.glob("*.toml"))


def plan_text(plan: str | os.PathLike[str]) -> tuple[str, str]:
    """The text of a plan and its name in messages.

    Args:
        plan: Name of one that comes with shiftcal, or a file.

    Raises:
        UnknownName: If it is neither.
        FileError: If the file cannot be read.
    """
    name = os.fspath(plan)
    if name in names():
        return (BUILT_IN / f"{name}.toml").read_text("utf-8"), f"the plan {name!r}"
    file = Path(name)
    if file.suffix.lower() != ".toml" and not file.exists():
        raise UnknownName(
            f"no study is called {name!r}, and no file. {suggest(name, names())} Your own plan "
            "is a file that ends in .toml."
        )
    try:
        return file.read_text("utf-8"), name
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise FileError(f"{name} could not be read: {reason or error}.") from error


def read_plan(
    text: str,
    *,
    data: str | os.PathLike[str] | None = None,
    where: str = "plan",
    model: str | None = None,
) -> AnyPlan:
    """A plan from its text.

    A plan is data and may come from anybody: a model in it that runs code or contacts a host is
    loaded only if it is named again as ``model``. Plans that come with shiftcal are trusted.

    Args:
        text: TOML.
        data: What ``{data}`` stands for in it.
        where: Its name in messages.
        model: The model, or the backbone, instead of the text's own.

    Raises:
        InputError: Naming the entry that is missing, unknown or has a wrong value.
        FileError: If it is not TOML at all.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where} is not TOML: {error}.") from error
    values = _filled(values, None if data is None else os.fspath(data), where)
    own = any(text == file.read_text("utf-8") for file in BUILT_IN.glob("*.toml"))
    values |= {"where": where, "stored": model is None and not own}
    kind = AdaptationPlan if values.get("study") == ADAPTATION else Plan
    if kind is AdaptationPlan and values.get("tasks", "all") == "all":
        domains = values.get("domains", ())
        names = [each.get("name") for each in domains if isinstance(each, dict)]
        values["tasks"] = list(permutations(names, 2))
    plan: AnyPlan = validated(kind, values, where)
    _check(plan)
    if model is None:
        return plan
    if isinstance(plan, Plan):
        return replace(plan, model=replace(plan.model, spec=(model,)))
    return replace(plan, network=replace(plan.network, backbone=(model,)))


def _check(plan: AnyPlan) -> None:
    """Reject what no entry shows by itself."""
    learning = [method.label for method in plan.methods if uses_bank(method.name)]
    if learning and not plan.calibration.severities:
        raise InputError(
            f"{plan.where} [calibration] severities must name at least one: {', '.join(learning)} "
            "learn from surrogate sets."
        )
    if isinstance(plan, AdaptationPlan):
        known = [domain.name for domain in plan.domains]
        for source, target in plan.tasks:
            if source == target or not {source, target} <= set(known):
                raise InputError(
                    f"{plan.where} tasks must connect two of the domains {', '.join(known)}; got "
                    f"{source!r} and {target!r}."
                )


def _filled(value: Any, data: str | None, where: str, key: str = "") -> Any:
    """The same with ``{data}`` put in; no name may be that of a class to import."""
    if isinstance(value, dict):
        return {name: _filled(each, data, where, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, data, where, key) for each in value]
    if key in _NAMES and is_own(value) and value.partition(":")[0] not in sys.modules:
        raise InputError(
            f"{where} {key}: a plan never imports a module; got {value!r}. Import it first, on the "
            f"command line `shiftcal --import {value.partition(':')[0]} ...`."
        )
    if not isinstance(value, str) or "{data}" not in value:
        return value
    if data is None:
        raise InputError(f"{where} needs {{data}}: give the folder of the data with --data FOLDER.")
    return value.replace("{data}", data)


def validated(kind: type, values: dict[str, Any], where: str) -> Any:
    """The dataclass that values make.

    Raises:
        InputError: Naming the entry that is missing, unknown or has a wrong value.
    """
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(e + 1) if isinstance(e, int) else f"[{e}]" for e in first["loc"]]
        reason = first["msg"].removeprefix("Value error, ").removesuffix(".")
        if first["type"] == "missing":
            reason = "must be given"
        elif first["type"] == "unexpected_keyword_argument":
            known = [each.name for each in fields(kind) if each.name not in _HIDDEN]
            hint = suggest(first["loc"][-1], known) if len(place) == 1 else ""
            reason = f"there is no such entry. {hint}".removesuffix(".").rstrip()
        elif first["type"] != "value_error":
            reason += f"; got {first['input']!r}"
        raise InputError(f"{' '.join([where, *place])}: {reason}.") from error


# --------------------------------------------------------------------------------------
# From a plan to TOML
# --------------------------------------------------------------------------------------


def to_toml(plan: AnyPlan) -> str:
    """The plan as :func:`~shiftcal.studies.read_plan` reads it, with the defaults written out."""
    values = {key: each for key, each in asdict(plan).items() if key not in _HIDDEN}
    for name in ("methods", "trainers"):
        own = getattr(plan, name, ())
        entries = [{"name": each.name, "label": each.label, **each.settings} for each in own]
        values |= {name: entries} if entries else {}
    lines, tables = [f"study = {_value(values.pop('study'))}"], []
    for key, value in values.items():
        if not isinstance(value, Mapping):
            lines.append(f"{key} = {_value(value)}")
        elif value:
            own = (f"{k} = {_value(v)}" for k, v in value.items() if v is not None)
            tables += ["", f"[{key}]", *own]
    return "\n".join([*lines, *tables]) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        own = (f"{key} = {_value(each)}" for key, each in value.items() if each is not None)
        return f"{{ {', '.join(own)} }}"
    if isinstance(value, (list, tuple)):
        items = list(map(_value, value))
        if any(isinstance(each, Mapping) for each in value):
            return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
        return f"[{', '.join(items)}]"
    # Plain values are JSON, which leaves one character as it is that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
