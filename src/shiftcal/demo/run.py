"""The steps of a demonstration, from a model to a report."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from shiftcal._files import atomic_write
from shiftcal._optional import require
from shiftcal._types import Floats, Images
from shiftcal.demo.bank import bank_in
from shiftcal.demo.folder import DemoFolder, check_place, claim
from shiftcal.demo.found import Found, Met
from shiftcal.demo.next_commands import next_commands
from shiftcal.demo.subject import Subject, Target
from shiftcal.errors import MissingExtra
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.report.html import Judging, Provenance, ReportFacts, make_facts, write_report
from shiftcal.scores import read_scores
from shiftcal.scores._origin import model_digest_of_file
from shiftcal.scoring import score_file
from shiftcal.scoring.one_blas_thread import one_blas_thread
from shiftcal.scoring.run import Reporting
from shiftcal.surrogates import SurrogateBank
from shiftcal.surrogates.folder import digest_of

STEPS = 5


class Telling(Protocol):
    """Told what is being done, for as long as the context lasts."""

    def __call__(self, doing: str, *, own_bar: bool = False) -> AbstractContextManager[None]:
        """Args: what is done, and whether that shows a bar of its own."""


def run_demo(
    make: Callable[[], Subject],
    data: str,
    path: Path,
    *,
    telling: Telling,
    reporting: Reporting,
    command: str,
) -> Found:
    """Demonstrate: model, bank, targets, comparison, report. Run again, it goes on.

    Args:
        make: Makes the subject.
        data: What it is about, which its folder is known by.
        path: Folder for all files; made if it is not there.
        telling: Told of every step, :data:`STEPS` in all.
        reporting: How the progress of scoring is told.
        command: The command line, for the report.

    Raises:
        FileError: If the folder holds something else, or a file cannot be written.
    """
    begun = time.perf_counter()
    check_place(path, data)
    preparing = "training a small network" if data == "digits" else "reading images and network"
    with telling(preparing):
        subject = make()
    folder = claim(path, data)
    sets = 1 + 5 * len(subject.corruptions)
    with telling(f"building a bank of {sets} sets in {folder.bank}", own_bar=True):
        bank = bank_in(folder.bank, subject, reporting)
    names = ", ".join(target.name for target in subject.targets)
    with telling(f"new data arrives: {names}"):
        arrived = {one.name: _arrive(one, folder, subject) for one in subject.targets}
        source = _source(folder, subject)
    met = []
    # Matrices this small are multiplied faster by one thread than by several.
    with telling("calibrating by every method, without labels"), one_blas_thread():
        Rehearsal().fit(bank).save(folder.method)
        for target in subject.targets:
            images = arrived[target.name]
            given = _Given(bank, images, source, subject.n_resamples, command)
            facts = _facts(target, folder, given)
            met.append(Met(target, folder.scores(target.name), facts))
    with telling(f"writing the report, {folder.report}"):
        no_report = _report(met[0].facts, folder.report)
    clean = bank.clean.summary()
    found = Found(
        folder=path,
        made=subject.made,
        things=subject.things,
        n_calibration=clean.n,
        n_sets=len(bank),
        corruptions=subject.corruptions,
        clean_accuracy=clean.accuracy,
        clean_confidence=clean.mean_confidence,
        met=tuple(met),
        report=None if no_report else folder.report,
        no_report=no_report,
        remark=subject.remark,
        next=next_commands(folder, subject, with_report=not no_report),
        seconds=time.perf_counter() - begun,
    )
    folder.write(data, found.to_dict())
    return found


def _arrive(target: Target, folder: DemoFolder, subject: Subject) -> Images:
    """Make the images of a target, and have them and the model's outputs in files."""
    images = target.images(subject.new, table=subject.table)
    with atomic_write(folder.images(target.name)) as temporary, temporary.open("wb") as file:
        np.save(file, images)
    score_file(
        subject.model,
        images,
        folder.scores(target.name),
        labels=subject.new_labels,
        reporting=Reporting(shown=False),
    )
    return images


def _source(folder: DemoFolder, subject: Subject) -> Floats | None:
    """Features of training images, if there are any."""
    if subject.train is None:
        folder.train.unlink(missing_ok=True)
        return None
    score_file(subject.model, subject.train, folder.train, reporting=Reporting(shown=False))
    return read_scores(folder.train).features


@dataclass(frozen=True, eq=False)
class _Given:
    """What the facts of a target are made of, beside its scores."""

    bank: SurrogateBank
    images: Images
    source: Floats | None
    n_resamples: int
    command: str


def _facts(target: Target, folder: DemoFolder, given: _Given) -> ReportFacts:
    scores = folder.scores(target.name)
    files = (folder.bank / "bank.json", scores)
    return make_facts(
        given.bank,
        read_scores(scores),
        images=given.images if _has_pillow() else None,
        source_features=given.source,
        target_model=model_digest_of_file(scores),
        title=f"shiftcal demo: {target.title}",
        judging=Judging(n_resamples=given.n_resamples),
        provenance=Provenance(
            command=given.command, files={str(file): digest_of(file) for file in files}
        ),
    )


def _has_pillow() -> bool:
    """Whether pictures can stand on the report; it is as true without them."""
    try:
        require("PIL.Image", extra="images", needed_by="pictures on a report")
    except MissingExtra:
        return False
    return True


def _report(facts: ReportFacts, page: Path) -> str:
    """Write the page; why that was not possible, or nothing."""
    try:
        write_report(facts, page)
    except MissingExtra as error:
        page.unlink(missing_ok=True)  # that of a run before would be about other numbers
        return str(error)
    return ""
