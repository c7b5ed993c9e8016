"""Options that several commands share."""

from __future__ import annotations

import csv
import inspect
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftcal.errors import FileError, InputError, InputWarning, ShiftcalError
from shiftcal.files import naming
from shiftcal.registry import suggest, told

if TYPE_CHECKING:
    from shiftcal.maps import Map
    from shiftcal.methods import Method
    from shiftcal.scores import Scores

# --------------------------------------------------------------------------------------
# Options that several commands have, so that each is described once.
# --------------------------------------------------------------------------------------

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout, and nothing else there."),
]
Normalize = Annotated[
    bool,
    typer.Option(
        "--normalize",
        help="Divide rows of probabilities by their sum, as rounded ones need; logits stay.",
    ),
]
Surrogates = Annotated[
    list[Path] | None,
    typer.Option(
        "--surrogate",
        metavar="FILE",
        help="Scores file of a labelled surrogate set. Once for every set in order of difficulty, "
        "the clean calibration set first.",
    ),
]
Bank = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of a saved surrogate bank, instead of --surrogate."),
]
SourceTrain = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with features of training samples, for methods that weigh by features "
        "(cpcs, transcal): an .npz with 'features', x_features.npy, or a scores file.",
    ),
]
Bins = Annotated[int, typer.Option(metavar="N", min=1, help="Number of bins of binned metrics.")]
Binning = Annotated[
    str,
    typer.Option(
        metavar="size|width",
        help="Bins of equally many rows (size, or quantile) or of equally much confidence "
        "(width, or uniform).",
    ),
]
Level = Annotated[
    float,
    typer.Option(metavar="FRACTION", help="Coverage of the intervals, strictly between 0 and 1."),
]
Resamples = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Bootstrap draws behind an interval; 0 for no intervals."
    ),
]
BootstrapSeed = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Seed of the bootstrap; the same seed gives the same intervals."
    ),
]
Table = Annotated[
    str,
    typer.Option(
        metavar="cifar|tiny-imagenet|imagenet|auto",
        help="Whose strengths; auto goes by the size of the images.",
    ),
]
ImageSeed = Annotated[int, typer.Option(metavar="N", min=0, help="Fixes the random numbers.")]
FrostPhotos = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder of frost photographs, instead of the procedural frost."
    ),
]
Resize = Annotated[
    int | None,
    typer.Option(metavar="N", help="Make the shorter side of images of a folder N first."),
]
Crop = Annotated[
    int | None, typer.Option(metavar="N", help="Then cut N x N pixels from the centre.")
]


# --------------------------------------------------------------------------------------
# From options to the settings of an unfitted method, and of the map inside it.
# --------------------------------------------------------------------------------------

_OF_MAP = "map."


def settings_of(cls: type[Method] | type[Map]) -> dict[str, Any]:
    """Name and default of every setting that can be chosen.

    The kind of input is none of them: the files say it.
    """
    parameters = inspect.signature(cls).parameters
    return {name: p.default for name, p in parameters.items() if name != "input"}


def shown_settings(method: Method) -> dict[str, Any]:
    """Every setting, those of a map under the names that ``--set`` gives them."""
    from shiftcal.maps import Map

    shown = method.get_params(deep=False)
    inner = shown.get("map")
    if isinstance(inner, Map):
        shown["map"] = inner.name
        shown |= {_OF_MAP + name: getattr(inner, name) for name in settings_of(type(inner))}
    return shown


