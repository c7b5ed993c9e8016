"""Folders of images: ``<corruption>/<severity>/<class>/<file>``."""

from __future__ import annotations

import hashlib
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
    outcome = Outcome(layout="folder", n_images=len(images))
    per_image = sum(len(job.severities_of(corruption)) for corruption in job.corruptions)
    total, done = len(images) * per_image, 0
    settings = {"layout": job.format, "resize": job.resize, "crop": job.crop}
    with described(job, source=_fingerprint(root, images), **settings):
        tasks = []
        for task in _tasks(job, root, images):
            kept = per_image - len(task.outputs)
            outcome.kept += kept
            done += kept
            tasks += [task] if task.outputs else []
        step(done, total)
        for start in range(0, len(tasks), _AHEAD):
            for task, reason in _together(job, tasks[start : start + _AHEAD]):
                done += len(task.outputs)
                step(done, total)
                if reason:
                    name = str(task.source.relative_to(root))
                    outcome.bad[name] = reason
                    warnings.warn(f"left out: {reason}", InputWarning, stacklevel=2)
                else:
                    outcome.written += len(task.outputs)
    return outcome


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
                if not (file := job.target / corruption.name / str(severity) / name).exists()
            ),
        )
        for index, (image, name) in enumerate(zip(images, names, strict=True))
    ]


def _output_names(images: list[Path], suffix: str) -> list[Path]:
    """The same names with the suffix of the format; two that would be the same keep both."""
    plain = [image.with_suffix(suffix) for image in images]
    times = Counter(plain)
    return [
        name if times[name] == 1 else image.with_name(image.name + suffix)
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
    table = check_table(job.table, *batch.shape[1:3])
    for corruption, severity, file in task.outputs:
        made = np.empty_like(batch)
        run(
            corruption,
            batch,
            made,
            severity=severity,
            table=table,
            seed=job.seed,
            first_index=task.index,
            threads=1,
        )
        _save(made[0], file, job.format)
    return ""


def _save(image: Images, file: Path, kind: str) -> None:
    pillow = require("PIL.Image", extra="images", needed_by="writing image files")
    # Always the same name, so that a call that goes on leaves nothing of a killed one behind.
    partial = file.with_name(f".{file.name}.partial")
    try:
        pillow.fromarray(image).save(partial, format=kind, **_SAVE[kind])
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FileError(
            f"{file} could not be written: {error.strerror or error}. What is done is kept; the "
            "same command goes on from there."
        ) from error


def _fingerprint(root: Path, images: list[Path]) -> dict[str, object]:
    digest = hashlib.sha256()
    for image in images:
        digest.update(f"{image.as_posix()}|{(root / image).stat().st_size}\n".encode())
    return {"files": len(images), "sha256": digest.hexdigest()}
