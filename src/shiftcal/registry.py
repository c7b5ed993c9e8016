"""Everything that has a name: built-in classes by table, and a user's own.

A name stands for a built-in (the tables at the end of this file), for what an installed package
declares as an entry point, or, as ``package.module:Class``, for a class of the user's own. Nothing
here is imported before it is asked for.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from shiftcal.errors import InputError, UnknownName, suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")


@dataclass(eq=False)
class Registry:
    """Names of one kind of thing, and what they stand for.

    Attributes:
        noun: What an entry is called in messages, such as ``"calibration map"``.
        built_in: Built-in classes, by module; their names are made of those of the classes, or
            stand before them, ``name=Class``.
        base: ``module:Class`` of what a user's own must be; ``None`` if there can be none.
        group: The group of entry points in which installed packages declare theirs.
        functions: Whether entries are functions, which are instances of the base, not classes.
        space: What stands between the words of a name.
        entries: Built-in names, each with its ``module:Class``.
    """

    noun: str
    built_in: Mapping[str, str]
    base: str | None = None
    group: str | None = None
    functions: bool = False
    space: str = "-"

    def __post_init__(self) -> None:
        named = {}
        for module, words in self.built_in.items():
            for word in words.split():
                name, _, cls = word.rpartition("=")
                name = name or self.canonical(default_name(cls, self.space))
                named[name] = f"{module}:{cls}"
        self.entries: Mapping[str, str] = dict(sorted(named.items()))

    def names(self) -> list[str]:
        """Every name, sorted: built-in ones and those of entry points. Imports none of them."""
        return sorted({*self.entries, *self._installed()})

    @property
    def classes(self) -> dict[str, str]:
        """Name of every built-in by the name of its class."""
        return {place.partition(":")[2]: name for name, place in self.entries.items()}

    def canonical(self, name: str) -> str:
        """``name`` as it is listed: ``-`` is ``_``, and capitals do not matter."""
        return name if is_own(name) else re.sub("[-_]", self.space, name).lower()

    def get(self, name: str) -> Any:
        """The class (or function) that ``name`` stands for; ``module:Class`` is imported.

        For names that the user gives in this very call. Those in files go through :meth:`saved`.

        Raises:
            UnknownName: With the nearest names there are.
            InputError: If ``module:Class`` cannot be imported, or is something else.
        """
        if self.base is None or not is_own(name):
            return self._listed(name)
        return self._checked(imported(name), name)

    def saved(self, name: str) -> Any:
        """As :meth:`get`, but nothing is imported because a file names it.

        ``module:Class`` is found if its module is imported already, or if an entry point of its
        package is installed.
        """
        if self.base is None or not is_own(name):
            return self._listed(name)
        module, _, attribute = name.partition(":")
        for entry in self._installed().values() if module not in sys.modules else ():
            if entry.module.partition(".")[0] == module.partition(".")[0]:
                _loaded(entry)
        if module not in sys.modules:
            raise UnknownName(
                f"it needs the {self.noun} {name}, and a file never causes an import. Run "
                f"`import {module}` first, on the command line `shiftcal --import {module} ...`."
            )
        found: Any = sys.modules[module]
        for part in attribute.split("."):
            found = vars(found).get(part) if hasattr(found, "__dict__") else None
        if found is None:
            raise UnknownName(f"it needs the {self.noun} {name}, and {module} has no {attribute}.")
        return self._checked(found, name)

    def is_built_in(self, cls: type[Any]) -> bool:
        """Whether ``cls`` is one of the table."""
        return self.entries.get(getattr(cls, "name", "")) == _place(cls)

    def saved_name(self, cls: type[Any]) -> str:
        """What a file calls ``cls``: its name if it is built-in, else ``module:Class``.

        Raises:
            InputError: If :meth:`saved` would not find it again, with what to do.
        """
        if self.is_built_in(cls):
            return str(cls.name)
        place, word = _place(cls), self.noun.rpartition(" ")[2]
        try:
            found = None if cls.__module__ == "__main__" else self.saved(place)
        except UnknownName:
            found = None
        if found is not cls:
            raise InputError(
                f"{cls.__name__} cannot be saved, since {place} could not be loaded. Put the class "
                f"at the top level of a module, such as my_{word}s.py, and `from my_{word}s import "
                f"{cls.__name__}`."
            )
        return place

    def _installed(self) -> dict[str, EntryPoint]:
        if self.group is None:
            return {}
        found = _entry_points(self.group, tuple(sys.path))
        named = {self.canonical(entry.name): entry for entry in found}
        return {name: entry for name, entry in named.items() if name not in self.entries}

    def _listed(self, name: str) -> Any:
        wanted = self.canonical(name) if isinstance(name, str) else name
        if wanted in self.entries:
            return _attribute(self.entries[wanted])
        entry = self._installed().get(wanted)
        if entry is None:
            raise UnknownName(f"no {self.noun} is called {name!r}. {suggest(wanted, self.names())}")
        return self._checked(_loaded(entry), entry.value)

    def _checked(self, found: Any, place: str) -> Any:
        """What a user's own name stands for, if it is what it must be."""
        base = _attribute(self.base or "")
        if self.functions:
            if not isinstance(found, base):
                raise InputError(
                    f"{place} must be a {self.noun}, decorated with @metric(Facts(...)); got "
                    f"{found!r}."
                )
            return found
        if not (isinstance(found, type) and issubclass(found, base)):
            raise InputError(
                f"{place} must be a {self.noun}, a subclass of {base.__name__}; got {found!r}."
            )
        if inspect.isabstract(found):
            lacking = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
            raise InputError(f"{place} is not a complete {self.noun}: it must define {lacking}.")
        takes_input = "input" in getattr(base, "__annotations__", {})
        if takes_input and "input" not in inspect.signature(found).parameters:
            raise InputError(
                f"{place} is not a complete {self.noun}: its __init__ must take input= and set it, "
                'as in def __init__(self, *, input="logits"): self.input = input'
            )
        name = getattr(found, "name", None)
        taken = name in self.entries and not self.is_built_in(found)
        if taken or not isinstance(name, str) or not _NAME.fullmatch(name):
            own = f"my{self.space}{name}" if taken else default_name(found.__name__, self.space)
            raise InputError(
                f"{place} has {f'the name of a built-in {self.noun}' if taken else 'no name'}. "
                f'Put this line into the class: name = "{own}"'
            )
        return found


