"""What is to be made, what came of it, and the choice between folders and arrays."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from shiftcal.checks import ImageLayout, check_choice, check_count, check_images
from shiftcal.corruptions import Corruption, as_corruption
from shiftcal.corruptions.corruption import GENERATOR, TABLES, run
from shiftcal.corruptions.images import (
    PIECE_BYTES,
    check_table,
    forget_pages,
    lasting_identity,
    open_images,
)
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import check_size, find_images, read_image
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import FileError, InputError, InputWarning, require
from shiftcal.files import (
    atomic_write,
    flush_file,
    flush_folder,
    make_folder,
    npz_array,
    open_npz,
    parsing,
    read_json,
)
from shiftcal.numerics.jit import thread_count
from shiftcal.types import Images

# --------------------------------------------------------------------------------------
# What is to be made, what came of it, and the choice between folders and arrays.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Settings of one call; those that decide pixels are written beside the result.

    Attributes:
        source: A folder of images, an image, or an ``.npy``/``.npz`` file.
        target: The folder for the result.
        corruptions: What is done.
        severities: How strongly, in rising order; ``None`` is all that a corruption has.
        seed: Fixes the random numbers.
        table: Whose strengths; ``"auto"`` goes by the size of each image.
        threads: How many images are worked on at once.
        labels: File of labels for an ``.npy`` file of images.
        resize: Shorter side that images of a folder get first.
        crop: Side of the square that is then cut from their centre.
        format: ``"png"`` (nothing is lost) or ``"jpeg"`` (quality 85, as ImageNet-C was stored).
    """

    source: Path
    target: Path
    corruptions: tuple[Corruption, ...]
    severities: tuple[int, ...] | None
    seed: int
    table: str
    threads: int
    labels: Path | None = None
    resize: int | None = None
    crop: int | None = None
    format: Literal["png", "jpeg"] = "png"

    def severities_of(self, corruption: Corruption) -> tuple[int, ...]:
        """The severities that are wanted of a corruption."""
        return self.severities or tuple(range(1, corruption.severities + 1))


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


