"""What is to be evaluated: every variant on every target in every split, each known by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from shiftcal import methods
from shiftcal.studies.archive import Archive, Entry
from shiftcal.studies.plan.methods import ORACLE
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.stages.draws import seed_of
from shiftcal.studies.stages.outcome import Outcome
from shiftcal.studies.variant import Target, Variant

# Which way of evaluating the outcomes on disk are of. Raise it with every change after which the
# same scores and settings give another outcome, be it in the last digit: of a method, a map, a
# metric, a split or a draw. What was kept before is then evaluated again.
FORMAT = 2


@dataclass(frozen=True)
class Cell:
    """One evaluation that is wanted.

    Attributes:
        variant: What.
        target: On which target.
        split: Seed of the split.
        draw: Which draw of the method's own.
        seed: Of that draw, if there are several.
        key: Digest of everything that decides the outcome.
    """

    variant: Variant
    target: Target
    split: int
    draw: int
    seed: int | None
    key: str

    def record(self, outcome: Outcome, arrays: str) -> Record:
        """The row of ``records.csv``."""
        variant, target = self.variant, self.target
        return Record(
            panel=variant.panel,
            setting=variant.setting,
            variant=variant.key,
            label=variant.label,
            method=variant.method,
            calibration=variant.ladder.corruption,
            split=self.split,
            draw=self.draw,
            target=target.name,
            corruption=target.corruption,
            severity=target.severity,
            **vars(outcome),
            arrays=arrays,
            key=self.key,
        )


def cells_of(plan: Plan, variants: Sequence[Variant], archive: Archive) -> Iterator[Cell]:
    """All of them, split by split, variant by variant."""
    for split in plan.seeds:
        for variant in variants:
            told = _told(plan, variant, archive)
            for target in variant.targets:
                own = [split, *_scores(archive.entries[target.name]), target.natural]
                for draw in range(variant.draws):
                    seed = seed_of(variant, draw, split, target)
                    text = json.dumps([*told, *own, draw, seed], sort_keys=True, default=repr)
                    key = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
                    yield Cell(variant, target, split, draw, seed, key)


def _told(plan: Plan, variant: Variant, archive: Archive) -> list[object]:
    """What decides an outcome, beside split, target and draw.

    Methods that learn from the clean set alone do not depend on the others, and those that look at
    no features not on the training images.
    """
    method = None if variant.method == ORACLE else methods.get(variant.method)
    sets = variant.ladder.sets if method is not None and method.uses_bank else ("clean",)
    train = archive.train if method is not None and method.uses_features else None
    return [
        version("shiftcal"),
        FORMAT,
        variant.method,
        dict(variant.settings),
        [_scores(archive.entries[name]) for name in sets],
        variant.ladder.images,
        plan.calibration.images,
        plan.bins,
        None if train is None else _scores(train),
    ]


def _scores(entry: Entry) -> tuple[str, str]:
    """By what scores are known: what made them, and the file, which may be another's."""
    return entry.key, entry.sha256
