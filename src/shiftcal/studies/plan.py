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
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from shiftcal import corruptions
from shiftcal.errors import FileError, InputError, UnknownName, suggest
from shiftcal.registry import is_own

ORACLE = "oracle"
CLEAN = "clean"
# Between the name of a ladder and the digest of its strengths, in files.
MARK = ".."
BUILT_IN = Path(__file__).parent / "plans"
# How a user names the model of a plan.
NAME_IT = "--model {0}, in Python read_plan(..., model={0})"
STRICT = ConfigDict(extra="forbid")


# --------------------------------------------------------------------------------------
# Types of entries
# --------------------------------------------------------------------------------------


def _spelled(corruption: str) -> str:
    """A published name as files and records have it: ``Defocus-Blur`` is ``defocus_blur``."""
    usual = corruption.replace("-", "_").lower()
    return usual if usual in corruptions.names() else corruption


def _different(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError(f"must have different values; got {list(values)}")
    return values


def _as_list(value: object) -> object:
    return [value] if isinstance(value, (str, int, float)) else value


def _as_lists(value: object) -> object:
    return [_as_list(each) for each in value] if isinstance(value, list) else value


def _named(value: object) -> dict[str, Any]:
    """A method or trainer as a table; it may be a name alone."""
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise ValueError(f"must be a name, or a table with name = ...; got {value!r}")
    if not isinstance(table.get("label", ""), str):
        raise ValueError(f"label must be a text; got {table['label']!r}")
    return {**table, "name": table["name"].lower()}


def _method(value: object) -> object:
    from shiftcal import methods

    settings = _named(value)
    name, label = settings.pop("name"), settings.pop("label", None)
    if name == ORACLE:
        if settings:
            raise ValueError(f"the oracle has no settings; got {', '.join(settings)}.")
        return MethodPlan(name, label or "Oracle")
    method = methods.get(name)
    if method.uses_mixed:
        raise ValueError(
            f"{method.__name__} needs scores of mixed target images, which a study does not make. "
            "Leave it out."
        )
    known = sorted(method().get_params())
    for each in settings:
        if each not in known:
            raise ValueError(f"{method.__name__} has no setting {each!r}. {suggest(each, known)}")
    method(**settings)
    return MethodPlan(name, label or method.__name__, settings)


def _trainer(value: object) -> object:
    from shiftcal import adaptation

    settings = _named(value)
    name, label = settings.pop("name"), settings.pop("label", None)
    return TrainerPlan(name, label or adaptation.get(name).label, settings)


def _titled(value: object) -> object:
    """A natural set or a domain; its title is its name by default."""
    return {"title": value.get("name"), **value} if isinstance(value, dict) else value


def _shortened(value: object) -> object:
    return {"short": value.get("name"), **value} if isinstance(value, dict) else value


def _ladder(ladder: LadderPlan) -> LadderPlan:
    from shiftcal.corruptions import Strengths

    if ladder.name.replace("-", "_").lower() in corruptions.names() or MARK in ladder.name:
        raise ValueError(f"the name must not be a published corruption's, nor contain {MARK!r}.")
    Strengths(ladder.corruption, ladder.strengths, name=ladder.name)
    return ladder


_Text = Annotated[str, Field(strict=True)]
_Word = Annotated[str, Field(strict=True, min_length=1)]
_Name = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
_Corruption = Annotated[_Word, AfterValidator(_spelled)]
Count = Annotated[int, Field(strict=True, ge=1)]
_Seed = Annotated[int, Field(strict=True, ge=0)]
_Places = Annotated[tuple[_Word, ...], BeforeValidator(_as_list), Field(min_length=1)]
_Different = AfterValidator(_different)
_Rising = AfterValidator(lambda values: tuple(sorted(values)))
Names = Annotated[tuple[_Word, ...], _Different, Field(min_length=1)]
Counts = Annotated[tuple[Count, ...], _Different, _Rising]
_Severities = Annotated[tuple[_Seed, ...], _Different, _Rising]
_Seeds = Annotated[tuple[_Seed, ...], _Different, Field(min_length=1)]
_Strengths = tuple[
    Annotated[tuple[Annotated[float, Field(strict=True)], ...], Field(min_length=1)], ...
]
_Methods = tuple[Annotated["MethodPlan", BeforeValidator(_method)], ...]
_Trainers = tuple[Annotated["TrainerPlan", BeforeValidator(_trainer)], ...]
_Domain = Annotated["DomainPlan", BeforeValidator(_titled), BeforeValidator(_shortened)]


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

    __pydantic_config__ = STRICT
    spec: _Places
    groups: _Text | None = None
    batch_size: Count | None = None
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

    __pydantic_config__ = STRICT
    images: _Places
    labels: _Text | None = None
    limit: Count | None = None
    train: Annotated[tuple[_Word, ...], BeforeValidator(_as_list)] = ()
    train_labels: _Text | None = None
    train_limit: Count = 10_000
    fetch: _Text = ""


@dataclass(frozen=True)
class SurrogatePlan:
    """The surrogate sets; for domain adaptation of the part of the source that is not trained on.

    Attributes:
        corruption: What makes them.
        severities: At which severities, in addition to the clean set.
    """

    __pydantic_config__ = STRICT
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
class NaturalSet:
    """A target with its own images.

    Attributes:
        name: In files and records: letters, digits, ``-``, ``_`` and ``.``.
        title: In tables; default: the name.
        images: As for :class:`DataPlan`.
        labels: As for :class:`DataPlan`.
        fetch: As for :class:`DataPlan`.
    """

    __pydantic_config__ = STRICT
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

    __pydantic_config__ = STRICT
    corruptions: Annotated[tuple[_Corruption, ...], BeforeValidator(_as_list)] = ()
    severities: _Severities = (0, 1, 2, 3, 4, 5)
    made: _Text | None = None
    seed: _Seed = 0
    table: _Word = "auto"
    sets: tuple[Annotated[NaturalSet, BeforeValidator(_titled)], ...] = ()


@dataclass(frozen=True)
class LadderPlan:
    """A corruption with the plan's own strengths.

    Attributes:
        name: By which the plan calls it.
        corruption: The published corruption.
        strengths: One setting for each severity from 1 on.
    """

    __pydantic_config__ = STRICT
    name: _Word
    corruption: _Corruption
    strengths: Annotated[_Strengths, BeforeValidator(_as_lists), Field(min_length=1)]


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

    __pydantic_config__ = STRICT
    study: _Word
    model: ModelPlan
    data: DataPlan
    about: _Text = ""
    calibration: CalibrationPlan = CalibrationPlan()
    shifts: ShiftPlan = ShiftPlan()
    methods: _Methods = ()
    seeds: _Seeds = (0, 1, 2, 3, 4)
    bins: Count = 15
    ladders: tuple[Annotated[LadderPlan, AfterValidator(_ladder)], ...] = ()
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

    __pydantic_config__ = STRICT
    name: _Name
    short: _Word
    title: _Word
    images: Annotated[
        tuple[Annotated[tuple[_Word, ...], Field(min_length=1)], ...],
        BeforeValidator(lambda value: _as_lists(_as_list(value))),
        Field(min_length=1),
    ]
    labels: _Text | None = None
    limit: Count | None = None
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

    __pydantic_config__ = STRICT
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

    __pydantic_config__ = STRICT
    recipe: _Text | None = None
    transform: _Text | None = None
    select: Literal["last", "source-validation"] = "last"
    device: Annotated[_Word, Field(pattern=r"^[a-z]+(:[0-9]+)?$")] = "auto"
    precision: _Text | None = None
    threads: Count | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


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

    __pydantic_config__ = STRICT
    domains: Annotated[tuple[_Domain, ...], Field(min_length=2)]
    tasks: Annotated[tuple[tuple[_Text, _Text], ...], Field(min_length=1)]
    trainers: Annotated[_Trainers, Field(min_length=1)]
    network: NetworkPlan
    training: TrainingPlan = TrainingPlan()
    calibration: SurrogatePlan = SurrogatePlan()
    about: _Text = ""
    methods: Annotated[_Methods, Field(min_length=1)] = ()
    seeds: _Seeds = (0, 1, 2, 3, 4)
    bins: Count = 15
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


def image_specs(plan: AnyPlan) -> list[str]:
    """Every text of images in a plan."""
    if isinstance(plan, AdaptationPlan):
        return [text for domain in plan.domains for texts in domain.images for text in texts]
    sets = [text for each in plan.shifts.sets for text in each.images]
    return [*plan.data.images, *plan.data.train, *sets]


def uses_bank(method: str) -> bool:
    """Whether a method learns from surrogate sets."""
    from shiftcal import methods

    return method != ORACLE and bool(methods.get(method).uses_bank)


def uses_features(method: str) -> bool:
    """Whether a method needs features of training images and target."""
    from shiftcal import methods

    return method != ORACLE and bool(methods.get(method).uses_features)


# --------------------------------------------------------------------------------------
# From TOML to a plan
# --------------------------------------------------------------------------------------

# Entries that hold names of methods, maps, corruptions and trainers.
_NAMES = {"methods", "name", "map", "maps", "method", "estimator", "trainers"} | {
    "corruption",
    "corruptions",
    "choices",
}
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
    for name in values.keys() & set(_HIDDEN):
        raise InputError(f"{where} has no entry {name!r}.")
    own = any(text == file.read_text("utf-8") for file in BUILT_IN.glob("*.toml"))
    values |= {"where": where, "stored": model is None and not own}
    if values.get("study") == ADAPTATION:
        if values.get("tasks", "all") == "all" and isinstance(values.get("domains"), list):
            names = [each.get("name") for each in values["domains"] if isinstance(each, dict)]
            values["tasks"] = list(permutations(names, 2))
        plan: AdaptationPlan = validated(AdaptationPlan, values, where)
        if model is not None:
            plan = replace(plan, network=replace(plan.network, backbone=(model,)))
        _check_adaptation(plan)
        return plan
    found: Plan = validated(Plan, values, where)
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


def validated(kind: type, values: dict[str, Any], where: str) -> Any:
    """The dataclass that values make.

    Raises:
        InputError: Naming the entry that is missing, unknown or has a wrong value.
    """
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        *tables, entry = (str(e + 1) if isinstance(e, int) else e for e in first["loc"])
        place = " ".join([where, *(t if t.isdigit() else f"[{t}]" for t in tables)])
        if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            known = [] if tables else [f.name for f in fields(kind) if f.name not in _HIDDEN]
            hint = f" {suggest(entry, known)}" if known else ""
            raise InputError(f"{place} has no entry {entry!r}.{hint}") from error
        if first["type"] in ("missing", "missing_argument"):
            raise InputError(f"{place} needs {entry} = ...; it is missing.") from error
        if first["type"] == "value_error":
            reason = first["msg"].removeprefix("Value error, ").removesuffix(".")
            raise InputError(f"{place} {entry}: {reason}.") from error
        raise InputError(f"{place} {entry}: {first['msg']}; got {first['input']!r}.") from error


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
    from shiftcal.checks import check_choice
    from shiftcal.corruptions.corruption import TABLES

    where, shifts, made_by = plan.where, plan.shifts, plan.calibration
    check_choice(shifts.table, ("auto", *TABLES), name=f"{where} [shifts] table")
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
    where, made_by = plan.where, plan.calibration
    names = [domain.name for domain in plan.domains]
    for source, target in plan.tasks:
        unknown = [name for name in (source, target) if name not in names]
        if unknown or source == target:
            hint = suggest(unknown[0], names) if unknown else ""
            raise InputError(
                f"{where} tasks must connect two domains; got {source!r} and {target!r}. {hint}"
            )
    for unique, what in (
        (names, "domains: the name"),
        ([domain.short for domain in plan.domains], "domains: the short name"),
        ([pair.name for pair in plan.pairs], "tasks:"),
        ([trainer.key for trainer in plan.trainers], "trainers:"),
        ([trainer.label for trainer in plan.trainers], "trainers: the label"),
        ([method.label for method in plan.methods], "methods: the label"),
        ([method.key for method in plan.methods], "methods:"),
    ):
        _check_unique(unique, f"{where} {what}")
    _check_severities(made_by.corruption, made_by.severities, (), f"{where} [calibration]")
    check_learning(plan, {m.label: made_by.severities for m in plan.methods if uses_bank(m.name)})
    for i, trainer in enumerate(plan.trainers, 1):
        try:
            chosen_by(plan, trainer)
        except InputError as error:
            raise type(error)(f"{where} trainers {i}: {error}") from error


def check_learning(plan: AnyPlan, learning: Mapping[str, tuple[int, ...]]) -> None:
    """Reject methods that learn from surrogate sets in a plan that has none.

    Args:
        plan: The plan.
        learning: Severities of the surrogate sets by label of the method.
    """
    if learning and not any(learning.values()):
        raise InputError(
            f"{plan.where} [calibration] severities must name at least one: {', '.join(learning)} "
            "learn from surrogate sets. Add some, or leave the methods out."
        )


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


def to_toml(plan: AnyPlan) -> str:
    """The plan as :func:`~shiftcal.studies.read_plan` reads it, with the defaults written out."""
    values = asdict(plan)
    for name in ("methods", "trainers"):
        values[name] = [
            {"name": each.name, "label": each.label, **each.settings}
            for each in getattr(plan, name, ())
        ] or None
    first = {name: values.pop(name) for name in ("study", "about")}
    return "\n".join(_table((), {**first, **values})) + "\n"


def _table(path: tuple[str, ...], values: Mapping[str, Any]) -> list[str]:
    """Lines of a table: its own entries, then the tables in it, then arrays of tables."""
    own, tables = [], []
    for key, value in values.items():
        place = (*path, _key(key))
        several = isinstance(value, (list, tuple)) and key not in ("methods", "trainers")
        if value is None or (key in _HIDDEN and not path):
            continue
        if isinstance(value, Mapping):
            lines = _table(place, value)
            tables += ["", f"[{'.'.join(place)}]", *lines] if value else []
        elif several and any(isinstance(each, Mapping) for each in value):
            for each in value:
                tables += ["", f"[[{'.'.join(place)}]]", *_table(place, each)]
        else:
            own.append(f"{place[-1]} = {_value(value)}")
    return own + tables


def _key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())}}}"
    if isinstance(value, (list, tuple)) and any(isinstance(each, Mapping) for each in value):
        return "[\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
    # Plain values are JSON, which leaves one character as it is that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
