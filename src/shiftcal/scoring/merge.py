"""Parts of a job put together again: their rows, or their statistics."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError, InputError
from shiftcal.files import NpzStream, atomic_write, find, npy_head, open_npz
from shiftcal.scores import Scores
from shiftcal.scores_io import KINDS, read_member, the_kind
from shiftcal.scoring.statistics import (
    Part,
    ScoreStatistics,
    read_statistics,
)

# --------------------------------------------------------------------------------------
# Arrays of ``.npz`` archives, read and written a stretch of rows at a time.
# --------------------------------------------------------------------------------------

# Bytes of an array held at once.
_STRETCH = 1 << 24
# Rows held at once: of few classes, what is computed of a row is larger than the row.
_ROWS = 1 << 15


class Head(NamedTuple):
    """What an array is, before it is read.

    Attributes:
        dtype: Type of its entries.
        shape: Its shape.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def heads(path: Path) -> dict[str, Head]:
    """Every array of an archive by name, none of them read.

    Raises:
        FileError: If the file is missing, damaged, or holds Python objects.
    """
    found = {}
    with open_npz(find(path)) as archive:
        for info in archive.zip.infolist():
            with archive.zip.open(info) as file:
                found[info.filename.removesuffix(".npy")] = _head(file)[0]
    return found


