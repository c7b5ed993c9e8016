"""What the user named: files, settings, corruptions and models, read and checked."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftcal.cli.output import complain
from shiftcal.errors import FileError, InputError, InputWarning, ShiftcalError, suggest
from shiftcal.files import find, naming, parsing
from shiftcal.registry import METHODS, split_spec, told

if TYPE_CHECKING:
    from shiftcal.maps import Map
    from shiftcal.methods import Method
    from shiftcal.models import Model
    from shiftcal.progress import Reporting
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank
    from shiftcal.types import Floats

# --- outputs ------------------------------------------------------------------------------------

# Parameters of commands that name what is written; all other paths are read.
_WRITTEN = ("output", "save_adapted", "statistics", "confidences", "state", "save", "cache")


def check_outputs(values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Reject outputs of a command that are one file, replace an input or cannot be written.

    Args:
        values: Its parameters.
        hints: Their annotations for typer.

    Raises:
        FileError: Naming the files.
    """
    outputs: dict[str, Path] = {}
    inputs: list[Path] = []
    for name, value in values.items():
        given = value if isinstance(value, list) else [value]
        paths = [path for path in given if isinstance(path, Path)]
        if name == "confidences" and value not in (None, "-"):
            paths = [Path(value)]
        if name not in _WRITTEN:
            inputs += paths
            continue
        for path in paths:
            outputs[f"--{name.replace('_', '-')}"] = path
            (info,) = hints[name].__metadata__
            if info.metavar.startswith("FILE"):
                check_output_file(path)
    for (first, path), (second, other) in combinations(outputs.items(), 2):
        if _same(path, other):
            raise FileError(
                f"{first} and {second} must be two files; {path} and {other} are one. Name "
                "another for one of them."
            )
    # The key of FILE.npz:KEY is not part of the path; a bank is the files in its folder.
    inputs = [Path(re.sub(r"(\.npz):.*", r"\1", str(path))) for path in inputs]
    inputs += [file for path in inputs if (path / "bank.json").is_file() for file in path.iterdir()]
    for output in outputs.values():
        if output.exists() and any(file.exists() and _same(output, file) for file in inputs):
            raise FileError(
                f"{output} is read by this command and must not be replaced. Name another output."
            )


def check_output_file(output: Path) -> None:
    """Reject a file that could not be written, before any work is done."""
    if output.is_dir():
        raise FileError(f"{output} is a folder. Name the file to be written.")
    if not output.parent.is_dir():
        raise FileError(
            f"{output} cannot be written: there is no folder {output.parent}. Make it first."
        )


def check_suffix(output: Path, *suffixes: str) -> None:
    """Reject an output whose format its name does not say."""
    if output.suffix.lower() not in suffixes:
        raise FileError(f"{output} must end in {' or '.join(suffixes)}; got {output.suffix!r}.")


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
                f"{output}: the output lies in the folder that is read, {folder}. Name one outside "
                "of it."
            )


def _same(path: Path, other: Path) -> bool:
    both = path.exists() and other.exists()
    return path.resolve() == other.resolve() or (both and path.samefile(other))


# --- bank and target ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """The files of a bank and a target; ``None`` or empty where nothing was named."""

    bank: Path | None
    surrogates: list[Path]
    target: Path | None = None
    source_train: Path | None = None

    def must_have_target(self) -> Path:
        """The target.

        Raises:
            InputError: If none was named.
        """
        if self.target is None:
            raise InputError(
                "the target is missing. Name its scores file as TARGET, or give --target FILE."
            )
        return self.target


