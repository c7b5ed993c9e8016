"""Arrays of images: a piece at a time, in the layout of CIFAR-10-C."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import ImageLayout, check_images
from shiftcal._files import atomic_write, flush_file, flush_folder
from shiftcal.corruptions import Corruption
from shiftcal.corruptions._corrupt import check_table
from shiftcal.corruptions._engine import run
from shiftcal.corruptions._stream import PIECE_BYTES, forget_pages, open_images
from shiftcal.errors import FileError, InputError
from shiftcal.surrogates.image_sets.job import Job, Outcome, Step
from shiftcal.surrogates.image_sets.manifest import described

# Bytes of images that are read in full to tell whether they are the ones it was begun with.
_ALL_READ = 1 << 28


@dataclass(frozen=True)
class _File:
    path: Path
    corruption: Corruption
    severities: tuple[int, ...]


def corrupt_array(job: Job, step: Step) -> Outcome:
    """Write ``<corruption>.npy``, or ``<corruption>/<severity>.npy`` if only some are wanted."""
    images, labels = _read(job)
    try:
        batch, layout = check_images(images)
    except InputError as error:
        raise FileError(f"{job.source}: {error}") from error
    if labels is not None and labels.shape != (len(batch),):
        raise InputError(
            f"labels must have one entry for each of the {len(batch):,} images; "
            f"got shape {labels.shape}."
        )
    shape: Literal["stacked", "arrays"] = "stacked" if job.severities is None else "arrays"
    files = list(_files(job))
    total = sum(len(batch) * len(file.severities) for file in files)
    done = kept = 0
    settings = {
        "source": {"shape": list(batch.shape), "sha256": _fingerprint(job.source, batch)},
        "layout": "array",
        "labels": None if labels is None else _digest(labels),
    }
    with described(job, **settings):
        for file in files:
            if file.path.exists():
                kept += 1
            else:
                for rows in _write(job, batch, layout, file):
                    step(done + rows, total)
            done += len(batch) * len(file.severities)
            step(done, total)
            if labels is not None:
                _write_labels(file.path, np.tile(labels, len(file.severities)))
    return Outcome(layout=shape, n_images=len(batch), written=len(files) - kept, kept=kept)


def _files(job: Job) -> Iterator[_File]:
    for corruption in job.corruptions:
        severities = job.severities_of(corruption)
        if job.severities is None:
            yield _File(job.target / f"{corruption.name}.npy", corruption, severities)
        else:
            folder = job.target / corruption.name
            for severity in severities:
                yield _File(folder / f"{severity}.npy", corruption, (severity,))


def _write(job: Job, batch: NDArray[np.uint8], layout: ImageLayout, file: _File) -> Iterator[int]:
    """Write one file, going on with what an earlier call left; yields the rows there are."""
    path, severities = file.path, file.severities
    path.parent.mkdir(exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    n = len(batch)
    piece = max(1, PIECE_BYTES // (3 * int(np.prod(batch.shape[1:3]))))
    table = check_table(job.table, *batch.shape[1:3])
    try:
        with partial.open("r+b" if partial.exists() else "w+b") as out:
            shape = (n * len(severities), *batch.shape[1:])
            rows = _go_on(out, shape, step_back=piece)
            while rows < n * len(severities):
                level, start = divmod(rows, n)
                part = layout.to_colour(batch[start : start + piece])
                made = np.empty(part.shape, np.uint8)
                run(
                    file.corruption,
                    part,
                    made,
                    severity=severities[level],
                    table=table,
                    seed=job.seed,
                    first_index=start,
                    threads=job.threads,
                )
                out.write(np.ascontiguousarray(layout.from_colour(made)).data)
                out.flush()
                os.fsync(out.fileno())
                forget_pages(batch)
                rows += len(part)
                yield rows
        flush_file(partial)
        partial.replace(path)
    except OSError as error:
        raise FileError(
            f"{path} could not be written: {error.strerror or error}. What is done is kept; the "
            "same command goes on from there."
        ) from error
    flush_folder(path.parent)


def _go_on(out: Any, shape: tuple[int, ...], *, step_back: int) -> int:
    """Rows that are surely there; the file is cut after them and stands at its new end."""
    size = os.fstat(out.fileno()).st_size
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    out.seek(0)
    np.lib.format.write_array_header_1_0(out, header)
    start, row = out.tell(), int(np.prod(shape[1:]))
    # A power cut may have kept the length of the last piece and lost what was in it.
    rows = max(0, (size - start) // row - step_back) if row else 0
    out.truncate(start + rows * row)
    out.seek(start + rows * row)
    return rows


def _read(job: Job) -> tuple[NDArray[Any], NDArray[Any] | None]:
    if job.resize or job.crop:
        raise InputError("resize and crop are for folders of images, not for arrays.")
    labels: Any = None
    if job.source.suffix.lower() == ".npy":
        images = open_images(job.source)
    else:
        images, labels = _members(job.source)
    if job.labels is not None:
        labels = np.array(open_images(job.labels))
    return images, labels


def _members(file: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    try:
        # Opened here, since numpy leaves a damaged archive open.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as members:
            names = list(members)
            if "images" not in names:
                raise FileError(
                    f"{file} has no array 'images'; it has {', '.join(names) or 'none at all'}."
                )
            return members["images"], members["labels"] if "labels" in names else None
    except FileError:
        raise
    except Exception as error:  # a damaged archive raises what zlib or zipfile like
        raise FileError(f"{file} could not be read: {error}.") from error


def _write_labels(path: Path, labels: NDArray[Any]) -> None:
    """Labels beside the images, unless they are there."""
    file = path.with_name("labels.npy")
    if not file.exists():
        with atomic_write(file) as temporary, temporary.open("wb") as out:
            np.save(out, labels, allow_pickle=False)
    elif len(present := open_images(file)) != len(labels):
        raise FileError(
            f"{file} has {len(present)} labels, and {path.name} needs {len(labels)}: it has "
            "another number of severities. Name another folder for it."
        )


def _fingerprint(file: Path, batch: NDArray[np.uint8]) -> str:
    """A digest of all images; of a large file, of 64 and the time it was last changed."""
    if batch.nbytes <= _ALL_READ:
        return _digest(batch)
    some = np.unique(np.linspace(0, len(batch) - 1, 64).astype(int))
    return f"{_digest(batch[some])} {file.stat().st_mtime_ns}"


def _digest(values: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
