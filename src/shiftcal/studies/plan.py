"""Plans: what a study is made of, read from TOML and written to it.

A plan is data and may come from anybody. Its tables are the dataclasses below, which pydantic reads
from TOML; ``to_toml`` writes them back.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from datetime import date, time
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from shiftcal import corruptions
from shiftcal.errors import FileError, InputError, ShiftcalError, UnknownName
from shiftcal.registry import is_own, suggest

ORACLE = "oracle"
CLEAN = "clean"
# Between the name of a ladder and the digest of its strengths, in files.
MARK = ".."
BUILT_IN = Path(__file__).parent / "plans"
# How a user names the model of a plan.
NAME_IT = "--model {0}, in Python read_plan(..., model={0})"


# --------------------------------------------------------------------------------------
# Types of entries
# --------------------------------------------------------------------------------------


def _spelled(corruption: str) -> str:
    """A published name as files and records have it: ``Defocus-Blur`` is ``defocus_blur``."""
    usual = corruption.replace("-", "_").lower()
    return usual if usual in corruptions.names() else corruption


def _different(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) < len(values):
        raise ValueError("must be different numbers")
    return values


def _as_list(value: object) -> object:
    return [value] if isinstance(value, (str, int, float)) else value


def _as_lists(value: object) -> object:
    return [_as_list(each) for each in value] if isinstance(value, list) else value


_Text = Annotated[str, Field(strict=True)]
_Word = Annotated[str, Field(strict=True, min_length=1)]
_Name = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
_Corruption = Annotated[_Word, AfterValidator(_spelled)]
_Count = Annotated[int, Field(strict=True, ge=1)]
_Seed = Annotated[int, Field(strict=True, ge=0)]
_Places = Annotated[tuple[_Word, ...], BeforeValidator(_as_list), Field(min_length=1)]
_Rising = AfterValidator(lambda values: tuple(sorted(values)))
_Strict = ConfigDict(extra="forbid")


# --------------------------------------------------------------------------------------
# What studies are made of
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelPlan:
    """The classifier.

    Attributes:
        spec: As :func:`shiftcal.models.as_model` takes it; several are alternatives, of which the
            first that exists is used.
        groups: Name of a grouping of its classes into fewer, such as ``"imagenet16"``.
        batch_size: Images per batch; default: chosen by memory.
        dtype: What logits and features are stored as.
    """

    __pydantic_config__ = _Strict
    spec: _Places
    groups: _Text | None = None
    batch_size: _Count | None = None
    dtype: Literal["float32", "float16"] = "float32"


@dataclass(frozen=True)
class DataPlan:
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

    __pydantic_config__ = _Strict
    images: _Places
    labels: _Text | None = None
    limit: _Count | None = None
    train: Annotated[tuple[_Word, ...], BeforeValidator(_as_list)] = ()
    train_labels: _Text | None = None
    train_limit: _Count = 10_000
    fetch: _Text = ""


@dataclass(frozen=True)
class CalibrationPlan:
    """The surrogate sets.

    Attributes:
        corruption: What makes them of the calibration images.
        severities: At which severities, in addition to the clean set.
        images: How many images are calibrated on; the others are tested on.
    """

    __pydantic_config__ = _Strict
    corruption: _Corruption = "pixelate"
    severities: Annotated[tuple[_Count, ...], AfterValidator(_different), _Rising] = (1, 2, 3, 4, 5)
    images: _Count = 5000


@dataclass(frozen=True)
class NaturalSet:
    """A target with its own images.

    Attributes:
        name: In files and records: letters, digits, ``-``, ``_`` and ``.``.
        title: In tables; default: the name.
        images: As for :class:`DataPlan`.
        labels: As for :class:`DataPlan`.
        fetch: As for :class:`DataPlan`.
    """

    __pydantic_config__ = _Strict
    name: _Name
    title: _Word
    images: _Places
    labels: _Text | None = None
    fetch: _Text = ""


@dataclass(frozen=True)
class ShiftPlan:
    """The targets.

    Attributes:
        corruptions: By which the test images are shifted.
        severities: At which severities; 0 is the clean test images.
        made: Where ready-made corrupted images are, with ``{corruption}`` and ``{severity}`` in
            the text; default: images are corrupted on the fly.
        seed: Of the corruptions' random numbers.
        table: Whose strengths, as for :func:`shiftcal.corrupt`.
        sets: Natural targets.
    """

    __pydantic_config__ = _Strict
    corruptions: Annotated[tuple[_Corruption, ...], BeforeValidator(_as_list)] = ()
    severities: Annotated[tuple[_Seed, ...], AfterValidator(_different), _Rising] = (
        0, 1, 2, 3, 4, 5,
    )  # fmt: skip
    made: _Text | None = None
    seed: _Seed = 0
    table: _Word = "auto"
    sets: tuple[NaturalSet, ...] = ()


@dataclass(frozen=True)
class LadderPlan:
    """A corruption with the plan's own strengths.

    Attributes:
        name: By which the plan calls it.
        corruption: The published corruption.
        strengths: One setting for each severity from 1 on.
    """

    __pydantic_config__ = _Strict
    name: _Word
    corruption: _Corruption
    strengths: Annotated[
        tuple[
            Annotated[tuple[Annotated[float, Field(strict=True)], ...], Field(min_length=1)], ...
        ],
        BeforeValidator(_as_lists),
        Field(min_length=1),
    ]


@dataclass(frozen=True)
class MethodPlan:
    """One line of the comparison.

    Attributes:
        name: Of the method, as ``shiftcal list`` shows them; or ``"oracle"``.
        label: In tables and figures.
        settings: Of the method.
    """

    name: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """In records: the name of the method, and the values of its settings."""
        return "-".join([self.name, *(str(value) for value in self.settings.values())])


@dataclass(frozen=True)
class Plan:
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
        ladders: Corruptions with the plan's own strengths.
        options: Of the study itself.
        where: Its name in messages.
        stored: Whether its model is named by a text that may be anybody's, and not by the user or
            by shiftcal: then it is loaded only if it is read as data.
    """

    __pydantic_config__ = _Strict
    study: _Word
    model: ModelPlan
    data: DataPlan
    about: _Text = ""
    calibration: CalibrationPlan = CalibrationPlan()
    shifts: ShiftPlan = ShiftPlan()
    methods: tuple[MethodPlan, ...] = ()
    seeds: Annotated[tuple[_Seed, ...], AfterValidator(_different), Field(min_length=1)] = (
        0, 1, 2, 3, 4,
    )  # fmt: skip
    bins: _Count = 15
    ladders: tuple[LadderPlan, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="the plan", compare=False)
    stored: bool = field(default=False, compare=False)