def stretches(path: Path, name: str) -> Iterator[NDArray[Any]]:
    """The rows of an array, in order and never all at once.

    Raises:
        FileError: If the archive is damaged or cut short.
    """
    with open_npz(path) as archive, archive.zip.open(f"{name}.npy") as file:
        head, turned = _head(file)
        if turned:
            raise FileError(
                f"{path}: {name} is stored column by column, and is read row by row. "
                "Save np.ascontiguousarray of it."
            )
        n, *rest = head.shape
        row = head.dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        rows = min(_ROWS, max(1, _STRETCH // max(1, row)))
        for start in range(0, n, rows):
            count = min(rows, n - start)
            raw = file.read(count * row)
            yield np.frombuffer(raw, head.dtype).reshape(count, *rest)
        if file.read(1):  # the end: only here is the archive's own checksum compared
            raise ValueError(f"{name} is longer than it says")


def _head(file: IO[bytes]) -> tuple[Head, bool]:
    shape, turned, dtype = npy_head(file)
    return Head(dtype, shape), turned and len(shape) > 1


# --------------------------------------------------------------------------------------
# The parts of a job: found, and checked to be all there, once each, and of one job.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartFile:
    """A file that holds a part.

    Attributes:
        path: The file.
        part: Which part it says it is.
        holds: Scores, or statistics only.
    """

    path: Path
    part: Part
    holds: Literal["scores", "statistics"]


def find_parts(paths: Sequence[str | os.PathLike[str]]) -> list[PartFile]:
    """The parts of one job in the order of its images.

    Raises:
        FileError: If a file cannot be read, or does not say which part it is.
        InputError: If parts are missing, there twice, or of different jobs.
    """
    if not paths:
        raise InputError("there are no parts to merge. Name every file of the job.")
    parts = sorted((_part_file(Path(path)) for path in paths), key=lambda file: file.part.shard)
    first, of = parts[0], parts[0].part.of
    for other in parts[1:]:
        if other.part.of != of:
            raise InputError(
                f"all parts must be cut alike; {first.path} is one of {of} parts, {other.path} one "
                f"of {other.part.of}."
            )
        if (other.part.key, other.part.n_images) != (first.part.key, first.part.n_images):
            raise InputError(
                f"all parts must be of one job; {first.path} and {other.path} differ in the model, "
                "the images or an option. Merge the parts of one job at a time."
            )
    for one, other in itertools.pairwise(parts):
        if one.part.shard == other.part.shard:
            raise InputError(
                f"every part must be there once; part {one.part.shard} of {of} is in {one.path} "
                f"and in {other.path}. Leave one of them out."
            )
    if missing := sorted(set(range(1, of + 1)) - {file.part.shard for file in parts}):
        raise InputError(
            f"all {of} parts must be there; {len(missing)} {'is' if len(missing) == 1 else 'are'} "
            f"missing: {', '.join(_runs(missing))}. Score with --shard {missing[0]}/{of} and so "
            "on, or name those files too."
        )
    ends = [0, *(file.part.stop for file in parts)]
    for file, end in zip(parts, ends, strict=False):
        if file.part.first != end:
            raise InputError(
                f"{file.path} must begin with image {end}, where the part before it ends; it "
                f"begins with {file.part.first}. Score all parts again."
            )
    if ends[-1] != first.part.n_images:
        raise InputError(
            f"the parts must cover all {first.part.n_images} images; the last ends at {ends[-1]}. "
            "Score all parts again."
        )
    return parts


def _part_file(path: Path) -> PartFile:
    file = find(path)
    if file.suffix.lower() == ".json":
        part = read_statistics(file)[1]
        if part is not None:
            return PartFile(file, part, "statistics")
    elif file.suffix.lower() == ".npz":
        note = read_member(file, "part")
        if note is not None:
            text = str(note[()]) if note.shape == () and note.dtype.kind == "U" else ""
            return PartFile(file, Part.from_text(file, text), "scores")
    else:
        raise FileError(
            f"{file} must be a part of a job, which is an .npz file of scores or a .json file of "
            "statistics."
        )
    raise FileError(
        f"{file} does not say which part of a job it is. Merge files that "
        "`shiftcal score --shard i/n` wrote; statistics of other rows are added in Python with "
        "ScoreStatistics.merged."
    )


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """``1, 4 to 6, 9``, piece by piece."""
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *_, last = [n for _, n in run] * 2
        yield str(first) if first == last else f"{first} to {last}"


# --------------------------------------------------------------------------------------
# How merged scores were made, from what their parts say of it.
# --------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """What a part says of itself."""

    origin: dict[str, Any]
    around: str | None
    keys: list[str]
    images: list[str]


def merged_origin(parts: Sequence[PartFile], n: int, k: int) -> NDArray[np.str_] | None:
    """What the file of the whole says of how it was made; ``None`` if a part says nothing.

    What the parts have in common is kept. The key, by which a run over all images knows the file
    as its own, is there if they were all made alike.

    Args:
        parts: All parts, in the order of the images.
        n: Rows of all.
        k: Number of classes.
    """
    told = [_told(file.path) for file in parts]
    known = [one for one in told if one is not None]
    if len(known) < len(told):
        return None
    origins = [one.origin for one in known]
    whole: dict[str, Any] = _common(origins)
    for of_one_part in ("key", "around", "digest"):
        whole.pop(of_one_part, None)
    whole |= {"n": n, "k": k, "left_out": [bad for one in origins for bad in one["left_out"]]}
    whole["images"] = {**whole.get("images", {}), "digest": _joined(one.images for one in known)}
    arounds = {one.around for one in known if one.origin["k"]}
    if all(one["model"] == origins[0]["model"] for one in origins) and len(arounds) == 1:
        whole |= {"key": _joined(one.keys for one in known), "around": arounds.pop()}
    return np.array(json.dumps(whole, sort_keys=True), np.str_)


def _told(path: Path) -> _Told | None:
    members = {
        name: read_member(path, name) for name in ("origin", "part", "shard_keys", "shard_images")
    }
    try:
        origin = json.loads(str(members["origin"]))
        around = json.loads(str(members["part"])).get("around")
        keys, images = (_texts(members[name]) for name in ("shard_keys", "shard_images"))
        complete = (
            isinstance(origin["model"], dict)
            and type(origin["k"]) is int
            and isinstance(origin["left_out"], list)
            and len(keys) == len(images)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return _Told(origin, around, keys, images) if complete else None


def _texts(array: NDArray[Any] | None) -> list[str]:
    if array is None or array.ndim != 1 or array.dtype.kind != "S":
        raise TypeError("one text for every shard was expected")
    return [text.decode("ascii") for text in array.tolist()]


def _joined(digests: Iterable[Sequence[str]]) -> str:
    """As :class:`shiftcal.scoring.work.Job` makes one digest of those of its shards."""
    whole = hashlib.blake2b(digest_size=16)
    for some in digests:
        for one in some:
            whole.update(one.encode())
    return whole.hexdigest()


def _common(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What all documents say alike."""
    first, *others = documents
    common = {}
    for name, value in first.items():
        if isinstance(value, dict) and all(isinstance(one.get(name), dict) for one in others):
            common[name] = _common([one[name] for one in documents])
        elif all(name in one and one[name] == value for one in others):
            common[name] = value
    return common


# --------------------------------------------------------------------------------------
# From the parts of a job to one scores file, or to the statistics of all its rows.
# --------------------------------------------------------------------------------------

# What a row has beside its scores, in the order in which scores files are written.
_BESIDE = ("labels", "features", "ids")


def merge_statistics(parts: Sequence[PartFile]) -> ScoreStatistics:
    """The statistics of all rows of all parts, which are read one after the other.

    Raises:
        FileError: If a part cannot be read or does not fit the others, naming it.
    """
    total: ScoreStatistics | None = None
    for file in parts:
        if file.holds == "statistics":
            one, _ = read_statistics(file.path)
        else:
            one = None if _is_empty(heads(file.path)) else statistics_of_npz(file.path)
        try:
            total = one if total is None else total if one is None else total + one
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
    with atomic_write(path) as temporary, NpzStream(temporary) as archive:
        ids = whole.pop("ids", None)
        for name, head in whole.items():
            rows = _counted(counted, files) if name == kind else _rows(name, files)
            archive.pieces(name, head.shape, head.dtype, rows)
        if origin is not None:
            archive.array("origin", origin)
        if ids is not None:
            archive.pieces("ids", ids.shape, ids.dtype, _rows("ids", files))
        if (classes := counted[0].classes) is not None:
            archive.array("classes", np.array(classes, np.str_))
    return counted[0]


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
            )
        except InputError as error:
            raise FileError(f"{path}: {error}") from error
