"""The folder of a run: whether it is one, and what is written into it first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shiftcal._files import atomic_write
from shiftcal.errors import FileError
from shiftcal.studies.again import PLAN, repair
from shiftcal.studies.archive import INDEX, Archive
from shiftcal.studies.opened import ABOUT, RECORDS
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.plan.reading import read_plan
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.stages.digests import TRAIN, made_of
from shiftcal.studies.stages.reporting import PAGE
from shiftcal.studies.stages.written import remove_written
from shiftcal.studies.variant import CLEAN

SPLITS = "splits"


def check_free(folder: Path) -> None:
    """Refuse a folder that holds something else than a run.

    Raises:
        FileError: Naming what it holds.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"{folder} cannot be used: {error.strerror or error}.") from error
    if names and PLAN not in names and not _has_scores(folder):
        raise FileError(
            f"{folder} holds {names[0]!r} and is not the folder of a study. Name a new one."
        )
    begun = {"scores", "features", "trainings"} & set(names)
    if PLAN in names and not begun and not _is_ours(folder / PLAN):
        raise FileError(
            f"{folder} holds a {PLAN} that no study wrote, and it would be overwritten. Name "
            "another folder."
        )


def _has_scores(folder: Path) -> bool:
    """Whether there is an index of scores that a study wrote: a run whose plan was lost."""
    try:
        Archive.open(folder)
    except FileError:
        return False
    return True


def _is_ours(file: Path) -> bool:
    """Whether a plan is one that a run wrote: as plans are written, with nothing added."""
    try:
        text = file.read_text("utf-8")
        return to_toml(read_plan(text)) == text
    except (OSError, ValueError):
        return False


def begin(folder: Path, text: str) -> None:
    """Write the plan; what another one led to is not shown as this one's meanwhile.

    Of a run with another plan, everything goes that says what came of it. Scores and outcomes stay:
    they are found by what made them.

    Raises:
        FileError: If something cannot be removed or written.
    """
    file = folder / PLAN
    try:
        if file.exists() and file.read_bytes() == text.encode():
            return
        for name in (ABOUT, PAGE, RECORDS, INDEX):
            (folder / name).unlink(missing_ok=True)
        drop_splits(folder)
        remove_written(folder)
    except OSError as error:
        raise FileError(
            f"{folder} could not be cleared of the last run: {error.strerror or error}."
        ) from error
    write_text(file, text)


def drop_splits(folder: Path, *, but: Sequence[int] = ()) -> None:
    """Remove the rows of splits, but for some seeds."""
    kept = {f"seed-{seed}.npz" for seed in but}
    for file in (folder / SPLITS).glob("seed-*.npz"):
        if file.name not in kept and file.stem.removeprefix("seed-").isdecimal():
            file.unlink(missing_ok=True)


def check_still(folder: Path, text: str) -> None:
    """Refuse to write into a folder whose plan was changed while the run was under way.

    Args:
        folder: Of the run.
        text: The plan that the run began with.

    Raises:
        FileError: If another one is there now.
    """
    try:
        same = (folder / PLAN).read_bytes() == text.encode()
    except OSError:
        same = False
    if not same:
        raise FileError(
            f"another run with another plan is using this folder: {folder / PLAN} is no longer the "
            "plan that this run began with. Nothing more is written; scores and evaluations are "
            "kept. Name another folder for one of them, or run them one after the other."
        )


def check_made_of(plan: Plan, archive: Archive) -> None:
    """Refuse scores of another model or of other images than the plan names now.

    Raises:
        FileError: Naming what is another.
    """
    for name, digest in made_of(plan).items():
        if archive.made_of.get(name, digest) != digest and (name != TRAIN or archive.train):
            what = f"the set {name}" if name not in (CLEAN, TRAIN) else "its model or its images"
            raise FileError(
                f"{archive.folder / PLAN} says other things about {what} than when the scores "
                f"were made. Run the plan: {repair(archive.folder)}"
            )


def write_text(file: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with atomic_write(file) as temporary:
        temporary.write_text(text, "utf-8")