# --------------------------------------------------------------------------------------
# What studies of domain adaptation are made of
# --------------------------------------------------------------------------------------

ADAPTATION = "adaptation"


@dataclass(frozen=True)
class DomainPlan:
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

    __pydantic_config__ = _Strict
    name: _Name
    short: _Word
    title: _Word
    images: Annotated[
        tuple[Annotated[tuple[_Word, ...], Field(min_length=1)], ...],
        BeforeValidator(lambda value: _as_lists(_as_list(value))),
        Field(min_length=1),
    ]
    labels: _Text | None = None
    limit: _Count | None = None
    fetch: _Text = ""


@dataclass(frozen=True)
class TrainerPlan:
    """A way to train.

    Attributes:
        name: As ``shiftcal train --list`` shows them.
        label: In tables and figures.
        settings: Options of the trainer and settings of its training.
    """

    name: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """In files and records: the name, and what differs from its recipe."""
        parts = [key if value is True else f"{key}-{value}" for key, value in self.settings.items()]
        return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join([self.name, *parts]))


@dataclass(frozen=True)
class NetworkPlan:
    """What is trained.

    Attributes:
        backbone: As :func:`shiftcal.adaptation.adapt` takes it; several are alternatives.
        frozen: Whether its features are computed once, and only what comes after it is trained.
    """

    __pydantic_config__ = _Strict
    backbone: _Places
    frozen: Annotated[bool, Field(strict=True)] = False


