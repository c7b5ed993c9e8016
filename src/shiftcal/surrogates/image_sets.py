"""Corrupted copies of a folder or an array of images, on disk.

A file of the result is complete when it is there: each is written atomically, so the same call
after an interruption makes those that are missing, to the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count, check_images
from shiftcal.corruptions import Corruption, as_corruption
from shiftcal.corruptions.corruption import GENERATOR, TABLES, run
from shiftcal.corruptions.images import PIECE_BYTES, check_table, forget_pages, lasting_identity
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import check_size, find_images, read_image
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import FileError, InputError, InputWarning, require
from shiftcal.files import (
    atomic_write,
    lock,
    make_folder,
    read_document,
    read_npy,
    read_npz,
    write_document,
)
from shiftcal.numerics.jit import thread_count
from shiftcal.surrogates.build import steps_of
from shiftcal.types import Images

__all__ = ["Outcome", "corrupt_files"]

NAME = "corrupted.json"
FORMAT, VERSION = "shiftcal-corrupted-images", 2
# Bytes of images that are read in full to recognise the source; of more, only some are.
_ALL_READ = 1 << 28
# Image files given to the threads at a time, or Ctrl-C would wait for all of them.
_AHEAD = 64
# ImageNet-C was stored with this quality.
_SAVE = {"png": {"compress_level": 3}, "jpeg": {"quality": 85, "optimize": True}}

Step: TypeAlias = Callable[[int, int], None]
# Severities by corruption.
Wanted: TypeAlias = dict[Corruption, list[int]]


@dataclass(frozen=True)
class Outcome:
    """What a call has done.

    Attributes:
        layout: ``"folder"``, ``"stacked"`` (one array per corruption, severity after severity) or
            ``"arrays"`` (one array per corruption and severity).
        n_images: Images that were found.
        written: Files written by this call.
        kept: Files that an earlier call had finished.
        bad: Image files that could not be read, with the reason.
    """

    layout: Literal["folder", "stacked", "arrays"]
    n_images: int
    written: int
    kept: int
    bad: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Settings:
    """Settings that decide pixels."""

    seed: int
    table: str
    threads: int
    resize: int | None
    crop: int | None
    format: str


def corrupt_files(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    corruptions: Sequence[object] | str,
    severities: Sequence[int] | int | None = None,
    seed: int = 0,
    table: str = "auto",
    threads: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    resize: int | None = None,
    crop: int | None = None,
    format: str = "png",
    step: Step | None = None,
) -> Outcome:
    """Write corrupted copies of all images of a folder or an array to a folder.

    A folder of images becomes ``<corruption>/<severity>/<class>/<file>``, and an array
    ``(n, height, width, 3)`` becomes ``<corruption>.npy`` with all severities one after the other
    and ``labels.npy`` to match, as in CIFAR-10-C; if some severities are asked for,
    ``<corruption>/<severity>.npy`` and ``<corruption>/labels.npy``. ``corrupted.json`` says how
    they were made. The images' indices, which their random numbers depend on, are those of the
    sorted list of files, or of the rows.

    Called again after an interruption, it makes the files that are missing, the same to the byte.
    More corruptions can be added by further calls with the same settings.

    Args:
        source: A folder of images (sub-folders are kept), one image, an ``.npy`` file, or an
            ``.npz`` file with ``images`` and maybe ``labels``.
        target: The folder; made if it does not exist.
        corruptions: Names, corruptions or functions, as :func:`shiftcal.corrupt` takes them.
        severities: Which severities; default: all, which are five for those of this package.
        seed: Fixes the random numbers.
        table: As for :func:`shiftcal.corrupt`.
        threads: How many images are worked on at once; default: one for every processor.
        labels: File of labels (``.npy``) for an ``.npy`` file of images.
        resize: Shorter side that images of a folder get first.
        crop: Side of the square that is then cut from their centre.
        format: Of written images: ``"png"`` (nothing is lost) or ``"jpeg"`` (quality 85, as
            ImageNet-C was stored).
        step: Called after every file with how many of how many are done.

    Raises:
        InputError: If a setting cannot be used.
        FileError: If the source cannot be read, or the target holds something else.
    """
    given, folder = Path(source), Path(target)
    if not given.exists():
        raise FileError(f"{given} does not exist. Name a folder of images or an array.")
    names = [corruptions] if isinstance(corruptions, str) else corruptions
    wanted: dict[Corruption, list[int]] = {}
    for corruption, severity in steps_of([as_corruption(each) for each in names], severities):
        wanted.setdefault(corruption, []).append(severity)
    check_size(resize, name="resize")
    check_size(crop, name="crop")
    settings = _Settings(
        seed=check_count(seed, name="seed", least=0, most=2**128),
        table=check_choice(table, ("auto", *TABLES), name="table"),
        threads=thread_count() if threads is None else check_count(threads, name="threads"),
        resize=resize,
        crop=crop,
        format=check_choice(format, tuple(_SAVE), name="format"),
    )
    inside = given.is_dir() and given.resolve() in folder.resolve().parents
    if inside or folder.resolve() == given.resolve():
        raise InputError(
            f"the result must not be written into the folder that is read: {folder} is inside "
            f"{given}. Name a folder elsewhere."
        )
    if folder.is_file():
        raise FileError(f"{folder} is a file. Name a folder for the result.")
    report = step or (lambda *_: None)
    if given.suffix.lower() in (".npy", ".npz"):
        return _corrupt_array(given, folder, wanted, settings, labels, report)
    if labels is not None:
        raise InputError("labels are for arrays; the classes of a folder are its sub-folders.")
    return _corrupt_folder(given, folder, wanted, settings, report)


@contextmanager
def _described(target: Path, wanted: Wanted, settings: _Settings, **more: Any) -> Iterator[None]:
    """Write or check ``corrupted.json``, and keep other processes out of the folder.

    Raises:
        FileError: If the folder holds something else, was made in another way, or is in use.
    """
    make_folder(target)
    file = target / NAME
    with lock(file):
        for orphan in target.rglob(".shiftcal-*.tmp"):  # of a process that was killed
            orphan.unlink(missing_ok=True)
        now = {"generator": GENERATOR, "seed": settings.seed, "table": settings.table, **more}
        before = None
        if file.exists():
            fix = "Name a new folder."
            before = read_document(
                file, "a list of corruptions", format=FORMAT, version=VERSION, fix=fix
            )
        elif others := _results(target):
            raise FileError(
                f"{target} holds {others[0]!r} and was not made by shiftcal corrupt. Name a new "
                "folder for the result."
            )
        known = dict(before["corruptions"]) if before else {}
        for name, value in json.loads(json.dumps(now)).items():
            if before is not None and before.get(name) != value:
                what = "another source" if name == "source" else f"{name} {before.get(name)!r}"
                raise FileError(
                    f"{target} was begun with {what}, now it is {value!r}. Give the same settings "
                    "to resume, or name a new folder."
                )
        for corruption in wanted:
            identity = lasting_identity(corruption, lasting=False)
            if known.setdefault(corruption.name, identity) != identity:
                raise FileError(
                    f"{target} already has {known[corruption.name]}, and this is {identity}. "
                    "Name another folder."
                )
        content = {**now, "corruptions": dict(sorted(known.items()))}
        write_document(file, content, format=FORMAT, version=VERSION, indent=1)
        try:
            yield
        except BaseException:
            if not _results(target):
                file.unlink()  # nothing was written: the folder is free for another source
            raise


def _results(target: Path) -> list[str]:
    """Names of files in a folder, but for the description and its lock."""
    return [f.name for f in target.rglob("*") if f.is_file() and NAME not in f.name]


def _corrupt_array(
    source: Path,
    target: Path,
    wanted: Wanted,
    settings: _Settings,
    labels_file: str | os.PathLike[str] | None,
    step: Step,
) -> Outcome:
    """Write ``<corruption>.npy``, or ``<corruption>/<severity>.npy`` if only some are wanted."""
    if settings.resize or settings.crop:
        raise InputError("resize and crop are for folders of images, not for arrays.")
    if source.suffix.lower() == ".npy":
        images, labels = read_npy(source, mapped=True), None
    else:
        found = read_npz(source)
        if "images" not in found:
            raise FileError(
                f"{source} has no array 'images'; it has {', '.join(found) or 'none at all'}."
            )
        images, labels = found["images"], found.get("labels")
    try:
        batch, layout = check_images(images)
    except InputError as error:
        raise FileError(f"{source}: {error}") from error
    if labels_file is not None:
        labels = labels_for(ArrayImages(images, name=str(source)), labels_file)
    if labels is not None and labels.shape != (len(batch),):
        raise InputError(
            f"labels must have one entry for each of the {len(batch):,} images; "
            f"got shape {labels.shape}."
        )
    stacked = all(len(levels) == corruption.severities for corruption, levels in wanted.items())
    files = [
        (target / f"{corruption.name}.npy", corruption, levels)
        if stacked
        else (target / corruption.name / f"{level}.npy", corruption, [level])
        for corruption, levels in wanted.items()
        for level in (levels[:1] if stacked else levels)
    ]
    n = len(batch)
    total, done, kept = sum(n * len(levels) for *_, levels in files), 0, 0
    piece = max(1, PIECE_BYTES // (3 * int(np.prod(batch.shape[1:3]))))
    description = {
        "source": {"shape": batch.shape, "sha256": _fingerprint(source, batch)},
        "layout": "array",
        "labels": None if labels is None else _digest(labels),
    }
    with _described(target, wanted, settings, **description):
        for path, corruption, levels in files:
            path.parent.mkdir(exist_ok=True)
            if labels is not None:
                _write_labels(path, np.tile(labels, len(levels)))
            if path.exists():
                kept, done = kept + 1, done + n * len(levels)
                step(done, total)
                continue
            with atomic_write(path) as temporary:
                shape = (n * len(levels), *batch.shape[1:])
                out = np.lib.format.open_memmap(temporary, "w+", np.uint8, shape)
                for position, level in enumerate(levels):
                    for start in range(0, n, piece):
                        colour = layout.to_colour(batch[start : start + piece])
                        made = _corrupted(colour, corruption, level, settings, start)
                        first = position * n + start
                        out[first : first + len(made)] = layout.from_colour(made)
                        forget_pages(batch)
                        done += len(made)
                        step(done, total)
                out.flush()
                del out
    shape_name: Literal["stacked", "arrays"] = "stacked" if stacked else "arrays"
    return Outcome(shape_name, n_images=n, written=len(files) - kept, kept=kept)


def _corrupted(
    images: Images, corruption: Corruption, severity: int, settings: _Settings, first: int
) -> Images:
    made = np.empty(images.shape, np.uint8)
    run(
        corruption,
        images,
        made,
        severity=severity,
        table=check_table(settings.table, *images.shape[1:3]),
        seed=settings.seed,
        first_index=first,
        threads=settings.threads,
    )
    return made


def _write_labels(path: Path, labels: NDArray[Any]) -> None:
    """Write labels next to the images, unless they are there."""
    file = path.with_name("labels.npy")
    if not file.exists():
        with atomic_write(file) as temporary, temporary.open("wb") as out:
            np.save(out, labels, allow_pickle=False)
    elif len(present := read_npy(file)) != len(labels):
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


def _corrupt_folder(
    source: Path, target: Path, wanted: Wanted, settings: _Settings, step: Step
) -> Outcome:
    """Write the corrupted copies of every image of a folder; unreadable ones are left out."""
    pillow = require("PIL.Image", extra="images", needed_by="writing image files")
    single = not source.is_dir()
    root = source.parent if single else source
    images = [Path(source.name)] if single else find_images(source)
    names = "\n".join(image.as_posix() for image in images)
    digest = hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()
    alone = replace(settings, threads=1)  # each thread has its own image
    outputs = _output_names(images, ".png" if settings.format == "png" else ".JPEG")
    sets = [(c, s, target / c.name / str(s)) for c, levels in wanted.items() for s in levels]
    total, bad, written = len(images) * len(sets), dict[str, str](), 0

    def missing(index: int) -> list[tuple[Corruption, int, Path]]:
        files = [(c, severity, folder / outputs[index]) for c, severity, folder in sets]
        return [one for one in files if not _is_made(one[2], root / images[index])]

    def make(index: int) -> tuple[int, str]:
        """How many files were written for an image, and why it was left out."""
        todo, file = missing(index), root / images[index]
        try:
            batch, _ = check_images(read_image(file, resize=settings.resize, crop=settings.crop))
        except InputError as error:
            return 0, str(error) if isinstance(error, FileError) else f"{file}: {error}"
        for corruption, severity, output in todo:
            try:
                (made,) = _corrupted(batch, corruption, severity, alone, index)
            except InputError as error:
                if corruption.group == "custom":  # a function that fails on one fails on all
                    raise
                return 0, f"{file}: {error}"
            with atomic_write(output, durable=False) as temporary:
                options = _SAVE[settings.format]
                pillow.fromarray(made).save(temporary, format=settings.format, **options)
        return len(todo), ""

    layout = {"layout": settings.format, "resize": settings.resize, "crop": settings.crop}
    described = _described(
        target, wanted, settings, source={"files": len(images), "sha256": digest}, **layout
    )
    with described, ThreadPoolExecutor(settings.threads) as pool:
        for folder in {folder / name.parent for _, _, folder in sets for name in outputs}:
            folder.mkdir(parents=True, exist_ok=True)
        todo = [index for index in range(len(images)) if missing(index)]
        done = total - len(todo) * len(sets)
        for start in range(0, len(todo), _AHEAD):
            some = todo[start : start + _AHEAD]
            for index, (files, reason) in zip(some, pool.map(make, some), strict=True):
                written, done = written + files, done + len(sets)
                step(done, total)
                if reason:
                    bad[str(images[index])] = reason
                    warnings.warn(f"left out: {reason}", InputWarning, stacklevel=2)
    kept = total - written - len(bad) * len(sets)
    return Outcome("folder", n_images=len(images), written=written, kept=kept, bad=bad)


def _is_made(file: Path, source: Path) -> bool:
    """Whether a file is newer than its source; an empty one is what a power cut left."""
    try:
        made, given = file.stat(), source.stat()
    except FileNotFoundError:
        return False
    return made.st_size > 0 and made.st_mtime_ns >= given.st_mtime_ns


def _output_names(images: list[Path], suffix: str) -> list[Path]:
    """The same names with the suffix of the format.

    In a folder where two would then be the same, the suffix is added to all names instead.
    """
    plain = [image.with_suffix(suffix) for image in images]
    times = Counter(str(name).casefold() for name in plain)
    crowded = {name.parent for name in plain if times[str(name).casefold()] > 1}
    return [
        image.with_name(image.name + suffix) if name.parent in crowded else name
        for image, name in zip(images, plain, strict=True)
    ]
