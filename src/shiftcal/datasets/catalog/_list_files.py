"""Text files that list images: ``path label`` on each line, paths below a folder."""

from __future__ import annotations

import warnings
from pathlib import Path, PurePosixPath, PureWindowsPath

from shiftcal.errors import FileError, InputWarning, MissingData

# Ten times what a list of a million images needs.
_MOST_BYTES = 1 << 30
_NONE: frozenset[str] = frozenset()


def read_list(file: Path, *, first: int = 0) -> tuple[list[PurePosixPath], list[int]]:
    """The paths and class indices in a list.

    Args:
        file: The list. The last word of a line is the label; a path may have spaces.
        first: The label of the first class.

    Raises:
        FileError: If it cannot be read, a line is something else, or a path leads out of the
            folder it should be below.
    """
    paths: list[PurePosixPath] = []
    labels: list[int] = []
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        path, label = _parsed(line, f"{file}, line {number},")
        if label < first:
            raise FileError(
                f"{file}, line {number}, must have a label of at least {first}; got {label}."
            )
        paths.append(path)
        labels.append(label - first)
    if not paths:
        raise FileError(f"{file} lists no images. Fetch it again.")
    return paths, labels


def keep_existing(
    file: Path, folder: Path, paths: list[PurePosixPath], labels: list[int]
) -> tuple[list[PurePosixPath], list[int]]:
    """The listed images that are below a folder; a warning tells of the others.

    Raises:
        MissingData: If none of them is there.
    """
    names: dict[PurePosixPath, frozenset[str]] = {}
    for parent in {path.parent for path in paths}:
        # A folder is listed once: asking for every file takes minutes on a network drive.
        place = folder / parent
        names[parent] = frozenset(at.name for at in place.iterdir()) if place.is_dir() else _NONE
    kept = [i for i, path in enumerate(paths) if path.name in names[path.parent]]
    if len(kept) < len(paths):
        there = frozenset(kept)
        absent = next(path for i, path in enumerate(paths) if i not in there)
        if not kept:
            raise MissingData(
                f"{file} lists {len(paths):,} images, and none of them is below {folder}: the "
                f"first is {absent}. Name the folder that the paths start from."
            )
        warnings.warn(
            f"{len(paths) - len(kept):,} of {len(paths):,} images listed in {file} are not below "
            f"{folder} and are left out; the first is {absent}.",
            InputWarning,
            stacklevel=3,
        )
    return [paths[i] for i in kept], [labels[i] for i in kept]


def _lines(file: Path) -> list[str]:
    try:
        if not file.is_file():
            raise FileError(f"{file} is not a file; it should list the images.")
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise FileError(f"{file} has more than {_MOST_BYTES:,} bytes, which no list has.")
        return content.decode().splitlines()
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file} is not a list of images: it is not text.") from error


def _parsed(line: str, where: str) -> tuple[PurePosixPath, int]:
    path, _, label = line.strip().rpartition(" ")
    path = path.strip()
    if not path or not (label.isascii() and label.isdigit() and len(label) < 10):
        raise FileError(
            f"{where} must be a path, a space and a whole number; got {line[:100]!r}. "
            "Fetch the list again."
        )
    leads = PurePosixPath(path)
    outside = leads.is_absolute() or PureWindowsPath(path).anchor
    if outside or ".." in leads.parts or ".." in PureWindowsPath(path).parts or "\0" in path:
        raise FileError(
            f"{where} must name a file below the folder of the images; {path[:100]!r} leads out "
            "of it and is not read."
        )
    return leads, int(label)