@dataclass(frozen=True)
class TrainingPlan:
    """How it is trained; every trainer the same.

    Attributes:
        recipe: Name of the trainers' recipe; default: as for :func:`shiftcal.adaptation.adapt`.
        transform: Transform of training images, by name; default: that of the recipe.
        select: Which of the weights are kept.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` and so on.
        precision: Of the arithmetic on a GPU; default: float32.
        threads: That each training uses, of which several then run at once; default: one if the
            backbone is frozen, else all.
        settings: Of the training, for all trainers; those of a trainer override them.
    """

    __pydantic_config__ = _Strict
    recipe: _Text | None = None
    transform: _Text | None = None
    select: Literal["last", "source-validation"] = "last"
    device: Annotated[_Word, Field(pattern=r"^[a-z]+(:[0-9]+)?$")] = "auto"
    precision: _Text | None = None
    threads: _Count | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SurrogatePlan:
    """The surrogate sets, made of the part of the source that is not trained on.

    Attributes:
        corruption: What makes them.
        severities: At which severities, in addition to the clean set.
    """

    __pydantic_config__ = _Strict
    corruption: _Corruption = "pixelate"
    severities: Annotated[tuple[_Count, ...], AfterValidator(_different), _Rising] = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Pair:
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
class AdaptationPlan:
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
        study: Always ``"adaptation"``.
        where: Its name in messages.
        stored: As for :class:`Plan`.
    """

    __pydantic_config__ = _Strict
    domains: Annotated[tuple[DomainPlan, ...], Field(min_length=2)]
    tasks: Annotated[tuple[tuple[_Text, _Text], ...], Field(min_length=1)]
    trainers: Annotated[tuple[TrainerPlan, ...], Field(min_length=1)]
    network: NetworkPlan
    training: TrainingPlan = TrainingPlan()
    calibration: SurrogatePlan = SurrogatePlan()
    about: _Text = ""
    methods: Annotated[tuple[MethodPlan, ...], Field(min_length=1)] = ()
    seeds: Annotated[tuple[_Seed, ...], AfterValidator(_different), Field(min_length=1)] = (
        0, 1, 2, 3, 4,
    )  # fmt: skip
    bins: _Count = 15
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

    def images_of(self, domain: DomainPlan) -> list[object]:
        """What decides which images a domain has, as far as a plan says it."""
        by_chance = domain.limit is not None and not self.is_source(domain)
        entries: list[object] = [domain.images, domain.labels, domain.limit]
        return [*entries, "by chance"] if by_chance else entries


AnyPlan: TypeAlias = Plan | AdaptationPlan


# --------------------------------------------------------------------------------------
# What is evaluated: a method with its settings and its surrogate sets, on some targets
# --------------------------------------------------------------------------------------


def set_name(corruption: str, severity: int) -> str:
    """Name of the images under a corruption in files and records."""
    return f"{corruption}-{severity}" if severity else CLEAN


def uses_bank(method: str) -> bool:
    """Whether a method learns from surrogate sets."""
    from shiftcal import methods

    return method != ORACLE and bool(methods.get(method).uses_bank)


def uses_features(method: str) -> bool:
    """Whether a method needs features of training images and target."""
    from shiftcal import methods

    return method != ORACLE and bool(methods.get(method).uses_features)


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

    @property
    def identity(self) -> tuple[str, ...]:
        """What distinguishes its records from those of others."""
        return self.panel, self.setting, self.key, self.ladder.corruption


# --------------------------------------------------------------------------------------
# From TOML to a plan
# --------------------------------------------------------------------------------------

# Entries that hold names of methods, maps, corruptions and trainers.
_NAMES = {"methods", "name", "map", "maps", "method", "estimator", "trainers"} | {
    "corruption",
    "corruptions",
    "choices",
}


def built_in() -> list[str]:
    """Names of the plans that come with shiftcal."""
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
    if name in built_in():
        return (BUILT_IN / f"{name}.toml").read_text("utf-8"), f"the plan {name!r}"
    file = Path(name)
    if file.suffix.lower() != ".toml" and not file.exists():
        raise UnknownName(
            f"no study is called {name!r}, and no file. {suggest(name, built_in())} Your own plan "
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
    for name in ("where", "stored"):
        if name in values:
            raise InputError(f"{where} has no entry {name!r}.")
    own = any(text == file.read_text("utf-8") for file in BUILT_IN.glob("*.toml"))
    values |= {"where": where, "stored": model is None and not own}
    if "methods" in values:
        values["methods"] = [
            _method(*_named(each, f"{where} methods {i}"))
            for i, each in enumerate(_listed(values["methods"], f"{where} methods"), 1)
        ]
    if values.get("study") == ADAPTATION:
        plan = _adaptation(values, where)
        if model is not None:
            plan = replace(plan, network=replace(plan.network, backbone=(model,)))
        _check_adaptation(plan)
        return plan
    for each in _sets_of(values):
        each.setdefault("title", each.get("name"))
    found: Plan = _validated(Plan, values, where)
    if model is not None:
        found = replace(found, model=replace(found.model, spec=(model,)))
    _check(found)
    return found


def _filled(value: Any, data: str | None, where: str, key: str = "") -> Any:
    """The same with ``{data}`` put in; no name may be that of a class to import."""
    if isinstance(value, dict):
        return {name: _filled(each, data, where, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, data, where, key) for each in value]
    if key in _NAMES and is_own(value):
        raise InputError(
            f"{where} {key}: {value!r} is a class of a Python module, which a plan never imports. "
            "Declare it as an entry point of its package (group shiftcal.methods, shiftcal.maps or "
            "shiftcal.corruptions) and write its name."
        )
    if not isinstance(value, str) or "{data}" not in value:
        return value
    if data is None:
        raise InputError(f"{where} needs {{data}}: give the folder of the data with --data FOLDER.")
    return value.replace("{data}", data)


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _validated(kind: type, values: dict[str, Any], where: str) -> Any:
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        *tables, entry = first["loc"]
        place = " ".join([where, *(f"[{t}]" if isinstance(t, str) else str(t + 1) for t in tables)])
        if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            known = [each.name for each in fields(_dataclass_at(kind, tables))]
            hidden = {"where", "stored"} & set(known)
            hint = suggest(str(entry), [name for name in known if name not in hidden])
            raise InputError(f"{place} has no entry {entry!r}. {hint}") from error
        name = str(entry + 1) if isinstance(entry, int) else entry
        if first["type"] in ("missing", "missing_argument"):
            raise InputError(f"{place} needs {name} = ...; it is missing.") from error
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{place} {name}: {reason}; got {first['input']!r}.") from error


def _dataclass_at(kind: Any, tables: list[Any]) -> Any:
    """The dataclass of a nested table of a plan."""
    for name in tables:
        if isinstance(name, str):
            hint = get_type_hints(kind)[name]
            while not is_dataclass(hint):
                hint = get_args(hint)[0]
            kind = hint
    return kind


def _listed(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list of names or tables; got {value!r}.")
    return value


def _sets_of(values: dict[str, Any]) -> list[dict[str, Any]]:
    shifts = values.get("shifts")
    sets = shifts.get("sets") if isinstance(shifts, dict) else None
    return [each for each in sets if isinstance(each, dict)] if isinstance(sets, list) else []


def _named(value: object, where: str) -> tuple[str, str | None, dict[str, Any], str]:
    """Name, label and settings of a method or trainer: a name, or a table."""
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise InputError(f"{where} must be a name or a table; got {value!r}.")
    name, label = table.get("name"), table.get("label")
    if not isinstance(name, str) or not name:
        raise InputError(f"{where} needs name = ...; got {name!r}.")
    if label is not None and not isinstance(label, str):
        raise InputError(f"{where} label must be a text; got {label!r}.")
    settings = {key: value for key, value in table.items() if key not in ("name", "label")}
    return name.lower(), label, settings, where


def _method(name: str, label: str | None, settings: dict[str, Any], where: str) -> MethodPlan:
    from shiftcal import methods

    if name == ORACLE:
        if settings:
            raise InputError(f"{where}: the oracle has no settings; got {', '.join(settings)}.")
        return MethodPlan(name, label or "Oracle", {})
    try:
        method = methods.get(name)
        if method.uses_mixed:
            raise InputError(
                f"{method.__name__} needs scores of mixed target images, which a study does not "
                "make. Leave it out."
            )
        known = sorted(method().get_params())
        for each in settings:
            if each not in known:
                raise InputError(
                    f"{method.__name__} has no setting {each!r}. {suggest(each, known)}"
                )
        method(**settings)
    except ShiftcalError as error:
        raise type(error)(f"{where}: {error}") from error
    return MethodPlan(name, label or method.__name__, settings)


def _adaptation(values: dict[str, Any], where: str) -> AdaptationPlan:
    from shiftcal import adaptation

    trainers = []
    for i, each in enumerate(_listed(values.get("trainers"), f"{where} trainers"), 1):
        name, label, settings, place = _named(each, f"{where} trainers {i}")
        try:
            trainers.append(TrainerPlan(name, label or adaptation.get(name).label, settings))
        except UnknownName as error:
            raise UnknownName(f"{place}: {error}") from error
    domains = [each for each in values.get("domains") or () if isinstance(each, dict)]
    for domain in domains:
        domain.setdefault("short", domain.get("name"))
        domain.setdefault("title", domain.get("name"))
    if values.get("tasks", "all") == "all":
        values["tasks"] = list(permutations([domain.get("name") for domain in domains], 2))
    values["trainers"] = trainers
    return cast(AdaptationPlan, _validated(AdaptationPlan, values, where))


# --------------------------------------------------------------------------------------
# What concerns several entries at once, or what other packages know
# --------------------------------------------------------------------------------------


def _check_unique(names: Iterable[str], where: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"{where} {name!r} appears twice. Rename one, or leave it out.")


def _check_severities(
    name: str, severities: tuple[int, ...], ladders: tuple[LadderPlan, ...], where: str
) -> None:
    own = {ladder.name: len(ladder.strengths) for ladder in ladders}
    try:
        most = own[name] if name in own else corruptions.get(name)().severities
    except UnknownName as error:
        raise UnknownName(f"{where}: {error}") from error
    if max(severities, default=0) > most:
        raise InputError(
            f"{where} severities must be those of {name}, 1 to {most}; got {list(severities)}."
        )


def _check(plan: Plan) -> None:
    from shiftcal.corruptions import Strengths
    from shiftcal.corruptions.corruption import TABLES

    where, shifts = plan.where, plan.shifts
    if shifts.table not in ("auto", *TABLES):
        raise InputError(
            f"{where} [shifts] table must be one of {', '.join(('auto', *TABLES))}; got "
            f"{shifts.table!r}."
        )
    for ladder in plan.ladders:
        place = f"{where} [ladders] {ladder.name!r}"
        if ladder.name.replace("-", "_").lower() in corruptions.names() or MARK in ladder.name:
            raise InputError(
                f"{place}: the name must not be a published corruption's, nor contain {MARK!r}."
            )
        try:
            Strengths(ladder.corruption, ladder.strengths, name=ladder.name)
        except InputError as error:
            raise type(error)(f"{place}: {error}") from error
    made_by = plan.calibration
    _check_severities(
        made_by.corruption, made_by.severities, plan.ladders, f"{where} [calibration]"
    )
    for name in shifts.corruptions:
        # That of the surrogate sets is left out of the targets.
        severities = () if name == made_by.corruption else shifts.severities
        _check_severities(name, severities, plan.ladders, f"{where} [shifts]")
    for blank in ("{corruption}", "{severity}"):
        if shifts.made is not None and blank not in shifts.made:
            raise InputError(
                f"{where} [shifts] made must contain {blank}, or all targets would be the same "
                f"images; got {shifts.made!r}."
            )
    _check_unique(shifts.corruptions, f"{where} [shifts] corruptions:")
    _check_unique((ladder.name for ladder in plan.ladders), f"{where} [ladders] name")
    _check_unique((method.label for method in plan.methods), f"{where} methods: the label")
    _check_unique((each.name for each in shifts.sets), f"{where} [shifts.sets] name")
    taken = {*corruptions.names(), *(ladder.name for ladder in plan.ladders)}
    for each in shifts.sets:
        if each.name in (CLEAN, "train") or each.name.rpartition("-")[0] in taken:
            raise InputError(f"{where} [shifts.sets] name {each.name!r} is taken. Choose another.")


def _check_adaptation(plan: AdaptationPlan) -> None:
    from shiftcal.adaptation.loop import PRECISIONS
    from shiftcal.adaptation.trainers import TRANSFORMS
    from shiftcal.checks import check_choice

    where, training, made_by = plan.where, plan.training, plan.calibration
    names = [domain.name for domain in plan.domains]
    for task in plan.tasks:
        for name in task:
            if name not in names:
                raise InputError(f"{where} tasks: no domain {name!r}. {suggest(name, names)}")
        if task[0] == task[1]:
            raise InputError(f"{where} tasks must connect two domains; got {task[0]!r} twice.")
    for unique, what in (
        (names, "domains: the name"),
        ([domain.short for domain in plan.domains], "domains: the short name"),
        ([pair.name for pair in plan.pairs], "tasks:"),
        ([pair.title for pair in plan.pairs], "tasks: the title"),
        ([trainer.key for trainer in plan.trainers], "trainers:"),
        ([trainer.label for trainer in plan.trainers], "trainers: the label"),
        ([method.label for method in plan.methods], "methods: the label"),
        ([f"{m.name} {dict(m.settings)}" for m in plan.methods], "methods:"),
    ):
        _check_unique(unique, f"{where} {what}")
    _check_severities(made_by.corruption, made_by.severities, (), f"{where} [calibration]")
    learning = [method.label for method in plan.methods if uses_bank(method.name)]
    if learning and not made_by.severities:
        raise InputError(
            f"{where} [calibration] severities must name at least one: {', '.join(learning)} learn "
            "from surrogate sets. Add some, or leave the methods out."
        )
    if training.precision is not None:
        check_choice(training.precision, PRECISIONS, name=f"{where} [training] precision")
    if training.transform is not None:
        if plan.network.frozen:
            raise InputError(
                f"{where} [training] transform must be left out with a frozen backbone: features "
                "are computed once, of the images as they are."
            )
        check_choice(training.transform, TRANSFORMS, name=f"{where} [training] transform")
    for i, trainer in enumerate(plan.trainers, 1):
        try:
            chosen_by(plan, trainer)
        except ShiftcalError as error:
            raise type(error)(f"{where} trainers {i}: {error}") from error


def chosen_by(plan: AdaptationPlan, trainer: TrainerPlan) -> Any:
    """A trainer with its options and settings as a plan wants it.

    Raises:
        UnknownName: If there is no such trainer, or no such recipe.
        InputError: If an option cannot be used.
    """
    from shiftcal.adaptation.trainers import choose

    return choose(
        trainer.name,
        recipe=plan.training.recipe,
        changes={**plan.training.settings, **trainer.settings},
        transform=plan.training.transform,
        frozen=plan.network.frozen,
        backbone=plan.network.backbone[0],
    )


# --------------------------------------------------------------------------------------
# From a plan to TOML
# --------------------------------------------------------------------------------------

_ORDER = ("study", "about")
_TABLES = ("model", "data", "network", "training", "calibration", "shifts", "options")


def to_toml(plan: AnyPlan) -> str:
    """The plan as :func:`~shiftcal.studies.read_plan` reads it, with the defaults written out."""
    values = asdict(plan)
    del values["where"], values["stored"]
    for name in ("methods", "trainers"):
        if name in values:
            values[name] = [
                {"name": each.name, "label": each.label, **each.settings}
                for each in getattr(plan, name)
            ]
    arrays: dict[str, Any] = {
        name: values.pop(name) for name in ("domains", "ladders") if name in values
    }
    if "shifts" in values:
        arrays = {"shifts.sets": values["shifts"].pop("sets"), **arrays}
    tables = {name: values.pop(name) for name in _TABLES if name in values}
    settings = tables.get("training", {}).pop("settings", None)
    first = {name: values.pop(name) for name in _ORDER}
    lines = _entries({**first, **values})
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *_entries(table)]
        if name == "training" and settings:
            lines += ["", "[training.settings]", *_entries(settings)]
    for name, array in arrays.items():
        for each in array:
            lines += ["", f"[[{name}]]", *_entries(each)]
    return "\n".join(lines) + "\n"


def _entries(values: Mapping[str, Any]) -> list[str]:
    """A line for each entry of a table; ``None`` has none."""
    return [
        f"{key if re.fullmatch('[A-Za-z0-9_-]+', key) else _value(key)} = {_value(value)}"
        for key, value in values.items()
        if value is not None
    ]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON leaves one character as it is that TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return f"{{{', '.join(_entries(value))}}}"
    if len(value) and any(isinstance(each, Mapping) for each in value):
        return "[\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
    return f"[{', '.join(_value(each) for each in value)}]"
