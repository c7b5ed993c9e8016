"""What every choice of the calibration corruption came to, on its own targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shiftcal.studies.catalog._pairs import ece_difference, paired
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, Results, mean_over_splits


@dataclass(frozen=True)
class Choice:
    """One calibration corruption.

    Attributes:
        name: Of the corruption.
        records: By variant and severity, all on the targets of this choice. Those of methods that
            use no surrogate sets are taken from their one evaluation.
    """

    name: str
    records: Mapping[tuple[str, int], Sequence[Record]]

    def of(self, variant: str, severities: Sequence[int]) -> list[Record]:
        """The records of a variant at these severities."""
        return [record for s in severities for record in self.records.get((variant, s), ())]

    def mean(self, variant: str, severities: Sequence[int]) -> Mean | None:
        """The mean ECE of a variant at these severities."""
        found = self.of(variant, severities)
        return mean_over_splits(found) if found else None

    def minus(self, variant: str, other: str, severities: Sequence[int]) -> Mean | None:
        """How much more ECE a variant has than another on the same targets of the same splits."""
        return paired(self.of(variant, severities), self.of(other, severities), ece_difference)

    def without_family(self, families: Mapping[str, str]) -> Choice:
        """The same without targets of the choice's own family, which are easier to calibrate for.

        A blur calibrated for with another blur is not the new kind of shift that is asked about.

        Args:
            families: By corruption.
        """
        own = families.get(self.name, "")
        kept = {
            place: [record for record in records if families.get(record.corruption) != own]
            for place, records in self.records.items()
        }
        return Choice(self.name, kept)


@dataclass(frozen=True)
class Spread:
    """A number over the choices.

    Attributes:
        mean: Over the choices.
        sd: Standard deviation, with one less than the choices below; ``None`` with one choice.
        n: How many choices.
    """

    mean: float
    sd: float | None
    n: int


def choices_of(results: Results) -> list[Choice]:
    """Every choice, in the order of the plan."""
    own: dict[str, list[Record]] = {}
    fixed: list[Record] = []
    for record in results.records:
        if record.setting:
            own.setdefault(record.setting, []).append(record)
        else:
            fixed.append(record)
    made = []
    for name, records in own.items():
        targets = {record.target for record in records}
        matching = [record for record in fixed if record.target in targets]
        made.append(Choice(name, _grouped([*records, *matching])))
    return made


def spread(choices: Sequence[Choice], variant: str, severities: Sequence[int]) -> Spread | None:
    """Mean and deviation over the choices of a variant's mean ECE at these severities."""
    means = [choice.mean(variant, severities) for choice in choices]
    values = [mean.value for mean in means if mean is not None]
    if not values:
        return None
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(float(np.mean(values)), sd, len(values))


def _grouped(records: Sequence[Record]) -> dict[tuple[str, int], list[Record]]:
    found: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record.severity is not None:
            found.setdefault((record.variant, record.severity), []).append(record)
    return found
