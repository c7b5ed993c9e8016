"""The files that a report is made of."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.cli._inputs import NEEDS_MIXED, read_bank, read_target
from shiftcal.cli._settings import choose_settings, settings_of
from shiftcal.errors import FileError, InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal.methods import Method
    from shiftcal.report.html import Judging, Provenance, ReportFacts
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

    def usage(self, method: str, settings: Sequence[str], judging: Judging) -> str:
        """Commands that calibrate the target with the method."""
        fit = ["shiftcal", "fit", "--method", method]
        for text in (*settings, *_implied(method, settings, judging)):
            fit += ["--set", text]
        if self.bank is not None:
            fit += ["--bank", str(self.bank)]
        for file in self.surrogates:
            fit += ["--surrogate", str(file)]
        if self.source_train is not None:
            fit += ["--source-train", str(self.source_train)]
        apply = ["shiftcal", "apply", "calibration.json", str(self.target), "-o", "calibrated.npz"]
        return f"{shlex.join([*fit, '-o', 'calibration.json'])}\n{shlex.join(apply)}"

    def check(self, method: str, settings: Sequence[str], judging: Judging) -> None:
        """Refuse what cannot be meant, before files are read.

        Raises:
            InputError: Naming the option.
        """
        from shiftcal._checks import check_fraction
        from shiftcal.report.html.parts import MOST_BINS

        _method(method, settings, judging)
        check_fraction(judging.level, name="--level")
        if judging.n_resamples == 1:
            raise InputError("--resamples must be 0 (no intervals) or at least 2; got 1.")
        if judging.n_bins > MOST_BINS:
            raise InputError(
                f"--bins must be at most {MOST_BINS}, since each is a point to be seen; got "
                f"{judging.n_bins}."
            )

    def make(
        self,
        *,
        method: str,
        settings: Sequence[str],
        title: str,
        judging: Judging,
        provenance: Provenance,
    ) -> ReportFacts:
        """All that the page says, of files that are read and checked before it is computed."""
        from shiftcal.report.html import make_facts
        from shiftcal.scores import read_features
        from shiftcal.scores._origin import model_digest_of_file

        chosen = _method(method, settings, judging)
        sets = read_bank(self.bank, self.surrogates)
        scores = self._scores(sets)
        scores.logits()  # a target that cannot be used is an error, not a reason to skip a method
        facts = make_facts(
            sets,
            scores,
            method=chosen,
            images=self.images,
            source_features=None if self.source_train is None else read_features(self.source_train),
            target_model=model_digest_of_file(self.target),
            title=title,
            judging=judging,
            provenance=provenance,
        )
        for note in facts.warnings:
            if note.code == "another-model":
                warnings.warn(f"{self.target}: {note.messages[0]}", InputWarning, stacklevel=2)
        return facts

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


def _implied(name: str, settings: Sequence[str], judging: Judging) -> list[str]:
    """Settings of the method that options of the report decide, where they are not the default."""
    from shiftcal import methods

    known = settings_of(methods.get(name))
    given = {text.partition("=")[0] for text in settings}
    told = {"seed": judging.seed, "level": judging.level}
    return [
        f"{setting}={value}"
        for setting, value in told.items()
        if setting in known and setting not in given and value != known[setting]
    ]


def _method(name: str, settings: Sequence[str], judging: Judging) -> Method:
    from shiftcal import methods

    cls = methods.get(name)
    if cls.uses_mixed:
        raise InputError(f"{cls.name()} {NEEDS_MIXED}")
    assigned = [*settings, *_implied(name, settings, judging)]
    made: Method = cls(**choose_settings(cls, {}, assigned))
    return made
