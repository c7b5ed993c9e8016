"""A report of one target of a study, from the scores that the study has stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.cli._named import Named
from shiftcal.cli._report_making import ReportInputs
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.report.html import Judging
    from shiftcal.studies.task import Task


def is_study(folder: Path) -> bool:
    """Whether it is the folder of a run of ``shiftcal reproduce``."""
    return (folder / "plan.toml").is_file()


@dataclass(frozen=True)
class ReportStudy:
    """A target of a study, as its first split has it.

    Attributes:
        folder: Of the run.
        target: Its name.
    """

    folder: Path
    target: str

    @classmethod
    def named(cls, said: Named, *, labels: Path | None, images: str | None) -> ReportStudy:
        """The target that a command names by its name in the study.

        Raises:
            InputError: If it names none, or what a study has itself.
        """
        from shiftcal.studies.task import task_of

        assert said.bank is not None
        told = {"--labels": labels, "--images": images, "--source-train": said.source_train}
        for name, value in told.items():
            if value is not None:
                raise InputError(
                    f"{name} is for scores in files, and {said.bank} is a study, which has its "
                    f"own. Leave {name} out."
                )
        if said.target is None:
            task_of(said.bank, None)  # which says what targets there are
        return cls(said.bank, str(said.target))

    def all(self) -> Iterator[Path]:
        """The plan and the index of scores."""
        yield from self._task.files

    def digests(self) -> dict[str, str]:
        """File to SHA-256; the index has the checksums of all scores."""
        from shiftcal.surrogates.folder import digest_of

        return {str(file): digest_of(file) for file in self._task.files}

    def options(self) -> list[str]:
        """The words of a command that name it."""
        return [str(self.folder), self.target]

    def usage(self, method: str, settings: Sequence[str], judging: Judging) -> str:
        """None: rows of a split have no files of their own."""
        return ""

    def read(self) -> ReportInputs:
        """The plan's surrogate sets, and the target's test rows."""
        task = self._task
        return ReportInputs(task.bank, task.target, task.source_features)

    @cached_property
    def _task(self) -> Task:
        from shiftcal.studies.task import task_of

        return task_of(self.folder, self.target)
