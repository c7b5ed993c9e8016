"""What is to be made, what came of it, and the choice between folders and arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from shiftcal._checks import check_choice, check_count
from shiftcal.corruptions import Corruption, as_corruption
from shiftcal.corruptions._engine import TABLES
from shiftcal.datasets.image_files import check_size
from shiftcal.errors import FileError, InputError
from shiftcal.numerics._threads import thread_count


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


def corrupt_files(  # noqa: PLR0913 (all but the first two are options)
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
        from shiftcal.surrogates.image_sets.array import corrupt_array

        return corrupt_array(job, step or _say_nothing)
    from shiftcal.surrogates.image_sets.folder import corrupt_folder

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