def choose_settings(
    method: type[Method], options: Mapping[str, Any], assignments: Sequence[str]
) -> dict[str, Any]:
    """The settings that options ask for.

    Args:
        method: The method they are for.
        options: Values of the options named as settings are; ``None`` if not given.
        assignments: Texts ``NAME=VALUE`` of ``--set``; a name after ``map.`` is one of the map's.

    Raises:
        InputError: If there is no such setting, or one is given twice.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    known = settings_of(method)
    for name in chosen:
        if name not in known:
            raise InputError(_has_no(method, f"--{name}", name))
    of_map: dict[str, Any] = {}
    for assignment in assignments:
        name, value = _parse(assignment)
        if name.startswith(_OF_MAP):
            _put(of_map, name, value)
            continue
        if name not in known:
            raise InputError(_unknown(method, name, chosen.get("map", known.get("map"))))
        _put(chosen, name, value, default=known[name])
    if of_map and "map" not in known:
        raise InputError(_has_no(method, f"{next(iter(of_map))!r} for --set", "map"))
    if "map" in chosen or of_map:
        chosen["map"] = _choose_map(chosen.get("map", known["map"]), of_map)
    return chosen


def parse_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """Names and values of ``--set NAME=VALUE``; values are JSON, or else text.

    Raises:
        InputError: If one has another form, or a name is given twice.
    """
    chosen: dict[str, Any] = {}
    for assignment in assignments:
        _put(chosen, *_parse(assignment))
    return chosen


def _choose_map(name: str, assigned: Mapping[str, Any]) -> str | Map:
    """The map's name, or an unfitted one if it has settings of its own."""
    from shiftcal import maps

    cls = maps.get(name)  # a mistyped name is told before files are read
    if not assigned:
        return name
    known = settings_of(cls)
    settings: dict[str, Any] = {}
    for full_name, value in assigned.items():
        setting = full_name.removeprefix(_OF_MAP)
        if setting not in known:
            hint = suggest(setting, list(known)) if known else "It has no settings."
            raise InputError(f"the map {cls.name} has no setting {setting!r}. {hint}")
        _put(settings, setting, value, default=known[setting])
    made: Map = cls(**settings)
    return made


def _put(chosen: dict[str, Any], name: str, value: Any, *, default: Any = None) -> None:
    if name in chosen:
        raise InputError(f"the setting {name!r} is given twice. Leave one of them out.")
    if isinstance(default, bool) and not isinstance(value, bool):
        raise InputError(f"the setting {name!r} must be true or false; got {value!r}.")
    chosen[name] = value


def _unknown(method: type[Method], name: str, map_name: Any) -> str:
    from shiftcal import maps

    problem = _has_no(method, f"{name!r} for --set", name)
    if isinstance(map_name, str) and name in settings_of(maps.get(map_name)):
        return f"{problem} The map {map_name} has: say --set {_OF_MAP}{name}=..."
    return f"{problem} {suggest(name, list(settings_of(method)))}"


def _has_no(method: type[Method], what: str, setting: str) -> str:
    from shiftcal import methods

    others = [name for name in methods.names() if setting in settings_of(methods.get(name))]
    where = f" It belongs to: {', '.join(others)}." if others else ""
    return f"{method.name} has no setting {what}.{where}"


def _parse(assignment: str) -> tuple[str, Any]:
    name, equals, text = assignment.partition("=")
    if not equals or not name:
        raise InputError(f"--set must be of the form NAME=VALUE; got {assignment!r}.")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


# --------------------------------------------------------------------------------------
# From ``--corruption``, ``--severity`` and ``--frost-photos`` to corruptions.
# --------------------------------------------------------------------------------------

# How :class:`shiftcal.corruptions.Custom` marks what a function of the user's raised.
_RAISED_BY = "raised by the corruption"
_RANGE = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")


def choose_corruptions(asked: Sequence[str], frost_photos: Path | None) -> list[Any]:
    """The corruptions that the names stand for, each once.

    Args:
        asked: Names, ``all``, or ``module:function``; each may be several with commas between.
        frost_photos: Folder of photographs for frost.

    Raises:
        InputError: If there is none of that name, or photographs are given and no frost.
    """
    from shiftcal import corruptions

    said = [name.strip() for each in asked for name in each.split(",")]
    names = [name for each in said for name in (corruptions.names() if each == "all" else [each])]
    made = [corruptions.as_corruption(name) for name in dict.fromkeys(names)]
    if frost_photos is None:
        return made
    if "frost" not in (corruption.name for corruption in made):
        raise InputError("--frost-photos goes with --corruption frost.")
    frost = corruptions.get("frost")(photos=frost_photos)
    return [frost if corruption.name == "frost" else corruption for corruption in made]


