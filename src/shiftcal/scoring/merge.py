"""Parts of a job put together again: their rows, or their statistics."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError, InputError
from shiftcal.files import (
    NpzStream,
    atomic_write,
    checksum_of,
    find,
    npy_head,
    open_npz,
    read_npz,
)
from shiftcal.scores import Scores
from shiftcal.scores_io import KINDS, the_kind
from shiftcal.scoring.statistics import Part, ScoreStatistics, read_statistics

# Bytes of an array held at once, and rows: of few classes, what is computed of a row is larger.
_STRETCH, _ROWS = 1 << 24, 1 << 15
# What a row has in addition to its scores, in the order in which scores files are written.
_ALONGSIDE = ("labels", "features", "ids")
_NO_ROWS = "none of the parts holds a row, so there is nothing to merge."


class Head(NamedTuple):
    """Type and shape of an array, before it is read."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def heads(path: Path) -> dict[str, Head]:
    """Every array of an archive by name, none of them read."""
    found = {}
    with open_npz(find(path)) as archive:
        for info in archive.zip.infolist():
            with archive.zip.open(info) as file:
                shape, _, dtype = npy_head(file)
            found[info.filename.removesuffix(".npy")] = Head(dtype, shape)
    return found


def stretches(path: Path, name: str) -> Iterator[NDArray[Any]]:
    """The rows of an array, in order and never all at once.

    Raises:
        FileError: If the archive is damaged or cut short.
    """
    with open_npz(path) as archive, archive.zip.open(f"{name}.npy") as file:
        (n, *rest), by_column, dtype = npy_head(file)
        if by_column and rest:
            raise FileError(
                f"{path}: {name} is stored column by column, and is read row by row. "
                "Save np.ascontiguousarray of it."
            )
        row = dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        rows = min(_ROWS, max(1, _STRETCH // max(1, row)))
        for start in range(0, n, rows):
            count = min(rows, n - start)
            yield np.frombuffer(file.read(count * row), dtype).reshape(count, *rest)
        if file.read(1):  # the end: only here is the archive's own checksum compared
            raise ValueError(f"{name} is longer than it says")


@dataclass(frozen=True)
class PartFile:
    """A file that holds a part.

    Attributes:
        path: The file: scores (``.npz``) or statistics (``.json``).
        part: Which part it says it is.
        note: All that a scores file says of the part.
    """

    path: Path
    part: Part
    note: dict[str, Any]


def find_parts(paths: Sequence[str | os.PathLike[str]]) -> list[PartFile]:
    """The parts of one job in the order of its images.

    Raises:
        FileError: If a file cannot be read, or does not say which part it is.
        InputError: If parts are missing, there twice, or of different jobs.
    """
    if not paths:
        raise InputError("there are no parts to merge. Name every file of the job.")
    parts = sorted((_part_file(find(path)) for path in paths), key=lambda file: file.part.shard)
    first, of = parts[0], parts[0].part.of
    for other in parts[1:]:
        mine, theirs = ((p.part.of, p.part.key, p.part.n_images) for p in (first, other))
        if mine != theirs:
            raise InputError(
                f"all parts must be of one job, cut alike; {first.path} and {other.path} differ in "
                f"the model, the images, an option, or the number of parts ({of} and "
                f"{other.part.of}). Merge the parts of one job at a time."
            )
    for one, other in itertools.pairwise(parts):
        if one.part.shard == other.part.shard:
            raise InputError(
                f"every part must be there once; part {one.part.shard} of {of} is in {one.path} "
                f"and in {other.path}. Leave one of them out."
            )
    if missing := sorted(set(range(1, of + 1)) - {file.part.shard for file in parts}):
        raise InputError(
            f"all {of} parts must be there; missing: {', '.join(map(str, missing))}. Score with "
            f"--shard {missing[0]}/{of} and so on, or name those files too."
        )
    starts = [*(file.part.first for file in parts), first.part.n_images]
    if starts != [0, *(file.part.stop for file in parts)]:
        raise InputError(
            f"parts must follow one another and cover all {first.part.n_images} images; those of "
            f"{first.path} and the others do not. Score all parts again."
        )
    return parts


def _part_file(file: Path) -> PartFile:
    suffix = file.suffix.lower()
    if suffix == ".json":
        part = read_statistics(file)[1]
        if part is not None:
            return PartFile(file, part, {})
    elif suffix == ".npz":
        stored = read_npz(file, ["part"])
        if stored:
            try:
                note = json.loads(str(stored["part"]))
            except (ValueError, RecursionError):
                note = None
            return PartFile(file, Part.from_node(file, note), note)
    raise FileError(
        f"{file} does not say which part of a job it is. Merge .npz or .json files that "
        "`shiftcal score --shard i/n` wrote; statistics of other rows are added in Python with "
        "ScoreStatistics.merged."
    )


def merge_statistics(parts: Sequence[PartFile]) -> ScoreStatistics:
    """The statistics of all rows of all parts, which are read one after the other.

    Raises:
        FileError: If a part cannot be read or does not fit the others, naming it.
    """
    total = None
    for file in parts:
        if file.path.suffix.lower() == ".json":
            one, _ = read_statistics(file.path)
        else:
            one = None if _is_empty(heads(file.path)) else statistics_of_npz(file.path)
        if one is not None:
            total = _total(total, one, file.path)
    if total is None:
        raise FileError(_NO_ROWS)
    return total


def _total(total: ScoreStatistics | None, one: ScoreStatistics, path: Path) -> ScoreStatistics:
    try:
        return one if total is None else total + one
    except InputError as error:
        raise FileError(f"{path} does not fit the other parts: {error}") from error


def merge_scores(parts: Sequence[PartFile], path: str | os.PathLike[str]) -> ScoreStatistics:
    """Write one scores file of all rows in the order of the images, whole or not at all.

    Rows go from file to file in stretches of some megabytes, however large the parts are. If all
    parts were scored alike, with one engine and batch size, the file has the same bytes as that of
    a run over all images, and such a run finds it finished.

    Args:
        parts: Of one job in their order; see :func:`find_parts`.
        path: Where to, ending in ``.npz``.

    Returns:
        The statistics of all rows.

    Raises:
        FileError: If a part cannot be read or does not fit the others, or ``path`` cannot be
            written.
    """
    known: dict[Path, dict[str, Head]] = {}
    for file in parts:
        if file.path.suffix.lower() == ".json":
            raise FileError(
                f"{file.path} holds statistics and no rows, so no scores can be written. "
                "Name an output that ends in .json for the statistics of all parts."
            )
        found = heads(file.path)
        if not _is_empty(found):
            known[file.path] = found
    if not known:
        raise FileError(_NO_ROWS)
    first = next(iter(known))
    kind = the_kind(first, known[first])
    whole = _joint(known, kind)
    origin = _merged_origin(parts, *whole[kind].shape)
    counted: list[ScoreStatistics] = []
    with atomic_write(path) as temporary, NpzStream(temporary) as archive:
        for name in (kind, "labels", "features"):
            if (head := whole.get(name)) is not None:
                rows = _counted(counted, list(known)) if name == kind else _rows(name, known)
                archive.pieces(name, head.shape, head.dtype, rows)
        if origin is not None:
            archive.array("origin", np.array(json.dumps(origin, sort_keys=True), np.str_))
        if (ids := whole.get("ids")) is not None:
            archive.pieces("ids", ids.shape, ids.dtype, _rows("ids", known))
        if (classes := counted[0].classes) is not None:
            archive.array("classes", np.array(classes, np.str_))
    return counted[0]


def _merged_origin(parts: Sequence[PartFile], n: int, k: int) -> dict[str, Any] | None:
    """How the whole was made; ``None`` if a part does not say, or was made in another way."""
    try:
        origins = [json.loads(str(read_npz(p.path, ["origin"])["origin"])) for p in parts]
        arounds = {p.note["around"] for p in parts} - {None}
        keys = [key for p in parts for key in p.note["shard_keys"]]
        digests = [digest for p in parts for digest in p.note["image_digests"]]
        left_out = [bad for origin in origins for bad in origin["left_out"]]
        models = [origin["model"] for origin in origins]
        if len(arounds) != 1 or any(model != models[0] for model in models):
            return None
        return {
            **origins[0],
            "key": checksum_of({"shards": keys}),
            "around": arounds.pop(),
            "n": n,
            "k": k,
            "left_out": left_out,
            "images": {**origins[0]["images"], "digest": checksum_of({"images": digests})},
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_empty(found: dict[str, Head]) -> bool:
    """Whether no image of a part could be read; the classes are not known then either."""
    return any(found[kind].shape[:1] == (0,) for kind in KINDS if kind in found)


def _joint(known: dict[Path, dict[str, Head]], kind: str) -> dict[str, Head]:
    """Type and shape of each array of all rows.

    Raises:
        FileError: If those of the parts cannot stand below one another, naming two files.
    """
    first, joint = next(iter(known)), {}
    for name in (kind, *_ALONGSIDE):
        ours = _row_of(known[first].get(name))
        for path, found in known.items():
            if (theirs := _row_of(found.get(name))) != ours:
                raise FileError(
                    f"{path} holds {name} of {theirs} per row, and {first} of {ours}. Parts of one "
                    "job hold the same; score that part again."
                )
        if name in known[first]:
            each = [found[name] for found in known.values()]
            dtype, n = np.result_type(*(h.dtype for h in each)), sum(h.shape[0] for h in each)
            joint[name] = Head(dtype, (n, *each[0].shape[1:]))
    return joint


def _row_of(head: Head | None) -> str:
    if head is None:
        return "nothing"
    kind = "text" if head.dtype.kind == "U" else str(head.dtype)
    return " x ".join(map(str, (*head.shape[1:], kind)))


def _rows(name: str, files: dict[Path, Any]) -> Iterator[NDArray[Any]]:
    return itertools.chain.from_iterable(stretches(file, name) for file in files)


def _counted(counted: list[ScoreStatistics], files: Sequence[Path]) -> Iterator[NDArray[Any]]:
    """The scores of all files, counted on their way; the total is left in ``counted``."""
    for file in files:
        for scores in _scores(file):
            total = _total(counted[0] if counted else None, ScoreStatistics.of(scores), file)
            counted[:] = [total]
            yield scores.values


def statistics_of_npz(path: Path) -> ScoreStatistics:
    """The statistics of a scores file, however large, in little memory.

    Raises:
        FileError: If it cannot be read or used, naming the row.
    """
    return ScoreStatistics.merged(map(ScoreStatistics.of, _scores(path)))


def _scores(path: Path) -> Iterator[Scores]:
    """The scores of a file, some rows at a time, with labels and names of classes."""
    found = heads(path)
    kind = the_kind(path, found)
    known = read_npz(path, ["labels", "classes"])
    labels, start = known.get("labels"), 0
    if labels is not None and labels.shape[:1] != found[kind].shape[:1]:
        raise FileError(
            f"{path} is damaged: labels of shape {labels.shape} for scores of shape "
            f"{found[kind].shape}. Score that part again."
        )
    for values in stretches(path, kind):
        rows = slice(start, start + len(values))
        start += len(values)
        try:
            yield Scores(
                values,
                kind,
                labels=None if labels is None else labels[rows],
                classes=known.get("classes"),  # type: ignore[arg-type]
                source=str(path),
            )
        except InputError as error:
            raise FileError(f"{path}: {error}") from error
