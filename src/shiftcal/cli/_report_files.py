"""The files that a report is made of."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.cli._inputs import read_bank, read_target
from shiftcal.cli._named import Named
from shiftcal.cli._report_making import ReportInputs, implied
from shiftcal.errors import FileError

if TYPE_CHECKING:
    from shiftcal.report.html import Judging
    from shiftcal.scores import Scores
    from shiftcal.surrogates import SurrogateBank


@dataclass(frozen=True)
class ReportFiles:
    """What is read for a report; what is not given is ``None``."""

    target: Path
    bank: Path | None
    surrogates: tuple[Path, ...]
    labels: Path | None
    source_train: Path | None
    images: str | None

    @classmethod
    def named(cls, said: Named, *, labels: Path | None, images: str | None) -> ReportFiles:
        """Those that a command names."""
        target = said.must_have_target()
        surrogates = tuple(said.surrogates or ())
        return cls(target, said.bank, surrogates, labels, said.source_train, images)

    def all(self) -> Iterator[Path]:
        """Every file, those of a bank's folder among them, and the images if they are one."""
        if self.bank is not None:
            yield from self.bank.iterdir() if self.bank.is_dir() else [self.bank]
        yield from self._single()
        if self.images is not None:
            yield Path(self.images)

    def digests(self) -> dict[str, str]:
        """File to SHA-256; a bank's folder by ``bank.json``, which has those of its sets."""
        from shiftcal.surrogates.folder import digest_of

        bank = [] if self.bank is None else [self.bank / "bank.json"]
        found = {}
        for file in (*bank, *self._single()):
            try:
                found[str(file)] = digest_of(file)
            except OSError as error:
                raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
        return found

    def options(self) -> list[str]:
        """The words of a command that name them."""
        words = ["--target", str(self.target)]
        words += [] if self.bank is None else ["--bank", str(self.bank)]
        for file in self.surrogates:
            words += ["--surrogate", str(file)]
        told = {
            "--labels": self.labels,
            "--images": self.images,
            "--source-train": self.source_train,
        }
        for name, value in told.items():
            words += [] if value is None else [name, str(value)]
        return words

    def usage(self, method: str, settings: Sequence[str], judging: Judging) -> str:
        """Commands that calibrate the target with the method."""
        fit = ["shiftcal", "fit", "--method", method]
        for text in (*settings, *implied(method, settings, judging)):
            fit += ["--set", text]
        if self.bank is not None:
            fit += ["--bank", str(self.bank)]
        for file in self.surrogates:
            fit += ["--surrogate", str(file)]
        if self.source_train is not None:
            fit += ["--source-train", str(self.source_train)]
        apply = ["shiftcal", "apply", "calibration.json", str(self.target), "-o", "calibrated.npz"]
        return f"{shlex.join([*fit, '-o', 'calibration.json'])}\n{shlex.join(apply)}"

    def read(self) -> ReportInputs:
        """What the files hold, checked."""
        from shiftcal.scores import read_features
        from shiftcal.scores._origin import model_digest_of_file

        sets = read_bank(self.bank, self.surrogates)
        source = None if self.source_train is None else read_features(self.source_train)
        model = model_digest_of_file(self.target)
        return ReportInputs(sets, self._scores(sets), source, self.images, model)

    def _single(self) -> Iterator[Path]:
        yield from self.surrogates
        for file in (self.target, self.labels, self.source_train):
            if file is not None:
                yield file

    def _scores(self, sets: SurrogateBank) -> Scores:
        scores = read_target(self.target, n_classes=sets.n_classes, classes=sets.classes)
        if self.labels is None:
            return scores
        from shiftcal.scores import read_labels

        return replace(scores, labels=read_labels(self.labels, scores))
