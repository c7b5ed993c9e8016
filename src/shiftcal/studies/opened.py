"""A run on disk, opened to look at its numbers."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

from shiftcal.errors import FileError, InputError
from shiftcal.scoring.one_blas_thread import one_blas_thread
from shiftcal.studies.adapting.plan import AdaptationPlan, AnyPlan
from shiftcal.studies.again import PLAN, repair
from shiftcal.studies.archive import INDEX, Archive
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.plan.reading import read_plan
from shiftcal.studies.planned import variants_of
from shiftcal.studies.record import Record, read_records
from shiftcal.studies.stages.about import read_about
from shiftcal.studies.stages.draws import seed_of
from shiftcal.studies.stages.outcome import bank_of, fitted, judged, rows_of
from shiftcal.studies.variant import CLEAN, Target, Variant

RECORDS, ABOUT = "records.csv", "run.json"


class Run:
    """A run on disk.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @property
    def plan(self) -> AnyPlan:
        """The plan as it was run.

        Raises:
            FileError: If there is none, or it is damaged.
        """
        file = self.folder / PLAN
        try:
            return read_plan(file.read_text("utf-8"), where=str(file))
        except OSError as error:
            if (self.folder / INDEX).exists():
                raise FileError(
                    f"{self.folder} holds scores of a study and no plan: {file} could not be read "
                    f"({error.strerror or error}). Run the plan again, which uses the scores: "
                    f"{repair(self.folder)}"
                ) from error
            raise FileError(
                f"{self.folder} is not the folder of a study: {file} could not be read "
                f"({error.strerror or error})."
            ) from error
        except UnicodeDecodeError as error:
            raise FileError(
                f"{file} is damaged: not text in UTF-8 ({error.reason} at byte {error.start}). Put "
                "the plan of the study in its place, or remove it and run the plan again: shiftcal "
                f"reproduce PLAN -o {shlex.quote(str(self.folder))}"
            ) from error

    @property
    def records(self) -> list[Record]:
        """Every evaluation.

        Raises:
            FileError: If the table is not there, or not the one that the run wrote.
        """
        found = read_records(self.folder / RECORDS)
        told = read_about(self.folder / ABOUT).get("records")
        if type(told) is int and told != len(found):
            raise FileError(
                f"{self.folder / RECORDS} has {len(found):,} rows, and {ABOUT} beside it says "
                f"{told:,}: rows were lost or added, or a run was interrupted. Make it again: "
                f"shiftcal reproduce {shlex.quote(str(self.folder))}"
            )
        return found

    @property
    def archive(self) -> Archive:
        """The stored scores."""
        return Archive.open(self.folder)

    def recompute(self, record: Record) -> Record:
        """A record computed again from the stored logits, by the plan and the seeds it names.

        Raises:
            InputError: If no such evaluation is in the plan.
        """
        plan = self.plan
        if isinstance(plan, AdaptationPlan):
            from shiftcal.studies.adapting.evaluation import recomputed

            return recomputed(plan, self.folder, record)
        archive = self.archive
        variant, target = self._find(plan, archive, record)
        split = archive.split(record.split, plan.calibration.images)
        seed = seed_of(variant, record.draw, record.split, target)
        bank = bank_of(archive, variant.ladder, split, seed=record.split)
        rows = rows_of(archive.scores(target.name), target, split)
        with one_blas_thread():
            made = judged(fitted(variant, bank, archive), rows, bins=plan.bins, seed=seed)
        return replace(record, **vars(made))

    def _find(self, plan: Plan, archive: Archive, record: Record) -> tuple[Variant, Target]:
        wanted = (record.panel, record.setting, record.variant, record.calibration)
        for variant in variants_of(plan, len(archive.scores(CLEAN).logits)):
            told = (variant.panel, variant.setting, variant.key, variant.ladder.corruption)
            there = told == wanted and record.split in plan.seeds and record.draw < variant.draws
            for target in variant.targets if there else ():
                if target.name == record.target:
                    return variant, target
        raise InputError(
            f"the plan of {self.folder} has no evaluation of {record.label} on {record.target} "
            f"with surrogate sets of {record.calibration} in split {record.split}, draw "
            f"{record.draw}."
        )
