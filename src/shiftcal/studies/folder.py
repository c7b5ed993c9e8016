"""The folder of a run: whether it is one, and what is written into it first."""

from __future__ import annotations

from pathlib import Path

from shiftcal._files import atomic_write
from shiftcal.errors import FileError
from shiftcal.studies.archive import INDEX, Archive
from shiftcal.studies.opened import PLAN
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.plan.reading import read_plan
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.stages.digests import TRAIN, made_of
from shiftcal.studies.variant import CLEAN


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
    if names and PLAN not in names:
        raise FileError(
            f"{folder} holds {names[0]!r} and is not the folder of a study. Name a new one."
        )
    if names and "scores" not in names and not _is_ours(folder / PLAN):
        raise FileError(
            f"{folder} holds a {PLAN} that no study wrote, and it would be overwritten. Name "
            "another folder."
        )


def _is_ours(file: Path) -> bool:
    """Whether a plan is one that a run wrote: as plans are written, with nothing added."""
    try:
        text = file.read_text("utf-8")
        return to_toml(read_plan(text)) == text
    except (OSError, ValueError):
        return False


def begin(folder: Path, text: str) -> None:
    """Write the plan; scores of another one are not shown as those of this one meanwhile."""
    file = folder / PLAN
    if not file.exists() or file.read_bytes() != text.encode():
        (folder / INDEX).unlink(missing_ok=True)
        write_text(file, text)


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
                f"were made. Run the plan: shiftcal reproduce {archive.folder / PLAN} -o "
                f"{archive.folder}"
            )


def make_folder(folder: Path) -> None:
    """Make a folder, if it is not there.

    Raises:
        FileError: If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} could not be made: {error.strerror or error}.") from error


def write_text(file: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with atomic_write(file) as temporary:
        temporary.write_text(text, "utf-8")
