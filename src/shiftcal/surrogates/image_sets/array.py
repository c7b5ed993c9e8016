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

from shiftcal._checks import check_images
from shiftcal._files import atomic_write, flush_file, flush_folder
from shiftcal._types import Images
from shiftcal.corruptions import Corruption
from shiftcal.corruptions._corrupt import check_table
from shiftcal.corruptions._engine import run
from shiftcal.corruptions._stream import PIECE_BYTES, forget_pages, open_images
from shiftcal.errors import FileError, InputError
from shiftcal.surrogates.image_sets.job import Job, Outcome, Step
from shiftcal.surrogates.image_sets.manifest import described


@dataclass(frozen=True)
class _File:
    path: Path
    corruption: Corruption
    severities: tuple[int, ...]


def corrupt_array(job: Job, step: Step) -> Outcome:
    """Write ``<corruption>.npy``, or ``<corruption>/<severity>.npy`` if only some are wanted."""
    images, labels = _read(job)
    batch, layout = check_images(images)
    if layout.grey:
        raise InputError(
            f"{job.source} holds grey images, and files of corrupted images are in colour. Repeat "
            "the channel three times: np.repeat(images[..., None], 3, axis=-1)."
        )
    shape: Literal["stacked", "arrays"] = "stacked" if job.severities is None else "arrays"
    outcome = Outcome(layout=shape, n_images=len(batch))
    files = list(_files(job))
    total = sum(len(batch) * len(file.severities) for file in files)
    done = 0
    source = {"shape": list(batch.shape), "sha256": _fingerprint(batch)}
    with described(job, source=source, layout="array"):
        for file in files:
            finished = file.path.exists()
            outcome.kept += finished
            outcome.written += not finished
            if not finished:
                for rows in _write(job, batch, file):
                    step(done + rows, total)
            done += len(batch) * len(file.severities)
            step(done, total)
            if labels is not None:
                _write_labels(file.path, np.tile(labels, len(file.severities)))
    return outcome


def _files(job: Job) -> Iterator[_File]:
    for corruption in job.corruptions:
        severities = job.severities_of(corruption)
        if job.severities is None:
            yield _File(job.target / f"{corruption.name}.npy", corruption, severities)
        else:
            folder = job.target / corruption.name
            for severity in severities:
                yield _File(folder / f"{severity}.npy", corruption, (severity,))


def _write(job: Job, batch: Images, file: _File) -> Iterator[int]:
    """Write one file, going on with what an earlier call left; yields the rows there are."""
    path, severities = file.path, file.severities
    path.parent.mkdir(exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    n, row = len(batch), int(np.prod(batch.shape[1:]))
    piece = max(1, PIECE_BYTES // row)
    table = check_table(job.table, *batch.shape[1:3])
    try:
        with partial.open("r+b" if partial.exists() else "w+b") as out:
            shape = (n * len(severities), *batch.shape[1:])
            rows = _go_on(out, shape, step_back=piece)
            while rows < n * len(severities):
                level, start = divmod(rows, n)
                part = np.ascontiguousarray(batch[start : start + piece])
                made = np.empty_like(part)
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
                out.write(made.data)
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
    if labels is not None and labels.shape != images.shape[:1]:
        raise InputError(
            f"labels must have one entry for each of the {len(images):,} images; "
            f"got shape {labels.shape}."
        )
    return images, labels


def _members(file: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    try:
        # Opened here, since numpy leaves a damaged archive open.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as members:
            names = list(members)
            if "images" not in names:
                raise FileError(f"{file} has no array 'images'; it has {', '.join(names)}.")
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


def _fingerprint(batch: Images) -> str:
    """A digest of the first, the last and 62 images between: tells sources apart, reads little."""
    digest = hashlib.sha256()
    for index in np.unique(np.linspace(0, max(0, len(batch) - 1), 64).astype(int)):
        if len(batch):
            digest.update(np.ascontiguousarray(batch[index]).data)
    return digest.hexdigest()