def parse_severities(text: str) -> list[int] | None:
    """The severities that ``--severity`` names; ``None`` for all."""
    if text == "all":
        return None
    chosen: set[int] = set()
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise InputError(
                f"--severity must be a number, several as 1,3 or 2-4, or all; got {text!r}."
            )
        low, high = found.groups()
        chosen.update(range(int(low), int(high or low) + 1))
    if not chosen:
        raise InputError(f"--severity {text!r} names none. Put the smaller number first.")
    return sorted(chosen)


@contextmanager
def blaming_functions() -> Iterator[None]:
    """Tell what a user's own function raised as a fault of the input, which it is."""
    try:
        yield
    except ShiftcalError:
        raise
    except Exception as error:
        notes = [note for note in getattr(error, "__notes__", ()) if note.startswith(_RAISED_BY)]
        if not notes:
            raise
        raise InputError(f"{told(error)} ({notes[0]}).") from error


# --------------------------------------------------------------------------------------
# Which files are the bank and the target, whether options or places on the line say so.
# --------------------------------------------------------------------------------------

BankPlace = Annotated[
    Path | None,
    typer.Argument(
        metavar="BANK",
        show_default=False,
        help="Folder of a surrogate bank, or a scores file of the labelled clean set alone; or the "
        "folder of a run of `shiftcal train`, which has a target too. The same as --bank.",
    ),
]
TargetPlace = Annotated[
    Path | None,
    typer.Argument(
        metavar="TARGET",
        show_default=False,
        help="Scores file of the target. The same as --target.",
    ),
]
TargetFile = Annotated[
    Path | None,
    typer.Option(
        "--target",
        metavar="FILE",
        help="Scores file of the target, if it does not stand behind BANK. Labels, if it has any, "
        "judge; nothing else looks at them.",
    ),
]
TargetLabels = Annotated[
    Path | None,
    typer.Option(
        "--labels", metavar="FILE", help="Labels of the target, as for `shiftcal evaluate`."
    ),
]


@dataclass(frozen=True)
class Named:
    """What was named; ``None`` where nothing was.

    Attributes:
        bank: Folder of a bank.
        surrogates: Scores files of surrogate sets in its place.
        target: Scores file of the target.
        source_train: File with features of training samples.
    """

    bank: Path | None
    surrogates: list[Path] | None
    target: Path | None
    source_train: Path | None = None

    def one_source(self) -> Path | None:
        """The bank, or the one file in its place; ``None`` if there are several, or none."""
        several = self.surrogates or []
        return several[0] if len(several) == 1 else self.bank

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

    def all(self) -> list[Path]:
        """Every file there is, those of a bank's folder among them."""
        folder = self.bank is not None and self.bank.is_dir()
        inside = list(self.bank.iterdir()) if folder and self.bank is not None else []
        single = [self.target, self.source_train]
        return [*inside, *(self.surrogates or []), *(file for file in single if file is not None)]


