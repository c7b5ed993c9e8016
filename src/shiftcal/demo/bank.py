"""The bank of a demonstration, in its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from shiftcal.demo.subject import Subject
from shiftcal.errors import FileError
from shiftcal.scoring.run import Reporting
from shiftcal.surrogates import SurrogateBank
from shiftcal.surrogates.build import build_bank
from shiftcal.surrogates.conditions import conditions_of
from shiftcal.surrogates.synthesize import Options


def bank_in(folder: Path, subject: Subject, reporting: Reporting) -> SurrogateBank:
    """The bank of a subject, made, gone on with, or found done.

    One that was made of another model (another release of scikit-learn trains another network) is
    made anew: the folder belongs to the demonstration.

    Args:
        folder: Of the bank.
        subject: Model, images and corruptions.
        reporting: How progress is told.

    Raises:
        FileError: If it cannot be written.
    """
    try:
        _build(folder, subject, reporting)
    except FileError as error:
        failed = isinstance(error.__cause__, OSError)  # a disk that is full is no other model
        if failed or not (folder / "bank.json").exists():
            raise
        shutil.rmtree(folder)
        _build(folder, subject, reporting)
    return SurrogateBank.load(folder)


def _build(folder: Path, subject: Subject, reporting: Reporting) -> None:
    build_bank(
        subject.model,
        subject.calibration,
        folder,
        conditions=conditions_of(list(subject.corruptions), None),
        options=Options(table=subject.table, reporting=reporting),
    )