def is_own(name: object) -> bool:
    """Whether ``name`` has the form ``package.module:Class`` of a user's own."""
    return isinstance(name, str) and ":" in name


def imported(name: str, *, prefix: str = "") -> Any:
    """What ``package.module:attribute`` or a module is; it may be in the current folder too.

    Args:
        name: The name.
        prefix: What the user wrote before it, for messages, such as ``"torch:"``.

    Raises:
        InputError: If there is no such thing, or importing it raises.
    """
    try:
        with current_folder():
            return _attribute(name)
    except Exception as error:  # the module is the user's, and may raise anything
        text = f"{prefix}{name}" if prefix else repr(name)
        raise InputError(f"{text} cannot be imported: {told(error)}.") from error


@contextmanager
def current_folder() -> Iterator[None]:
    """Modules in the current folder can be imported, after all installed ones."""
    folder = str(Path.cwd())
    added = [] if folder in sys.path else [folder]
    sys.path.extend(added)
    try:
        yield
    finally:
        if added and folder in sys.path:  # what was imported may have changed the list
            sys.path.remove(folder)


def split_spec(text: str) -> tuple[str, str, dict[str, str]]:
    """``kind:target?option=value&option=value`` as its kind, target and options.

    The kind is empty for a plain path; one letter before a colon is a drive of Windows. ``%3F``
    and the like are decoded in the options only, and ``-`` in their names becomes ``_``.

    Raises:
        InputError: If an option has no value, or comes twice.
    """
    body, mark, query = text.partition("?")
    options: dict[str, str] = {}
    for part in query.split("&") if mark else ():
        name, equals, value = part.partition("=")
        name = unquote(name).strip().replace("-", "_")
        if not equals or not name.isidentifier() or name in options:
            raise InputError(
                f"options must be name=value with & between them, each once; got {part!r} in "
                f"{text!r}."
            )
        options[name] = unquote(value)
    named = re.match(r"[A-Za-z][\w-]+(?=:)", body)
    return (named[0], body[named.end() + 1 :], options) if named else ("", body, options)


def plain_value(text: str) -> int | float | bool | str | None:
    """The number, truth value or nothing (``none``) that a text stands for, else the text."""
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    number = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)
    return float(text) if number else text


def told(error: BaseException) -> str:
    """What was raised, and where, if that is a line of the user's."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {str(error).rstrip('.')}"
    library = "importlib" in frame.filename or Path(__file__).parent in Path(frame.filename).parents
    return said if library else f"{said}, in {Path(frame.filename).name}, line {frame.lineno}"


def default_name(word: str, space: str) -> str:
    """A name made of that of a class: ``DeadPixels`` is ``dead_pixels``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", space, word).lower()