def named(
    places: Sequence[Path | None],
    *,
    bank: Path | None,
    surrogates: Sequence[Path] | None,
    target: Path | None = None,
    source_train: Path | None = None,
) -> Named:
    """Which file is which.

    Of those in their places the first is the bank and the second the target, or the only one is
    the target where options name the bank. The folder of a run of ``shiftcal train`` is bank,
    target and training features at once.

    Args:
        places: What stands on the line without an option, in order.
        bank: ``--bank``.
        surrogates: ``--surrogate``.
        target: ``--target``.
        source_train: ``--source-train``.

    Raises:
        InputError: If something is named twice.
        FileError: If there is no such bank.
    """
    standing = [place for place in places if place is not None]
    said = Named(bank, list(surrogates or []) or None, target, source_train)
    if bank is None and not surrogates and standing:
        said = _with_bank(said, standing.pop(0))
    if standing and len(places) > 1:
        said = replace(said, target=one_target(standing.pop(0), target))
    if standing:
        raise InputError(
            f"the bank is given twice: {places[0]}, and by an option. Leave one of them out."
        )
    if said.bank is not None and said.surrogates:
        raise InputError("--bank and --surrogate exclude one another. Leave one of them out.")
    if said.bank is not None and not said.bank.exists():
        raise FileError(f"there is no folder {said.bank} of a bank.{_near(said.bank)}")
    return said


def one_target(place: Path | None, option: Path | None) -> Path:
    """The target, which is said in one of two ways.

    Raises:
        InputError: If it is said in both, or in neither.
    """
    if place is not None and option is not None:
        raise InputError(f"the target is given twice: {place} and {option}. Leave one out.")
    return Named(None, None, place or option).must_have_target()


def _with_bank(said: Named, place: Path) -> Named:
    if not place.is_dir() and (place.suffix or place.exists()):
        if not place.exists():
            raise FileError(f"{place} does not exist.{_near(place)}")
        return replace(said, surrogates=[place])
    if (place / "bank.json").is_file() or not (place / "bank" / "bank.json").is_file():
        return replace(said, bank=place)
    train = place / "source-train.npz"
    return Named(
        place / "bank",
        None,
        said.target or (place / "target.npz"),
        said.source_train or (train if train.is_file() else None),
    )


def _near(path: Path) -> str:
    """A hint at what beside a mistyped path is called nearly so; empty if nothing is."""
    beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, beside, n=1)
    return f" Did you mean '{path.with_name(near[0])}'?" if near else ""


# --------------------------------------------------------------------------------------
# The group of every row of a target, from the file that ``--groups`` names.
# --------------------------------------------------------------------------------------

_COLUMN, _ID = "group", "id"
_SUFFIXES = (".npy", ".npz", ".csv", ".parquet", ".txt")


@dataclass(frozen=True)
class _Given:
    """What a file says: a group per row, and maybe whose it is."""

    groups: Sequence[Any]
    ids: Sequence[Any] | None = None


def file_of(spec: str) -> tuple[Path, str | None]:
    """The file and the column that ``FILE`` or ``FILE:COLUMN`` names."""
    if Path(spec).exists() or ":" not in spec:
        return Path(spec), None
    file, _, column = spec.rpartition(":")
    # One letter before the colon is a drive of Windows.
    return (Path(file), column) if len(file) > 1 and column else (Path(spec), None)


def read_groups(spec: str, target: Scores) -> Sequence[Any]:
    """The group of every row of ``target``.

    Rows are joined by ids where both files have them, and by their order otherwise.

    Args:
        spec: ``FILE`` or ``FILE:COLUMN``.
        target: The rows.

    Raises:
        FileError: If the file cannot be read, has no such column, or lacks a row.
    """
    from shiftcal.checks import check_row_groups
    from shiftcal.files import find

    named, column = file_of(spec)
    path = find(named)
    if path.suffix.lower() not in _SUFFIXES:
        raise FileError(
            f"{path} must hold the groups of rows and end in {', '.join(_SUFFIXES)}; got "
            f"{path.suffix!r}."
        )
    with naming(path):
        given = _READERS[path.suffix.lower()](path, column)
        groups = _joined(given, target, path)
        check_row_groups(groups, n=target.n)  # its errors name the file here
    return groups


