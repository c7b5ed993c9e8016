"""From the parts of a job to one scores file, or to the statistics of all its rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from shiftcal._files import atomic_write
from shiftcal.errors import FileError, InputError
from shiftcal.scores import Scores
from shiftcal.scores._assemble import KINDS, the_kind
from shiftcal.scores.npz import read_member
from shiftcal.scoring.merging.npz import Head, heads, new_archive, stretches, write_array
from shiftcal.scoring.merging.origin import merged_origin
from shiftcal.scoring.merging.parts import PartFile
from shiftcal.scoring.statistics.file import hold_nothing, read_statistics
from shiftcal.scoring.statistics.score_statistics import ScoreStatistics

# What a row has beside its scores, in the order in which scores files are written.
_BESIDE = ("labels", "features", "ids")


def merge_statistics(parts: Sequence[PartFile]) -> ScoreStatistics:
    """The statistics of all rows of all parts, which are read one after the other.

    Raises:
        FileError: If a part cannot be read or does not fit the others, naming it.
    """
    total: ScoreStatistics | None = None
    for file in parts:
        empty = _is_empty(heads(file.path)) if file.holds == "scores" else hold_nothing(file.path)
        if empty:
            continue
        one = _statistics(file)
        try:
            total = one if total is None else total + one
        except InputError as error:
            raise FileError(f"{file.path} does not fit {parts[0].path}: {error}") from error
    if total is None:
        raise FileError(_NO_ROWS)
    return total


def merge_scores(parts: Sequence[PartFile], path: str | os.PathLike[str]) -> ScoreStatistics:
    """Write one scores file of all rows in the order of the images, whole or not at all.

    Rows go from file to file in stretches of some megabytes, however large the parts are. If all
    parts were scored alike, with one engine and batch size, the file has the same bytes as that of
    a run over all images, and such a run finds it finished. If not, it has the rows of the parts,
    and says of how they were made what all have in common.

    Args:
        parts: Of one job in their order; see ``find_parts``.
        path: Where to, ending in ``.npz``.

    Returns:
        The statistics of all rows.

    Raises:
        FileError: If a part cannot be read or does not fit the others, or ``path`` cannot be
            written.
    """
    opened = {_holding_scores(file): heads(file.path) for file in parts}
    files = [file for file, found in opened.items() if not _is_empty(found)]
    if not files:
        raise FileError(_NO_ROWS)
    known = [opened[file] for file in files]
    kind = the_kind(files[0], known[0])
    whole = {name: _joint(name, files, known) for name in (kind, *_BESIDE) if name in known[0]}
    for file, found in zip(files, known, strict=True):
        if extra := [name for name in (kind, *_BESIDE) if name in found and name not in whole]:
            raise FileError(f"{file} holds {extra[0]!r}, and {files[0]} does not. {_REPAIR}")
    origin = merged_origin(parts, *whole[kind].shape)
    counted: list[ScoreStatistics] = []
    with atomic_write(path) as temporary, new_archive(temporary) as archive:
        for name, head in whole.items():
            if name == "ids":
                _write_whole(archive, "origin", origin)
            rows = partial(_counted, counted) if name == kind else partial(_rows, name)
            write_array(archive, name, head, rows(files))
        if "ids" not in whole:
            _write_whole(archive, "origin", origin)
        classes = counted[0].classes
        _write_whole(archive, "classes", None if classes is None else np.array(classes, np.str_))
    return counted[0]


def _write_whole(archive: ZipFile, name: str, array: NDArray[Any] | None) -> None:
    if array is not None:
        write_array(archive, name, Head(array.dtype, array.shape), [array])


_REPAIR = "Parts of one job hold the same; score that part again."
_NO_ROWS = "none of the parts holds a row, so that there is nothing to merge."


def _holding_scores(file: PartFile) -> Path:
    if file.holds != "scores":
        raise FileError(
            f"{file.path} holds statistics and no rows, so that no scores can be written. "
            "Name an output that ends in .json for the statistics of all parts."
        )
    return file.path


def _is_empty(found: dict[str, Head]) -> bool:
    """Whether no image of a part could be read; the classes are not known then either."""
    return any(found[kind].shape[:1] == (0,) for kind in KINDS if kind in found)


def _joint(name: str, files: Sequence[Path], known: Sequence[dict[str, Head]]) -> Head:
    """What an array of all rows is.

    Raises:
        FileError: If those of the parts cannot stand below one another, naming the one.
    """
    first = known[0][name]
    dtype, n = first.dtype, 0
    for file, found in zip(files, known, strict=True):
        head = found.get(name)
        if head is None:
            raise FileError(f"{file} does not hold {name!r}, and {files[0]} does. {_REPAIR}")
        text = head.dtype.kind == first.dtype.kind == "U"
        if head.shape[1:] != first.shape[1:] or not (text or head.dtype == first.dtype):
            raise FileError(
                f"{file} holds {name} of {_described(head)} a row, and {files[0]} of "
                f"{_described(first)}. {_REPAIR}"
            )
        dtype = np.promote_types(dtype, head.dtype)
        n += head.shape[0]
    return Head(dtype, (n, *first.shape[1:]))


def _described(head: Head) -> str:
    return f"{' x '.join(map(str, head.shape[1:])) or 'one'} {head.dtype}"


def _rows(name: str, files: Sequence[Path]) -> Iterator[NDArray[Any]]:
    for file in files:
        yield from stretches(file, name)


def _counted(counted: list[ScoreStatistics], files: Sequence[Path]) -> Iterator[NDArray[Any]]:
    """The scores of all files, counted on their way; the total is left in ``counted``."""
    for file in files:
        for scores in _scores(file):
            one = ScoreStatistics.of(scores)
            try:
                counted[:] = [counted[0] + one] if counted else [one]
            except InputError as error:
                raise FileError(f"{file} does not fit {files[0]}: {error}") from error
            yield scores.values


def statistics_of_npz(path: Path) -> ScoreStatistics:
    """The statistics of a scores file, however large, in little memory.

    Raises:
        FileError: If it cannot be read or used, naming the row.
    """
    return ScoreStatistics.merged(map(ScoreStatistics.of, _scores(path)))


def _statistics(file: PartFile) -> ScoreStatistics:
    if file.holds == "statistics":
        return read_statistics(file.path)[0]
    return statistics_of_npz(file.path)


def _scores(path: Path) -> Iterator[Scores]:
    """The scores of a file, some rows at a time; beside them only labels and names of classes."""
    found = heads(path)
    kind = the_kind(path, found)
    labels, classes = read_member(path, "labels"), read_member(path, "classes")
    if labels is not None and labels.shape[:1] != found[kind].shape[:1]:
        raise FileError(
            f"{path} is damaged: labels of shape {labels.shape} for scores of shape "
            f"{found[kind].shape}. Score that part again."
        )
    start = 0
    for values in stretches(path, kind):
        rows = np.arange(start, start + len(values))
        start += len(values)
        try:
            yield Scores(
                values,
                kind,
                labels=None if labels is None else labels[rows],
                classes=classes,  # type: ignore[arg-type]
                source=str(path),
                rows=rows,
            )
        except InputError as error:
            raise FileError(f"{path}: {error}") from error
