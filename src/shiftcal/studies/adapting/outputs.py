"""What a trained network left for calibration, as methods and metrics take it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shiftcal._types import Floats
from shiftcal.adaptation import Adapted
from shiftcal.adaptation.mode import BANK, SOURCE_TRAIN, TARGET
from shiftcal.errors import FileError, InputError
from shiftcal.numerics.softmax import p_max
from shiftcal.studies.adapting.results import Facts
from shiftcal.studies.adapting.trainings import Training
from shiftcal.studies.again import repair
from shiftcal.studies.archive import Stored
from shiftcal.studies.variant import set_name
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.surrogates.folder import digest_of


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a trained network left.

    Attributes:
        adapted: The network in its folder.
        bank: The surrogate sets of the calibration images, called as in records.
        target: The held-out target images, with labels.
    """

    adapted: Adapted
    bank: SurrogateBank
    target: Stored

    @classmethod
    def open(cls, run: Path, training: Training) -> Outputs:
        """Those of a training.

        Raises:
            FileError: If they are not there, or damaged.
        """
        try:
            adapted = Adapted.open(run / training.place)
            scores = adapted.target
            target = Stored(scores.logits(), scores.labels, scores.features)
            bank = SurrogateBank([_named(each) for each in adapted.bank])
        except (FileError, InputError) as error:
            raise FileError(f"{error} Have it made again: {repair(run)}") from error
        if target.labels is None:
            raise FileError(
                f"{run / training.place / TARGET} has no labels, and nothing can be judged without."
            )
        return cls(adapted, bank, target)

    def train_features(self) -> Floats:
        """Features of the source images that it was trained on, ``(m, d)``."""
        return self.adapted.source_features

    def facts(self, training: Training) -> Facts:
        """The network in numbers."""
        clean, target = self.bank.clean, self.target
        return Facts(
            task=training.pair.name,
            trainer=training.trainer.key,
            seed=training.seed,
            n_calibration=len(clean),
            source_accuracy=float((clean.logits.argmax(axis=1) == clean.labels).mean()),
            source_confidence=float(p_max(clean.logits).mean()),
            n_target=len(target.logits),
            target_accuracy=float((target.logits.argmax(axis=1) == target.labels).mean()),
            target_confidence=float(p_max(target.logits).mean()),
        )


def _named(given: SurrogateSet) -> SurrogateSet:
    name = set_name(given.corruption or "", given.severity or 0)
    told = (given.corruption, given.severity, given.features)
    return SurrogateSet(given.logits, given.labels, name, *told)


def digests_of(run: Path, training: Training) -> tuple[str, str, str]:
    """By what outputs are known: the bank, which names its files' checksums, source and target.

    Raises:
        FileError: If a file cannot be read.
    """
    folder = run / training.place
    try:
        bank, train, target = (
            digest_of(folder / name) for name in (f"{BANK}/bank.json", SOURCE_TRAIN, TARGET)
        )
    except OSError as error:
        raise FileError(
            f"{folder} lacks something of what the study stored there: {error.filename} could not "
            f"be read ({error.strerror or error}). Remove the folder and have it made again: "
            f"{repair(run)}"
        ) from error
    return bank, train, target