def named(
    *places: Path | None,
    bank: Path | None = None,
    surrogates: Sequence[Path] | None = None,
    target: Path | None = None,
    source_train: Path | None = None,
) -> Named:
    """Which file is which.

    Args:
        *places: What stands on the line without an option: bank and target, or the target alone
            if an option names the bank. The folder of a run of ``shiftcal train`` is bank, target
            and training features at once.
        bank: ``--bank``.
        surrogates: ``--surrogate``.
        target: ``--target``.
        source_train: ``--source-train``.

    Raises:
        InputError: If something is named twice.
    """
    standing = [place for place in places if place is not None]
    sets = list(surrogates or [])
    if bank is not None and sets:
        raise InputError("--bank and --surrogate exclude one another. Leave one of them out.")
    if bank is None and not sets and standing:
        first = standing.pop(0)
        if first.is_file() or (first.suffix and not first.exists()):
            sets = [find(first)]
        elif (first / "bank" / "bank.json").is_file() and not (first / "bank.json").is_file():
            bank, train = first / "bank", first / "source-train.npz"
            source_train = source_train or (train if train.is_file() else None)
            if not standing and target is None:
                target = first / "target.npz"
        else:
            bank = first
    if standing and len(places) > 1:
        target = one_target(standing.pop(0), target)
    if standing:
        raise InputError(f"the bank is given twice: {places[0]}, and by an option. Leave one out.")
    return Named(bank, sets, target, source_train)


def one_target(place: Path | None, option: Path | None) -> Path:
    """The target, named in one of two ways.

    Raises:
        InputError: If it is named in both, or in neither.
    """
    if place is not None and option is not None:
        raise InputError(f"the target is given twice: {place} and {option}. Leave one out.")
    return Named(None, [], place or option).must_have_target()


def read_bank(files: Named, *, normalize: bool) -> SurrogateBank:
    """The surrogate bank.

    Raises:
        InputError: If none was named.
    """
    from shiftcal.surrogates import SurrogateBank

    if files.bank is not None:
        return SurrogateBank.load(files.bank, normalize=normalize)
    if not files.surrogates:
        raise InputError(
            "surrogate sets are missing. Give --surrogate FILE for every set, the clean "
            "calibration set first, or --bank DIR."
        )
    return SurrogateBank.from_files(files.surrogates, normalize=normalize)


def read_target(
    path: Path,
    *,
    n_classes: int,
    classes: Sequence[str] | None,
    normalize: bool = False,
    labels: Path | None = None,
) -> Scores:
    """The scores of a target whose classes must be those of the surrogate sets.

    Args:
        path: A scores file.
        n_classes: Number of classes there must be.
        classes: Their names in order, if known; not compared if the target has none.
        normalize: ``--normalize``.
        labels: File of labels that replace its own, ``--labels``.

    Raises:
        FileError: If it has other classes or another order.
    """
    from shiftcal.scores import read_labels, read_scores

    target = read_scores(path, normalize=normalize)
    if target.k != n_classes:
        raise FileError(
            f"{path} must have the classes of the surrogate sets: they have {n_classes}, and "
            f"this one has {target.k}. Both must come from one model."
        )
    if classes is not None and target.classes is not None:
        check_order(path, target.classes, tuple(classes))
    return target if labels is None else replace(target, labels=read_labels(labels, target))


def read_inputs(
    files: Named, *, normalize: bool, labels: Path | None = None
) -> tuple[SurrogateBank, Scores, Floats | None]:
    """The bank, the target with its labels if it has any, and features of training samples."""
    from shiftcal.scores import read_features

    path = files.must_have_target()
    bank = read_bank(files, normalize=normalize)
    target = read_target(
        path, n_classes=bank.n_classes, classes=bank.classes, normalize=normalize, labels=labels
    )
    target.logits()  # a target that cannot be used is an error, not a reason to skip a method
    return bank, target, None if files.source_train is None else read_features(files.source_train)