def _place(cls: type[Any]) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _attribute(place: str) -> Any:
    module, _, attribute = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in filter(None, attribute.split(".")):
        found = getattr(found, part)
    return found


@functools.lru_cache
def _entry_points(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of a group, looked up once for every ``sys.path``."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:  # the package is somebody's, and raises what it likes
        source = f" of the package {entry.dist.name}" if entry.dist is not None else ""
        raise InputError(
            f"the entry point {entry.name!r} in {entry.group}{source} cannot be loaded: "
            f"{told(error)}. Repair or uninstall that package."
        ) from error


METHODS = Registry(
    "method",
    {
        "shiftcal.methods.realign": "Realign",
        "shiftcal.methods.rehearsal": "Rehearsal",
        "shiftcal.methods.sac": "SAC",
        "shiftcal.methods.simple": "ACE pseudocal=PseudoCal STS TS Vanilla",
        "shiftcal.methods.weighted": "CPCS transcal=TransCal",
    },
    base="shiftcal.methods.method:Method",
    group="shiftcal.methods",
)
MAPS = Registry(
    "calibration map",
    {
        "shiftcal.maps": "Beta BrierTemperature Dirichlet EnsembleTemperature EntropyTemperature "
        "Histogram Isotonic Matrix Spline Temperature Vector"
    },
    base="shiftcal.maps:Map",
    group="shiftcal.maps",
)
METRICS = Registry(
    "metric",
    {
        "shiftcal.metrics": "accuracy aurc brier classwise_ece debiased_ece ece ks_error mce "
        "nll smooth_ece top1_brier"
    },
    base="shiftcal.metrics:Metric",
    group="shiftcal.metrics",
    functions=True,
)
CORRUPTIONS = Registry(
    "corruption",
    {
        "shiftcal.corruptions.blur": "DefocusBlur GaussianBlur GlassBlur MotionBlur ZoomBlur",
        "shiftcal.corruptions.digital": "Contrast ElasticTransform JpegCompression "
        "Pixelate Saturate",
        "shiftcal.corruptions.noise": "GaussianNoise ImpulseNoise ShotNoise SpeckleNoise",
        "shiftcal.corruptions.weather": "Brightness Fog Frost Snow Spatter",
    },
    base="shiftcal.corruptions.corruption:Corruption",
    group="shiftcal.corruptions",
    space="_",
)
TABULAR = Registry(
    "corruption of rows",
    {"shiftcal.corruptions.tabular": "CategorySwaps Drift MissingValues Noise"},
    base="shiftcal.corruptions.tabular:TabularCorruption",
    space="_",
)
TEXT = Registry(
    "corruption of texts",
    {"shiftcal.corruptions.text": "DroppedWords Typos"},
    base="shiftcal.corruptions.text:TextCorruption",
    space="_",
)
ESTIMATORS = Registry(
    "accuracy estimator",
    {"shiftcal.estimates": "ATC doc=DoC MeanConfidence Rehearsed SurrogateCurve"},
    base="shiftcal.estimates:AccuracyEstimator",
)
PARTS = Registry(  # what else a saved file may be of
    "part of a saved file",
    {
        "shiftcal.grouping": "GroupedCalibration",
        "shiftcal.monitoring.monitor": "Exponential Monitor Sliding",
    },
    base="shiftcal.persistence:Estimator",
)
TRAINERS = Registry(
    "trainer",
    {"shiftcal.adaptation.trainers": "CDAN DAN JAN MCC MDD SAFN SourceOnly"},
    base="shiftcal.adaptation.trainers:Trainer",
)
ENGINES = Registry(
    "engine",
    {"shiftcal.scoring.engines": "local=LocalEngine ray=RayEngine"},
    base="shiftcal.scoring.engines:Engine",
)
DATA_SETS = Registry(
    "data set",
    {
        "shiftcal.datasets.catalog.cifar": "CIFAR10 CIFAR10_1 CIFAR10_C",
        "shiftcal.datasets.catalog.digits": "MNIST MNIST_M USPS",
        "shiftcal.datasets.catalog.domains": "OFFICE_CALTECH10 OFFICE_HOME PACS VISDA2017",
        "shiftcal.datasets.catalog.imagenet": "IMAGENET IMAGENET_C IMAGENET_SKETCH IMAGENET_V2",
    },
)
STUDIES = Registry(
    "study",
    {
        "shiftcal.studies.ablation": "Ablation CorruptionChoice",
        "shiftcal.studies.shifts": "Distances Natural Peek Synthetic",
        "shiftcal.studies.why_it_works": "WhyItWorks",
    },
)
