"""What the user named: files, settings, corruptions and models, read and checked."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shiftcal.cli.output import complain
from shiftcal.errors import FileError, InputError, InputWarning, ShiftcalError, suggest
from shiftcal.files import naming, remote_url
from shiftcal.registry import METHODS, split_spec, told

if TYPE_CHECKING:
    from shiftcal.maps import Map
    from shiftcal.methods import Method
    from shiftcal.progress import Reporting
    from shiftcal.scores import Scores
    from shiftcal.types import Floats

T = TypeVar("T")

# --- outputs ------------------------------------------------------------------------------------

# Parameters of commands that name what is written; all other paths are read.
_WRITTEN = ("output", "save_adapted", "statistics", "confidences", "state", "save", "cache")


def check_outputs(values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Reject outputs of a command that are one file, replace an input or cannot be written.

    Args:
        values: Its parameters.
        hints: Their annotations for typer.
    """
    outputs: dict[str, Path] = {}
    inputs: list[Path] = []
    for name, value in values.items():
        if name not in _WRITTEN:
            paths = [one for one in (value if isinstance(value, list) else [value])]
            inputs += [path for path in paths if isinstance(path, Path)]
        elif isinstance(value, Path):
            outputs[f"--{name.replace('_', '-')}"] = value
            if hints[name].__metadata__[0].metavar.startswith("FILE"):
                check_output_file(value)
    for (first, path), (second, other) in combinations(outputs.items(), 2):
        if _same(path, other):
            raise FileError(
                f"{first} and {second} must be two files; {path} and {other} are one. Name "
                "another for one of them."
            )
    # The key of FILE.npz:KEY is not part of the path; a bank is the files in its folder.
    inputs = [Path(re.sub(r"(\.npz):.*", r"\1", str(path))) for path in inputs]
    inputs += [path / "bank.json" for path in inputs]
    for output in outputs.values():
        if output.exists() and any(_same(output, path) for path in inputs):
            raise FileError(
                f"{output} is read by this command and must not be replaced. Name another output."
            )


def check_output_file(output: Path) -> None:
    """Reject a file that cannot be written."""
    if remote_url(output):
        return
    if output.is_dir():
        raise FileError(f"{output} is a folder. Name the file to be written.")
    if not output.parent.is_dir():
        raise FileError(
            f"{output} cannot be written: there is no folder {output.parent}. Make it first."
        )


def check_suffix(output: Path, *suffixes: str) -> None:
    """Reject an output whose format its name does not say."""
    if output.suffix.lower() not in suffixes:
        *most, last = suffixes
        choice = f"{', '.join(most)} or {last}" if most else last
        raise FileError(f"{output} must end in {choice}; got {output.suffix!r}.")


def refuse_inside(images: str, outputs: Sequence[Path | None]) -> None:
    """Reject outputs in a folder of images, where the next run would read them.

    Raises:
        FileError: Naming both.
    """
    folder = Path(images).expanduser()
    if not folder.exists():
        kind, path, _ = split_spec(images)
        folder = Path(path).expanduser() if kind.lower() in ("folder", "parquet", "tar") else folder
    for output in outputs:
        if output is not None and folder.is_dir() and folder.resolve() in output.resolve().parents:
            raise FileError(
                f"{output} is inside {folder}, the folder that is read. Name an output outside it."
            )


def _same(path: Path, other: Path) -> bool:
    both = path.exists() and other.exists()
    return path.resolve() == other.resolve() or (both and path.samefile(other))


# --- targets ------------------------------------------------------------------------------------


