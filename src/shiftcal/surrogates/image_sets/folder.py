"""Folders of images: ``<corruption>/<severity>/<class>/<file>``."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shiftcal._checks import check_images
from shiftcal._optional import require
from shiftcal._types import Images
from shiftcal.corruptions import Corruption
from shiftcal.corruptions._corrupt import check_table
from shiftcal.corruptions._engine import run
from shiftcal.datasets.image_files import find_images, read_image
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.surrogates.image_sets.job import Job, Outcome, Step
from shiftcal.surrogates.image_sets.manifest import described

# Files are shown to the threads so many at a time, or Ctrl-C would wait for all of them.
_AHEAD = 64
# What ImageNet-C was stored with.
_SAVE = {"png": {"compress_level": 3}, "jpeg": {"quality": 85, "optimize": True}}


@dataclass(frozen=True)
class _Task:
    index: int
    source: Path
    outputs: tuple[tuple[Corruption, int, Path], ...]


def corrupt_folder(job: Job, step: Step) -> Outcome:
    """Write the corrupted copies of every image of a folder; unreadable ones are left out."""
    if job.labels is not None:
        raise InputError("labels are for arrays; the classes of a folder are its sub-folders.")
    require("PIL.Image", extra="images", needed_by="writing image files")
    root, images = _images(job.source)
    per_image = sum(len(job.severities_of(corruption)) for corruption in job.corruptions)
    total = len(images) * per_image
    written, bad = 0, {}
    settings = {"layout": job.format, "resize": job.resize, "crop": job.crop}
    with described(job, source=_fingerprint(images), **settings):
        tasks = [task for task in _tasks(job, root, images) if task.outputs]
        kept = done = total - sum(len(task.outputs) for task in tasks)
        step(done, total)
        for start in range(0, len(tasks), _AHEAD):
            for task, reason in _together(job, tasks[start : start + _AHEAD]):
                done += len(task.outputs)
                step(done, total)
                if reason:
                    bad[str(task.source.relative_to(root))] = reason
                    warnings.warn(f"left out: {reason}", InputWarning, stacklevel=2)
                else:
                    written += len(task.outputs)
    return Outcome(layout="folder", n_images=len(images), written=written, kept=kept, bad=bad)


def _images(source: Path) -> tuple[Path, list[Path]]:
    if source.is_dir():
        return source, find_images(source)
    return source.parent, [Path(source.name)]


def _tasks(job: Job, root: Path, images: list[Path]) -> list[_Task]:
    """What is left to be done for every image."""
    names = _output_names(images, ".png" if job.format == "png" else ".JPEG")
    for corruption in job.corruptions:
        for severity in job.severities_of(corruption):
            for parent in {name.parent for name in names}:
                folder = job.target / corruption.name / str(severity) / parent
                folder.mkdir(parents=True, exist_ok=True)
    return [
        _Task(
            index,
            root / image,
            tuple(
                (corruption, severity, file)
                for corruption in job.corruptions
                for severity in job.severities_of(corruption)
                if not _is_made(
                    file := job.target / corruption.name / str(severity) / name, root / image
                )
            ),
        )
        for index, (image, name) in enumerate(zip(images, names, strict=True))
    ]


def _is_made(file: Path, source: Path) -> bool:
    """Whether a file was made after its source was last changed.

    An empty one, as a power cut can leave it, was not.
    """
    try:
        made, given = file.stat(), source.stat()
    except FileNotFoundError:
        return False
    return made.st_size > 0 and made.st_mtime_ns >= given.st_mtime_ns


def _output_names(images: list[Path], suffix: str) -> list[Path]:
    """The same names with the suffix of the format.

    In a folder where two would then be the same, all keep theirs and have the other behind it.
    """
    plain = [image.with_suffix(suffix) for image in images]
    times = Counter(str(name).casefold() for name in plain)
    crowded = {name.parent for name in plain if times[str(name).casefold()] > 1}
    return [
        image.with_name(image.name + suffix) if name.parent in crowded else name
        for image, name in zip(images, plain, strict=True)
    ]


def _together(job: Job, tasks: list[_Task]) -> list[tuple[_Task, str]]:
    """Do the tasks in threads; in the order of the files, what was wrong with each."""
    with ThreadPoolExecutor(job.threads) as pool:
        futures = {pool.submit(_do, job, task): task for task in tasks}
        try:
            reasons = {futures[future]: future.result() for future in as_completed(futures)}
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [(task, reasons[task]) for task in tasks]


def _do(job: Job, task: _Task) -> str:
    try:
        image = read_image(task.source, resize=job.resize, crop=job.crop)
        batch, _ = check_images(image)
    except FileError as error:
        return str(error)
    except InputError as error:
        return f"{task.source}: {error}"
    try:
        for corruption, severity, file in task.outputs:
            _save(_made(job, batch, corruption, severity, index=task.index), file, job.format)
    except _Unfit as error:
        return f"{task.source}: {error}"
    return ""


class _Unfit(Exception):
    """An image that one of this package's corruptions cannot be applied to."""


def _made(job: Job, batch: Images, corruption: Corruption, severity: int, *, index: int) -> Images:
    made = np.empty_like(batch)
    try:
        run(
            corruption,
            batch,
            made,
            severity=severity,
            table=check_table(job.table, *batch.shape[1:3]),
            seed=job.seed,
            first_index=index,
            threads=1,
        )
    except InputError as error:
        if corruption.group == "custom":  # a function that fails on one will fail on all
            raise
        raise _Unfit(str(error)) from error
    except MemoryError as error:
        raise _Unfit(f"there is not enough memory for {corruption.name}.") from error
    image: Images = made[0]
    return image


def _save(image: Images, file: Path, kind: str) -> None:
    pillow = require("PIL.Image", extra="images", needed_by="writing image files")
    # Always the same name, so that a call that goes on leaves nothing of a killed one behind.
    short = hashlib.sha256(os.fsencode(file.name)).hexdigest()[:16]
    partial = file.with_name(f".{short}.partial")
    try:
        pillow.fromarray(image).save(partial, format=kind, **_SAVE[kind])
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FileError(
            f"{file} could not be written: {error.strerror or error}. What is done is kept; the "
            "same command goes on from there."
        ) from error


def _fingerprint(images: list[Path]) -> dict[str, object]:
    """The names, in which order the random numbers go; what is in a file is told by its time."""
    names = "\n".join(image.as_posix() for image in images)
    digest = hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()
    return {"files": len(images), "sha256": digest}
