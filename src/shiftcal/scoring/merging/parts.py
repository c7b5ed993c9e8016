"""The parts of a job: found, and checked to be all there, once each, and of one job."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shiftcal.errors import FileError, InputError
from shiftcal.scores._opening import find
from shiftcal.scores.npz import read_member
from shiftcal.scoring.statistics.file import read_part
from shiftcal.scoring.statistics.part import Part


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
    for other in parts[1:]:
        _refuse_strangers(parts[0], other)
    _refuse_twice(parts)
    _refuse_gaps(parts)
    return parts


def _part_file(path: Path) -> PartFile:
    file = find(path)
    if file.suffix.lower() == ".json":
        part = read_part(file)
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


def _refuse_strangers(one: PartFile, other: PartFile) -> None:
    a, b = one.part, other.part
    if a.of != b.of:
        raise InputError(
            f"all parts must be cut alike; {one.path} is one of {a.of} parts, {other.path} one of "
            f"{b.of}. Merge those of one cut."
        )
    if a.key != b.key or a.n_images != b.n_images:
        raise InputError(
            f"all parts must be of one job; {one.path} and {other.path} are of different ones: "
            "the model, the images or an option was another. Merge the parts of one job at a time."
        )


def _refuse_twice(parts: Sequence[PartFile]) -> None:
    for one, other in itertools.pairwise(parts):
        if one.part.shard == other.part.shard:
            raise InputError(
                f"every part must be there once; part {one.part.shard} of {one.part.of} is in "
                f"{one.path} and in {other.path}. Leave one of them out."
            )


def _refuse_gaps(parts: Sequence[PartFile]) -> None:
    """Refuse if numbers are missing, or if the rows do not follow one another."""
    of, here = parts[0].part.of, {file.part.shard for file in parts}
    if missing := sorted(set(range(1, of + 1)) - here):
        one = missing[0]
        raise InputError(
            f"all {of} parts must be there; {len(missing)} {'is' if one == missing[-1] else 'are'} "
            f"missing: {', '.join(_runs(missing))}. Score with --shard {one}/{of} and so on, or "
            "name those files too."
        )
    at = 0
    for file in parts:
        if file.part.first != at:
            raise InputError(
                f"{file.path} must begin with image {at}, where the part before it ends; it says "
                f"{file.part.first}. Score all parts again."
            )
        at = file.part.stop
    if at != parts[0].part.n_images:
        raise InputError(
            f"the parts must cover all {parts[0].part.n_images} images; the last ends at {at}. "
            "Score all parts again."
        )


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """``1, 4 to 6, 9``, piece by piece."""
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *_, last = [n for _, n in run] * 2
        yield str(first) if first == last else f"{first} to {last}"