def _joined(given: _Given, target: Scores, path: Path) -> Sequence[Any]:
    if given.ids is None or target.ids is None:
        if (given.ids is None) != (target.ids is None):
            have = "no ids, the scores have" if given.ids is None else "ids, the scores have none"
            warnings.warn(
                f"groups of {path} were joined by order: it has {have}. "
                "Give both files ids, or neither, if the order may differ.",
                InputWarning,
                stacklevel=2,
            )
        return given.groups
    by_id = dict(zip(map(str, given.ids), given.groups, strict=True))
    if len(by_id) < len(given.groups):
        raise InputError("ids must differ from one another where groups are joined by them.")
    wanted = target.ids.tolist()
    lacking = [name for name in wanted if name not in by_id]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(wanted)} rows have no group here, the first is "
            f"{lacking[0]!r}. Add them."
        )
    return [by_id[name] for name in wanted]


def _from_npy(path: Path, column: str | None) -> _Given:
    from shiftcal.scores_io import read_array

    _refuse_column(column)
    return _Given(read_array(path))  # type: ignore[arg-type]


def _from_npz(path: Path, column: str | None) -> _Given:
    from shiftcal.scores_io import read_member

    name = column or "groups"
    groups = read_member(path, name)
    if groups is None:
        raise InputError(f"there must be an array {name!r} in it; there is none.")
    ids = read_member(path, "ids")
    return _Given(groups, None if ids is None else ids.tolist())  # type: ignore[arg-type]


def _from_txt(path: Path, column: str | None) -> _Given:
    from shiftcal.files import parsing

    _refuse_column(column)
    with parsing(path, "text in UTF-8"):
        lines = path.read_text("utf-8-sig").split("\n")
    return _Given([line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)])


def _from_csv(path: Path, column: str | None) -> _Given:
    from shiftcal.files import parsing

    with (
        parsing(path, "comma-separated text in UTF-8"),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = csv.reader(file, strict=True, skipinitialspace=True)
        header = next(filter(None, rows), [])
        name = _column(header, column)
        at = {key: header.index(key) for key in (name, _ID) if key in header}
        cells: dict[str, list[str]] = {key: [] for key in at}
        for row in filter(None, rows):
            if len(row) != len(header):
                raise FileError(
                    f"{path}, line {rows.line_num}: every row must have {len(header)} cells, as "
                    f"the first line has; this one has {len(row)}."
                )
            for key, i in at.items():
                cells[key].append(row[i])
    return _Given(cells[name], cells.get(_ID) if name != _ID else None)


def _from_parquet(path: Path, column: str | None) -> _Given:
    from shiftcal.files import open_parquet, parquet_table

    with open_parquet(path) as file:
        name = _column(file.schema_arrow.names, column)
        wanted = [key for key in dict.fromkeys((name, _ID)) if key in file.schema_arrow.names]
        table = parquet_table(path, file, wanted)
        cells = {key: table.column(key).to_pylist() for key in table.column_names}
    return _Given(cells[name], cells.get(_ID) if name != _ID else None)


def _refuse_column(column: str | None) -> None:
    if column is not None:
        raise InputError(f"it has no columns, so that {column!r} names nothing. Leave it out.")


def _column(header: Sequence[str], wanted: str | None) -> str:
    """The column that holds the groups: the one asked for, ``group``, or the only one there is."""
    others = [name for name in header if name != _ID]
    name = wanted or (_COLUMN if _COLUMN in header or len(others) != 1 else others[0])
    if header.count(name) == 1:
        return name
    if name in header:
        raise InputError(f"column names must differ from one another; {name!r} comes twice.")
    from shiftcal.registry import suggest

    hint = suggest(name, list(header)[:20]) if header else "It has no columns."
    how = "" if wanted else " Name the column: FILE:COLUMN."
    raise InputError(f"there must be a column {name!r} in it; there is none. {hint}{how}")


_READERS = {
    ".npy": _from_npy,
    ".npz": _from_npz,
    ".txt": _from_txt,
    ".csv": _from_csv,
    ".parquet": _from_parquet,
}
