"""Corrupted copies of a folder or an array of images, on disk.

A file of the result is complete when it is there: each is written atomically, so the same call
after an interruption makes those that are missing, to the same bytes.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count
from shiftcal.corruptions import Corruption, as_corruption, corrupt
from shiftcal.corruptions.corruption import GENERATOR, TABLES
from shiftcal.corruptions.images import PIECE_BYTES, lasting_identity
from shiftcal.datasets.arrays import array_file
from shiftcal.datasets.image_files import FileImages, check_size, find_images
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import FileError, InputError, InputWarning, require
from shiftcal.files import (
    Framing,
    atomic_write,
    checksum_of,
    lock,
    make_folder,
    read_document,
    read_npy,
    remove_orphans,
    write_document,
)
from shiftcal.numerics.blocks import thread_count
from shiftcal.scoring.shards import digest_of_labels
from shiftcal.surrogates.build import steps_of

__all__ = ["Outcome", "corrupt_files"]

NAME = "corrupted.json"
FORMAT, VERSION = "shiftcal-corrupted-images", 3
# Images of an array by whose content the source is recognised.
_SAMPLE = 4096
# Image files given to the threads at a time, or Ctrl-C would wait for all of them.
_AHEAD = 64
# ImageNet-C was stored with this quality.
_SAVE: dict[str, dict[str, Any]] = {
    "png": {"compress_level": 3},
    "jpeg": {"quality": 85, "optimize": True},
}


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
    step: Callable[[int, int], None] | None = None,
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
    inside = given.is_dir() and given.resolve() in folder.resolve().parents
    if inside or folder.resolve() == given.resolve() or folder.is_file():
        raise FileError(
            f"{folder} must not be a file, or inside the folder that is read. Name another."
        )
    names = [corruptions] if isinstance(corruptions, str) else corruptions
    steps = steps_of([as_corruption(each) for each in names], severities)
    check_size(resize, name="resize")
    check_size(crop, name="crop")
    check_choice(format, tuple(_SAVE), name="format")
    options: dict[str, Any] = {
        "seed": check_count(seed, name="seed", least=0, most=2**128),
        "table": check_choice(table, ("auto", *TABLES), name="table"),
    }
    count = thread_count() if threads is None else check_count(threads, name="threads")
    report = step or (lambda *_: None)
    if given.suffix.lower() in (".npy", ".npz"):
        if resize or crop:
            raise InputError("resize and crop are for folders of images, not for arrays.")
        return _corrupt_array(given, folder, steps, options, labels, count, report)
    if labels is not None:
        raise InputError("labels are for arrays; the classes of a folder are its sub-folders.")
    root = given if given.is_dir() else given.parent
    files = find_images(root) if given.is_dir() else [Path(given.name)]
    images = FileImages(root, files, name=str(given))
    return _corrupt_folder(
        images, folder, steps, options, Framing(resize, crop), format, count, report
    )


@contextmanager
def _described(
    target: Path, corruptions: set[Corruption], settings: dict[str, Any]
) -> Iterator[None]:
    """Write or check ``corrupted.json``, and keep other processes out of the folder.

    Raises:
        FileError: If the folder holds something else, was made in another way, or is in use.
    """
    make_folder(target)
    file = target / NAME
    with lock(file):
        remove_orphans(target)
        before: dict[str, Any] = {}
        if file.exists():
            kind, fix = "a list of corruptions", "Name a new folder."
            before = read_document(file, kind, format=FORMAT, version=VERSION, fix=fix)
        elif others := [one.name for one in target.iterdir() if NAME not in one.name]:
            raise FileError(
                f"{target} holds {others[0]!r} and was not made by shiftcal corrupt. Name a new "
                "folder for the result."
            )
        now = {"generator": GENERATOR, **settings}
        known = dict(before.get("corruptions", {}))
        made = {one.name: lasting_identity(one, lasting=False) for one in corruptions}
        for facts, found in ((now, before), (made, known)):
            for name, value in facts.items():
                if found.get(name, value) != value:
                    raise FileError(
                        f"{target} was begun with {name} {found[name]}, now it is {value}. Give "
                        "the same settings to resume, or name a new folder."
                    )
        content = {**now, "corruptions": dict(sorted({**known, **made}.items()))}
        write_document(file, content, format=FORMAT, version=VERSION, indent=1)
        yield


def _corrupt_array(
    source: Path,
    target: Path,
    steps: list[tuple[Corruption, int]],
    options: dict[str, Any],
    labels_file: str | os.PathLike[str] | None,
    threads: int,
    step: Callable[[int, int], None],
) -> Outcome:
    """Write ``<corruption>.npy``, or ``<corruption>/<severity>.npy`` if only some are wanted."""
    images = array_file(source)
    labels = images.labels if labels_file is None else labels_for(images, labels_file)
    n, shape = len(images), images._images(np.zeros(1, np.intp)).shape[1:]
    wanted: dict[Corruption, list[int]] = {}
    for corruption, severity in steps:
        wanted.setdefault(corruption, []).append(severity)
    stacked = all(len(levels) == corruption.severities for corruption, levels in wanted.items())
    if stacked:
        files = [(target / f"{made.name}.npy", made, levels) for made, levels in wanted.items()]
    else:
        files = [(target / made.name / f"{level}.npy", made, [level]) for made, level in steps]
    total, done, kept = n * len(steps), 0, 0
    piece = max(1, PIECE_BYTES // (3 * shape[0] * shape[1]))
    sample = np.unique(np.linspace(0, n - 1, _SAMPLE).astype(np.intp))
    settings = {
        **options,
        "source": {"shape": [n, *shape], "digest": images.digest(sample)},
        "labels": digest_of_labels(labels),
    }
    with _described(target, set(wanted), settings):
        for path, corruption, levels in files:
            path.parent.mkdir(exist_ok=True)
            if labels is not None:
                _write_labels(path, np.tile(labels, len(levels)))
            if path.exists():
                kept, done = kept + 1, done + n * len(levels)
                step(done, total)
                continue
            with atomic_write(path) as temporary:
                size = (n * len(levels), *shape)
                out = np.lib.format.open_memmap(temporary, "w+", np.uint8, size)
                for position, level in enumerate(levels):
                    for start in range(0, n, piece):
                        rows = np.arange(start, min(start + piece, n))
                        out[position * n + rows] = corrupt(
                            images._images(rows),
                            corruption,
                            severity=level,
                            first_index=start,
                            threads=threads,
                            **options,
                        )
                        done += len(rows)
                        step(done, total)
                out.flush()
                del out
    layout: Literal["stacked", "arrays"] = "stacked" if stacked else "arrays"
    return Outcome(layout, n_images=n, written=len(files) - kept, kept=kept)


def _write_labels(path: Path, labels: NDArray[Any]) -> None:
    """Write labels next to the images, unless they are there."""
    file = path.with_name("labels.npy")
    if not file.exists():
        with atomic_write(file) as temporary, temporary.open("wb") as out:
            np.save(out, labels, allow_pickle=False)
    elif len(present := read_npy(file)) != len(labels):
        raise FileError(
            f"{file} has {len(present)} labels, and {path.name} needs {len(labels)}: name a folder"
            " for it alone."
        )


def _corrupt_folder(
    images: FileImages,
    target: Path,
    steps: list[tuple[Corruption, int]],
    options: dict[str, Any],
    framing: Framing,
    format: str,
    threads: int,
    step: Callable[[int, int], None],
) -> Outcome:
    """Write the corrupted copies of every image of a folder; unreadable ones are left out."""
    pillow = require("PIL.Image", extra="images", needed_by="writing image files")
    outputs = _output_names(images.files, ".png" if format == "png" else ".JPEG")
    total, written, bad = len(images) * len(steps), 0, dict[str, str]()

    def missing(index: int) -> list[tuple[Corruption, int, Path]]:
        files = [(c, level, target / c.name / str(level) / outputs[index]) for c, level in steps]
        return [one for one in files if not _is_made(one[2], images.root / images.files[index])]

    def make(index: int) -> tuple[int, str]:
        """How many files were written for an image, and why it was left out."""
        todo, batch = missing(index), images.read([index], framing=framing)
        if batch.bad:
            return 0, batch.bad[index]
        for corruption, level, output in todo:
            (made,) = corrupt(
                batch.images, corruption, severity=level, first_index=index, threads=1, **options
            )
            make_folder(output.parent)
            with atomic_write(output, durable=False) as temporary:
                pillow.fromarray(made).save(temporary, format=format, **_SAVE[format])
        return len(todo), ""

    source = {"files": len(images), "digest": checksum_of({"names": images.files})}
    settings = {"source": source, "layout": format, "resize": framing.resize, "crop": framing.crop}
    described = _described(target, {corruption for corruption, _ in steps}, {**options, **settings})
    with described, ThreadPoolExecutor(threads) as pool:
        todo = [index for index in range(len(images)) if missing(index)]
        done = total - len(todo) * len(steps)
        for start in range(0, len(todo), _AHEAD):
            some = todo[start : start + _AHEAD]
            for index, (files, reason) in zip(some, pool.map(make, some), strict=True):
                written, done = written + files, done + len(steps)
                step(done, total)
                if reason:
                    bad[images.files[index]] = reason
                    warnings.warn(f"left out: {reason}", InputWarning, stacklevel=2)
    kept = total - written - len(bad) * len(steps)
    return Outcome("folder", n_images=len(images), written=written, kept=kept, bad=bad)


def _is_made(file: Path, source: Path) -> bool:
    """Whether a file is newer than its source; an empty one is what a power cut left."""
    try:
        made, given = file.stat(), source.stat()
    except FileNotFoundError:
        return False
    return made.st_size > 0 and made.st_mtime_ns >= given.st_mtime_ns


def _output_names(files: list[str], suffix: str) -> list[Path]:
    """The same names with the suffix of the format.

    In a folder where two would then be the same, the suffix is added to all names instead.
    """
    plain = [Path(file).with_suffix(suffix) for file in files]
    times = Counter(str(name).casefold() for name in plain)
    crowded = {name.parent for name in plain if times[str(name).casefold()] > 1}
    return [
        Path(f"{file}{suffix}") if name.parent in crowded else name
        for file, name in zip(files, plain, strict=True)
    ]