def read_target(
    path: Path,
    n_classes: int,
    classes: Sequence[str] | None,
    *,
    normalize: bool = False,
    labels: Path | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Scores:
    """The scores of a target whose classes must be those of the surrogate sets.

    Args:
        path: A scores file.
        n_classes: Number of classes there must be.
        classes: Their names in order, if known; not compared if the target has none.
        normalize: ``--normalize``.
        labels: File of labels that replace its own, ``--labels``.
        columns: Names of its columns, as :func:`~shiftcal.read_scores` takes them.

    Raises:
        FileError: If it has other classes or another order, or its values cannot be used.
    """
    from shiftcal.scores import read_labels, read_scores

    named = dict(columns or {})
    target = read_scores(path, normalize=normalize, **named)
    if target.k != n_classes:
        raise FileError(
            f"{path} must have the classes of the surrogate sets: they have {n_classes}, and "
            f"this one has {target.k}. Both must come from one model."
        )
    if target.classes is None and classes and "positive_class" in named:
        check_order(path, (classes[0], named["positive_class"]), classes)
        target = target._with(classes=tuple(classes))
    check_order(path, target.classes, classes)
    target.logits()
    return target if labels is None else target._with(labels=read_labels(labels, target))


def check_order(path: Path, found: Sequence[str] | None, expected: Sequence[str] | None) -> None:
    """Reject classes of a target that are not those expected, in their order."""
    if found is None or expected is None:
        return
    for column, (here, there) in enumerate(zip(found, expected, strict=True)):
        if here != there:
            raise FileError(
                f"{path} must have the classes of the surrogate sets in their order: column "
                f"{column} is {here!r} here and {there!r} there."
            )


# --- methods ------------------------------------------------------------------------------------

# Methods of the paper, from the least to the most informed; others follow by name.
_FIRST = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac")
_WHOSE = {
    "source": "the training samples (--source-train FILE)",
    "clean": "the clean set",
    "target": "the target",
}


def method_names() -> list[str]:
    """Every method's name, in the order of a table."""
    return [*_FIRST, *(name for name in METHODS.names() if name not in _FIRST)]


def check_needs(method: Method | type[Method], **features: Floats | None) -> None:
    """Reject a method that needs more than the files have.

    Args:
        method: The method.
        **features: Features by the keys of ``_WHOSE``; ``None`` if there are none.

    Raises:
        InputError: Naming what is missing.
    """
    if method.uses_mixed:
        raise InputError(
            f"{method.name} needs the model run over mixed target images, in Python: "
            "shiftcal.scoring.score_mixed."
        )
    missing = [_WHOSE[key] for key, given in features.items() if given is None]
    if method.uses_features and missing:
        raise InputError(f"{method.name} needs features of {', '.join(missing)}.")


def load_fitted(path: Path, kind: type[T], rule: str) -> T:
    """What a file holds.

    Args:
        path: The file.
        kind: What it must be.
        rule: The same in a sentence.

    Raises:
        FileError: If the file holds something else.
    """
    from shiftcal.persistence import load

    if path.is_dir():
        raise FileError(f"{path} is a folder. {rule}")
    if not path.exists():
        raise FileError(f"{path} does not exist. {rule}")
    fitted = load(path)
    if not isinstance(fitted, kind):
        raise FileError(f"{path} holds the {fitted.kind} {fitted.name!r}. {rule}")
    return fitted


def load_method(path: Path) -> Method:
    """A fitted method."""
    from shiftcal.methods import Method

    rule = "METHOD must be a fitted method: shiftcal fit --method sac --bank bank/ -o sac.json"
    return load_fitted(path, Method, rule)


def adapt_to(method: Method, target: Scores) -> Scores:
    """Adapt a fitted method to a target; returns its scores of the kind the method takes.

    Raises:
        InputError: If the target's values cannot be used, or features or mixed images are missing.
    """
    check_needs(method, target=target.features)
    taken = target.as_kind(method.input)  # type: ignore[arg-type]
    with naming(target.source):
        method.adapt(taken)
    return taken


def warn_of_another_model(fitted: Method, method: Path, target: Path) -> None:
    """Warn if both files say which model they are of and it is not the same.

    One network in two files, say as ONNX and as a PyTorch module, counts as two: hence no error.
    """
    from shiftcal.scores import model_digest_of_file

    theirs = model_digest_of_file(target)
    if None not in (theirs, fitted.model_) and theirs != fitted.model_:
        warnings.warn(
            f"{target} was scored by another model, or with another preprocessing, than the bank "
            f"of {method}. Use `shiftcal score --bank` to score with the model of a bank.",
            InputWarning,
            stacklevel=2,
        )


# --- settings -----------------------------------------------------------------------------------


def settings_of(cls: type[Method] | type[Map]) -> dict[str, Any]:
    """Name and default of every setting; the kind of input is none of them: the files say it."""
    parameters = inspect.signature(cls).parameters
    return {name: p.default for name, p in parameters.items() if name != "input"}


def parse_assignments(assignments: Sequence[str] | None) -> dict[str, Any]:
    """Names and values of ``--set NAME=VALUE``; values are JSON, or else text.

    Raises:
        InputError: If one has another form, or a name is given twice.
    """
    chosen: dict[str, Any] = {}
    for assignment in assignments or ():
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise InputError(f"--set must be of the form NAME=VALUE; got {assignment!r}.")
        if name in chosen:
            raise InputError(f"the setting {name!r} is given twice. Leave one of them out.")
        try:
            chosen[name] = json.loads(text)
        except ValueError:
            chosen[name] = text
    return chosen


def choose_settings(
    method: type[Method], options: Mapping[str, Any], assignments: Sequence[str] | None
) -> dict[str, Any]:
    """The settings of an unfitted method.

    Args:
        method: The method.
        options: Values of options that are named as settings are; ``None`` if not given.
        assignments: Texts ``NAME=VALUE`` of ``--set``; a name after ``map.`` is one of the map's.

    Raises:
        InputError: If there is no such setting, or one is given twice.
    """
    from shiftcal import maps

    chosen = {name: value for name, value in options.items() if value is not None}
    assigned = parse_assignments(assignments)
    if twice := chosen.keys() & assigned:
        raise InputError(f"the setting {twice.pop()!r} is given twice. Leave one of them out.")
    chosen |= assigned
    dotted = [name for name in chosen if name.startswith("map.")]
    of_map = {name.removeprefix("map."): chosen.pop(name) for name in dotted}
    if of_map:
        chosen.setdefault("map", settings_of(method).get("map"))
    _check_settings(method, chosen)
    if "map" in chosen:
        cls = maps.get(chosen["map"])
        _check_settings(cls, of_map)
        if of_map:
            chosen["map"] = cls(**of_map)
    return chosen


def _check_settings(cls: type[Method] | type[Map], chosen: Mapping[str, Any]) -> None:
    known = settings_of(cls)
    for name, value in chosen.items():
        if name not in known:
            hint = suggest(name, list(known)) if known else "It has no settings."
            raise InputError(f"{cls.name} has no setting {name!r}. {hint}")
        if isinstance(known[name], bool) and not isinstance(value, bool):
            raise InputError(f"the setting {name!r} must be true or false; got {value!r}.")


# --- corruptions --------------------------------------------------------------------------------


def choose_corruptions(asked: Sequence[str], frost_photos: Path | None = None) -> list[Any]:
    """The corruptions of ``--corruption``, each once.

    Args:
        asked: Names, ``all``, or ``module:function``; each may be several with commas between.
        frost_photos: Folder of photographs for frost.

    Raises:
        InputError: If there is none of that name, or photographs are given and no frost.
    """
    from shiftcal import corruptions

    words = [name.strip() for text in asked for name in text.split(",")]
    names = [name for word in words for name in (corruptions.names() if word == "all" else [word])]
    chosen = [corruptions.as_corruption(name) for name in dict.fromkeys(names)]
    if frost_photos is None:
        return chosen
    if "frost" not in (corruption.name for corruption in chosen):
        raise InputError("--frost-photos goes with --corruption frost.")
    frost = corruptions.get("frost")(photos=frost_photos)
    return [frost if corruption.name == "frost" else corruption for corruption in chosen]


def parse_severities(text: str) -> list[int] | None:
    """The severities of ``--severity``; ``None`` for all."""
    if text == "all":
        return None
    chosen: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,3})(?:-(\d{1,3}))?\s*", part, re.ASCII)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise InputError(
                f"--severity must be a number, several as 1,3 or 2-4, or all; got {text!r}."
            )
        chosen.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return sorted(chosen)


@contextmanager
def blaming_functions() -> Iterator[None]:
    """Report what a user's own function raised as an error of the input."""
    try:
        yield
    except ShiftcalError:
        raise
    except Exception as error:
        # How shiftcal.corruptions.Custom marks it.
        marks = [n for n in getattr(error, "__notes__", ()) if n.startswith("raised by the corr")]
        if not marks:
            raise
        raise InputError(f"{told(error)} ({marks[0]}).") from error


# --- progress and groups ------------------------------------------------------------------------


def reporting() -> Reporting:
    """How progress is shown: a bar on a terminal, lines elsewhere."""
    from shiftcal.progress import Reporting

    return Reporting(line=lambda text: complain("progress", text))


def file_of(spec: str) -> tuple[Path, str | None]:
    """The file and the column that ``FILE`` or ``FILE:COLUMN`` names."""
    if Path(spec).exists() or ":" not in spec:
        return Path(spec), None
    file, _, column = spec.rpartition(":")
    # One letter before the colon is a drive of Windows.
    return (Path(file), column) if len(file) > 1 and column else (Path(spec), None)
