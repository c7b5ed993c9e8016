"""What several published data sets share: arrays, lists of files, choices of corruptions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from numpy.typing import NDArray

from shiftcal.checks import check_count
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.errors import FileError, InputError, InputWarning, MissingData, UnknownName
from shiftcal.files import naming, parsing, read_npy
from shiftcal.registry import suggest


def read_array(file: Path) -> NDArray[Any]:
    """What an ``.npy`` file holds, mapped; nothing in it is unpickled.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is of another kind, or cut short.
    """
    if not file.exists():
        raise MissingData(f"{file} is missing. Download or write it again.")
    if not file.is_file():  # a pipe would block
        raise FileError(f"{file} is not a file.")
    array = read_npy(file, mapped=True)
    if not array.ndim:
        raise FileError(f"{file} must hold an array; it holds a number.")
    return array


def array_images(images: Path, labels: Path, *, name: str, classes: Sequence[str]) -> ArrayImages:
    """Images in one ``.npy`` file, mapped, with labels in another.

    Raises:
        MissingData: If there is no file of images.
        FileError: If a file is damaged, the labels are missing, or the two do not fit.
    """
    pixels = read_array(images)
    if not labels.exists():
        raise FileError(f"{labels} is missing. Download or write it again.")
    with naming(images):
        return ArrayImages(pixels, name=name, labels=read_array(labels), classes=classes)


def read_list(file: Path, *, first: int = 0) -> tuple[list[PurePosixPath], list[int]]:
    """The paths and class indices in a list with ``path label`` on each line.

    Args:
        file: The list. The last word of a line is the label; a path may contain spaces.
        first: The label of the first class.

    Raises:
        FileError: If it cannot be read, a line is something else, or a path leads outside.
    """
    if not file.is_file() or file.stat().st_size > 1 << 30:
        raise FileError(f"{file} is not a list of images.")
    with parsing(file, "a list of images"):
        lines = file.read_text("utf-8").splitlines()
    paths, labels = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        path, _, label = line.strip().rpartition(" ")
        if not path or not (label.isascii() and label.isdigit()) or int(label) < first:
            raise FileError(
                f"{file}, line {number}, must be a path, a space and a whole number from {first} "
                f"on; got {line[:100]!r}."
            )
        parts = PureWindowsPath(path).parts  # both separators count
        if path.startswith("/") or PureWindowsPath(path).anchor or ".." in parts or "\0" in path:
            raise FileError(f"{file}, line {number}: {path[:100]!r} leads outside the folder.")
        paths.append(PurePosixPath(path.strip()))
        labels.append(int(label) - first)
    if not paths:
        raise FileError(f"{file} lists no images. Download it again.")
    return paths, labels


def keep_existing(
    file: Path, folder: Path, paths: list[PurePosixPath], labels: list[int]
) -> tuple[list[PurePosixPath], list[int]]:
    """The listed images that are below a folder; a warning tells of the others.

    Raises:
        MissingData: If none of them is there.
    """
    # A folder is listed once: asking for every file takes minutes on a network drive.
    names = {
        parent: {entry.name for entry in (folder / parent).iterdir()}
        for parent in {path.parent for path in paths}
        if (folder / parent).is_dir()
    }
    there = [path.name in names.get(path.parent, ()) for path in paths]
    if not all(there):
        absent = paths[there.index(False)]
        text = (
            f"{there.count(False):,} of {len(paths):,} images listed in {file} are not below "
            f"{folder}; the first is {absent}."
        )
        if not any(there):
            raise MissingData(f"{text} Name the folder that the paths start from.")
        warnings.warn(f"{text} They are left out.", InputWarning, stacklevel=4)
    kept = [i for i, exists in enumerate(there) if exists]
    return [paths[i] for i in kept], [labels[i] for i in kept]


# The groups they are published in; the last were meant for choosing hyper-parameters.
GROUPS = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    "extra": ("speckle_noise", "gaussian_blur", "spatter", "saturate"),
}
CORRUPTIONS = tuple(name for group in GROUPS.values() for name in group)
SEVERITIES = (1, 2, 3, 4, 5)


def wanted_corruptions(
    corruption: str | Sequence[str] | None, present: Sequence[str], *, root: object
) -> list[str]:
    """The names asked for, in the order they were; all that are there if none were, by name.

    Args:
        corruption: A name, several (in a list, or with commas between them), or ``None`` or
            ``"all"``.
        present: Those that are there.
        root: Where that is, for messages.

    Raises:
        MissingData: If none of them is there.
        FileError: If one is not there.
        UnknownName: If one is neither there nor a published one.
        InputError: If one is named twice.
    """
    if not present:
        raise MissingData(f"{root} holds no corruption, such as {CORRUPTIONS[0]}.")
    if corruption is None or corruption == "all":
        return sorted(present)
    names = corruption.split(",") if isinstance(corruption, str) else list(corruption)
    wanted = [str(name).strip() for name in names]
    wanted = [name if name in present else name.replace("-", "_") for name in wanted]
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(f"corruption must name one or more, each once; got {corruption!r}.")
    for name in wanted:
        if name in present:
            continue
        if name in CORRUPTIONS:
            none = not set(wanted) & set(present)
            raise (MissingData if none else FileError)(
                f"{root} has no {name!r}. It holds {', '.join(sorted(present))}. Fetch or make the "
                "rest, or leave it out."
            )
        known = sorted({*present, *CORRUPTIONS})
        raise UnknownName(f"no corruption is called {name!r}. {suggest(name, known)}")
    return wanted


def wanted_severities(severity: int | Sequence[int] | str | None) -> tuple[int, ...]:
    """The severities asked for, in the order they were; all five if none were.

    Args:
        severity: One, several (in a list, or as text with commas), or ``None`` or ``"all"``.

    Raises:
        InputError: If one is not from 1 to 5, or named twice.
    """
    if severity is None or severity == "all":
        return SEVERITIES
    given: Sequence[object] = severity if isinstance(severity, (list, tuple)) else [severity]
    if isinstance(severity, str):
        given = [int(word) if word.strip().isdecimal() else word for word in severity.split(",")]
    levels = tuple(check_count(one, name="severity", most=len(SEVERITIES)) for one in given)
    if not levels or len(set(levels)) < len(levels):
        raise InputError(f"severity must name one or more, each once; got {severity!r}.")
    return levels


def describe(names: Sequence[str], levels: Sequence[int]) -> str:
    """Corruptions and severities in a few words, such as ``"fog 3"``."""
    what = names[0] if len(names) == 1 else f"{len(names)} corruptions"
    return what if tuple(levels) == SEVERITIES else f"{what} {','.join(map(str, levels))}"