Step = Callable[[int, int], None]


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

    Called again after it was broken off, it goes on where it stopped, and the files are the same
    to the byte as if it had not been. More corruptions can be added by further calls with the
    same settings.

    Args:
        source: A folder of images (sub-folders are kept), one image, an ``.npy`` file, or an
            ``.npz`` file with ``images`` and maybe ``labels``.
        target: The folder; made if it is not there.
        corruptions: Names, corruptions or functions, as :func:`shiftcal.corrupt` takes them.
        severities: Which severities; by default all, which are five for those of this package.
        seed: Fixes the random numbers.
        table: As for :func:`shiftcal.corrupt`.
        threads: How many images are worked on at once; by default one for every processor.
        labels: File of labels (``.npy``) for an ``.npy`` file of images.
        resize: Shorter side that images of a folder get first.
        crop: Side of the square that is then cut from their centre.
        format: Of written images: ``"png"`` (nothing is lost) or ``"jpeg"`` (quality 85, as
            ImageNet-C was stored).
        step: Told after every file how many of how many are done.

    Raises:
        InputError: If a setting cannot be used.
        FileError: If the source cannot be read, or the target holds something else.
    """
    wanted = [corruptions] if isinstance(corruptions, str) else corruptions
    levels = [severities] if isinstance(severities, int) else severities
    job = _checked(
        Job(
            source=Path(source),
            target=Path(target),
            corruptions=tuple(as_corruption(given) for given in wanted),
            severities=None if levels is None else tuple(sorted(set(levels))),
            seed=check_count(seed, name="seed", least=0, most=2**128),
            table=check_choice(table, ("auto", *TABLES), name="table"),
            threads=thread_count() if threads is None else check_count(threads, name="threads"),
            labels=None if labels is None else Path(labels),
            resize=resize,
            crop=crop,
            format=check_choice(format, ("png", "jpeg"), name="format"),
        )
    )
    if job.source.suffix.lower() in (".npy", ".npz"):
        return corrupt_array(job, step or _say_nothing)

    return corrupt_folder(job, step or _say_nothing)


def _checked(job: Job) -> Job:
    if not job.source.exists():
        raise FileError(f"{job.source} does not exist. Name a folder of images or an array.")
    _check_strengths(job)
    check_size(job.resize, name="resize")
    check_size(job.crop, name="crop")
    source, target = job.source.resolve(), job.target.resolve()
    if target == source or (source.is_dir() and source in target.parents):
        raise InputError(
            f"the result must not be written into the folder that is read: {job.target} is inside "
            f"{job.source}. Name a folder elsewhere."
        )
    if target.exists() and not target.is_dir():
        raise FileError(f"{job.target} is a file. Name a folder for the result.")
    everything = replace(job, severities=None)
    # All of them, however that was said, is one layout.
    if all(job.severities_of(c) == everything.severities_of(c) for c in job.corruptions):
        return everything
    return job


def _check_strengths(job: Job) -> None:
    names = [corruption.name for corruption in job.corruptions]
    if not names or len(set(names)) < len(names):
        raise InputError(f"corruptions must be given, each once; got {names}.")
    if job.severities == ():
        raise InputError("severities must name one at least, or be left out for all of them.")
    for corruption in job.corruptions:
        for severity in job.severities_of(corruption):
            check_count(severity, name="severity", most=corruption.severities)


def _say_nothing(done: int, total: int) -> None:
    del done, total


# --------------------------------------------------------------------------------------
# Surrogate sets of images on disk: a folder or an array in, its corrupted copies out.
#
# Work that was broken off is completed by the same call, and the result is the same to the byte.
# --------------------------------------------------------------------------------------

__all__ = ["Job", "Outcome", "corrupt_files"]


# --------------------------------------------------------------------------------------
# ``corrupted.json``: how the images beside it were made, so that nothing is mixed.
# --------------------------------------------------------------------------------------

NAME = "corrupted.json"
_OURS = (NAME, ".lock")
FORMAT = "shiftcal-corrupted-images"
VERSION = 1


@contextmanager
def described(job: Job, **settings: Any) -> Iterator[None]:
    """Write or check the description of the target, and keep other processes out of it.

    Args:
        job: What is to be made.
        **settings: What must be the same for files to stand side by side.

    Raises:
        FileError: If the target holds something else, was made otherwise, or is being written.
    """
    make_folder(job.target)
    _manifest_read(job.target)
    file = job.target / NAME
    lock = FileLock(job.target / ".lock", blocking=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise FileError(
            f"{job.target} is being written by another process. Wait for it."
        ) from error
    try:
        made = _manifest_read(job.target)  # another process may have been faster
        settings = {"generator": GENERATOR, "seed": job.seed, "table": job.table, **settings}
        document = made or {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"shiftcal {version('shiftcal')}",
            **settings,
            "corruptions": {},
        }
        for name, value in json.loads(json.dumps(settings)).items():
            before = document[name] if made is None else made.get(name)
            if made is not None and before != value:
                what = "another source" if name == "source" else f"{name} {before!r}"
                now = "" if name == "source" else f", now it is {value!r}"
                raise FileError(
                    f"{job.target} was begun with {what}{now}. Give the same settings to resume, "
                    "or name a new folder."
                )
        known: dict[str, str] = document["corruptions"]
        for corruption in job.corruptions:
            identity = lasting_identity(corruption, lasting=False)
            if known.setdefault(corruption.name, identity) != identity:
                raise FileError(
                    f"{job.target} already has {known[corruption.name]}, and this is {identity}. "
                    "Name another folder."
                )
        document["corruptions"] = dict(sorted(known.items()))
        text = json.dumps(document, indent=1) + "\n"
        if made is None or file.read_text("utf-8") != text:
            with atomic_write(file) as temporary:
                temporary.write_text(text, "utf-8")
        try:
            yield
        except BaseException:
            if made is None and not any(_finished(job.target)):
                file.unlink()  # nothing was written: the folder is free for another source
            raise
    finally:
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


def _finished(target: Path) -> Iterator[Path]:
    return (entry for entry in target.rglob("*") if entry.is_file() and entry.name not in _OURS)


def _manifest_read(target: Path) -> dict[str, Any] | None:
    """What an earlier call wrote; ``None`` if the folder is empty."""
    file = target / NAME
    if not file.exists():
        entries = (entry for entry in target.iterdir() if entry.name not in _OURS)
        others = [entry.name for entry in entries if not _is_empty(entry)]
        if others:
            raise FileError(
                f"{target} holds {others[0]!r} and was not made by shiftcal corrupt. Name a new "
                "folder for the result."
            )
        return None
    fix = "Name a new folder."
    document = read_json(file, "a list of corruptions", fix=fix)
    with parsing(file, "a list of corruptions", fix=fix):
        sound = (
            document["format"] == FORMAT
            and isinstance(document["corruptions"], dict)
            and int(document["version"]) <= VERSION
        )
    if not sound:
        raise FileError(f"{file} is not one that this version can go on with. Name a new folder.")
    found: dict[str, Any] = document
    return found


def _is_empty(entry: Path) -> bool:
    """Whether it is a folder, or folders in it, without any file."""
    return entry.is_dir() and not any(path.is_file() for path in entry.rglob("*"))


# --------------------------------------------------------------------------------------
# Arrays of images: a piece at a time, in the layout of CIFAR-10-C.
# --------------------------------------------------------------------------------------

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
    if job.labels is not None:
        labels = labels_for(ArrayImages(images, name=str(job.source)), job.labels)
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
            f"{path} could not be written: {error.strerror or error}. Finished files are kept; the "
            "same command resumes from there."
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
    return images, labels


def _members(file: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    with open_npz(file) as archive:
        names = archive.files
        if "images" not in names:
            raise FileError(
                f"{file} has no array 'images'; it has {', '.join(names) or 'none at all'}."
            )
        labels = npz_array(archive, "labels") if "labels" in names else None
        return npz_array(archive, "images"), labels


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


# --------------------------------------------------------------------------------------
# Folders of images: ``<corruption>/<severity>/<class>/<file>``.
# --------------------------------------------------------------------------------------

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
    with described(job, source=_folder_fingerprint(images), **settings):
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
            f"{file} could not be written: {error.strerror or error}. Finished files are kept; the "
            "same command resumes from there."
        ) from error


def _folder_fingerprint(images: list[Path]) -> dict[str, object]:
    """The names, in which order the random numbers go; what is in a file is told by its time."""
    names = "\n".join(image.as_posix() for image in images)
    digest = hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()
    return {"files": len(images), "sha256": digest}