def check_order(path: Path, found: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """Reject classes of a target that are not those expected, in their order."""
    for column, (here, there) in enumerate(zip(found, expected, strict=True)):
        if here != there:
            reordered = set(found) == set(expected)
            raise FileError(
                f"{path} must have the classes of the surrogate sets in their order: column "
                f"{column} is {here!r} here and {there!r} there. "
                f"{'Reorder its columns.' if reordered else 'Both must come from one model.'}"
            )


# --- methods ------------------------------------------------------------------------------------

# Methods of the paper, from the least to the most informed; others follow by name.
_FIRST = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac")
_WHOSE = {
    "source": "the training samples (--source-train FILE)",
    "clean": "the clean set (in its scores file)",
    "target": "the target (in its scores file)",
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
        raise InputError(f"{method.name} needs features of {' and '.join(missing)}.")


def load_method(path: Path) -> Method:
    """A fitted method.

    Raises:
        FileError: If the file holds something else.
    """
    from shiftcal.methods import Method
    from shiftcal.persistence import load

    if path.is_dir():
        raise FileError(
            f"{path} is a folder, and METHOD must be a file with a fitted method. Fit one first: "
            f"shiftcal fit --method sac --bank {path} -o sac.json"
        )
    fitted = load(path)
    if not isinstance(fitted, Method):
        raise FileError(
            f"{path} holds the {fitted.kind} {fitted.name!r}, not a method. Write one with "
            "`shiftcal fit`."
        )
    return fitted


def adapt_to(method: Method, target: Scores) -> Scores:
    """Adapt a fitted method to a target; returns its scores of the kind the method takes.

    Raises:
        InputError: If the target's values cannot be used, or features or mixed images are missing.
    """
    check_needs(method, target=target.features)
    taken = target.as_kind(method.input)  # type: ignore[arg-type]
    with naming(target.source):
        method.adapt(taken, target.features)
    return taken


def warn_of_another_model(fitted: Method, method: Path, target: Path) -> bool:
    """Warn if both files say which model they are of and it is not the same; whether it did.

    One network in two files, say as ONNX and as TorchScript, counts as two: hence no error.
    """
    from shiftcal.scores import model_digest_of_file

    theirs = model_digest_of_file(target)
    another = None not in (theirs, fitted.model_) and theirs != fitted.model_
    if another:
        warnings.warn(
            f"{target} was scored by another model, or with another preprocessing, than the bank "
            f"that {method} was fitted on. Its confidences are valid only if both give the same "
            "logits; `shiftcal score --bank` ensures that.",
            InputWarning,
            stacklevel=2,
        )
    return another


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
    of_map: dict[str, Any] = {}
    for name, value in parse_assignments(assignments).items():
        if name in chosen:
            raise InputError(f"the setting {name!r} is given twice. Leave one of them out.")
        (of_map if name.startswith("map.") else chosen)[name.removeprefix("map.")] = value
    known = settings_of(method)
    _check_settings(method, {**chosen, **({"map": of_map} if of_map else {})})
    if "map" in chosen or of_map:
        cls = maps.get(chosen.get("map", known["map"]))
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


# --- models and images --------------------------------------------------------------------------


def load_model(spec: str, batch_size: int | None, classes: str | None = None) -> Model:
    """The model of ``--model``, with ``--batch-size`` and ``--classes``."""
    names = None if classes is None else parse_classes(classes)
    from shiftcal.models import as_model

    model = as_model(spec)
    model.batch_size = batch_size or model.batch_size
    model.classes = names or model.classes
    return model


def parse_classes(text: str) -> tuple[str, ...]:
    """The names that ``--classes`` gives, or the file it names.

    Raises:
        InputError: If there are fewer than two, or one comes twice.
        FileError: If it is neither names nor a file that can be read.
    """
    file = Path(text)
    try:
        is_file = file.is_file()
    except OSError:  # longer than a file name may be
        is_file = False
    if is_file:
        with parsing(file, "a text file in UTF-8"):
            names = file.read_text("utf-8-sig").rstrip().splitlines()
    elif "," in text:
        names = [name.strip() for name in text.split(",")]
    else:
        raise FileError(
            "--classes must be a text file with one name per line, or names with commas between "
            f"them; there is no file {text}."
        )
    if "" in names or len(set(names)) < len(names) or len(names) < 2:
        raise InputError("--classes must give two names or more, all different and none empty.")
    return tuple(names)


def reporting() -> Reporting:
    """How progress is shown: a bar on a terminal, lines elsewhere."""
    from shiftcal.progress import Reporting

    return Reporting(line=lambda text: complain("progress", text))


# --- groups -------------------------------------------------------------------------------------


def file_of(spec: str) -> tuple[Path, str | None]:
    """The file and the column that ``FILE`` or ``FILE:COLUMN`` names."""
    if Path(spec).exists() or ":" not in spec:
        return Path(spec), None
    file, _, column = spec.rpartition(":")
    # One letter before the colon is a drive of Windows.
    return (Path(file), column) if len(file) > 1 and column else (Path(spec), None)
