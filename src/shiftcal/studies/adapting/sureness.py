"""How sure adapted networks are, on the source and on the target, and what SAC makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shiftcal.numerics.intervals import mean_interval
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.adapting.results import AdaptationResults, Facts
from shiftcal.studies.adapting.showing import over_seeds
from shiftcal.studies.record import Record
from shiftcal.studies.variant import CLEAN

# From where on a network is called over-confident on the target: so much more than on the source.
_MARGIN = 0.05
_COLUMNS = {
    "accuracy": ("source_accuracy", "target_accuracy"),
    "confidence": ("source_confidence", "target_confidence"),
}


def sureness_table(results: AdaptationResults) -> Table:
    """Accuracy and confidence of every trainer's networks, on calibration images and target."""
    choosing = _choosing(results)
    columns = [
        Column(name, unit="%", digits=1, group=group)
        for group in ("source, not trained on", "target, held out")
        for name in _COLUMNS
    ]
    columns += [Column("clean set chosen", unit="%", digits=1, group=x) for x in choosing.values()]
    rows = []
    for trainer in results.trainers:
        own = [facts for facts in results.facts if facts.trainer == trainer.key]
        cells = [_mean(own, names[side]) for side in (0, 1) for names in _COLUMNS.values()]
        for key in choosing:
            chose = [r for r in results.records if (r.panel, r.variant) == (trainer.key, key)]
            share = [100 * (r.chosen == CLEAN) for r in chose]
            cells.append(Cell(float(np.mean(share))) if share else Cell(None))
        rows.append(Row(trainer.label, tuple(cells), ranked=False))
    note = (
        f"Means over tasks. {over_seeds(results.plan)} Where the clean set is chosen, SAC divides "
        "by the temperature of TS."
    )
    return Table("How sure the networks are", tuple(columns), tuple(rows), note=note, corner="")


def _mean(facts: Sequence[Facts], name: str) -> Cell:
    if not facts:
        return Cell(None)
    by_seed: dict[int, list[float]] = {}
    for each in facts:
        by_seed.setdefault(each.seed, []).append(100 * getattr(each, name))
    value, low, high = mean_interval([float(np.mean(own)) for own in by_seed.values()])
    ends = (None, None) if low is None or high is None else (max(0.0, low), min(100.0, high))
    return Cell(value, *ends)


def _choosing(results: AdaptationResults) -> dict[str, str]:
    there = {record.variant for record in results.records if record.chosen}
    return {key: label for key, label in results.variants.items() if key in there}


def blindness(results: AdaptationResults) -> list[str]:
    """Whether SAC sees where adapted networks are over-confident on the target.

    SAC compares mean confidences. A network that was adapted may be as sure on the target as on
    the source while it is right less often; SAC then chooses the clean set and equals TS.
    """
    sac = [r for r in results.records if r.method == "sac" and r.variant == "sac" and r.chosen]
    adapted = {trainer.key for trainer in results.adapting}
    own = [record for record in sac if record.panel in adapted]
    if not own:
        return []
    told = [_chose_clean(own, "with adapted networks")]
    others = [record for record in sac if record.panel not in adapted]
    told += [_chose_clean(others, "without adaptation")] if others else []
    found = [f"SAC chose the clean set, and so has the ECE of TS, {'; '.join(told)}."]
    facts = {(f.task, f.trainer, f.seed): f for f in results.facts}
    sure = [
        (record, facts[which])
        for record in own
        if (which := (record.target, record.panel, record.split)) in facts
        and facts[which].overconfidence > _MARGIN
    ]
    if not sure:
        return [
            *found,
            f"No adapted network is too sure on the target by {100 * _MARGIN:.0f} points more than "
            "on the source: whether SAC would see it cannot be told here.",
        ]
    blind = [record for record, _ in sure if record.chosen == CLEAN]
    means = [100 * float(np.mean([getattr(f, name) for _, f in sure])) for name in _SAID]
    share = len(blind) / len(sure)
    held = "holds" if share >= 0.5 else "holds partly" if blind else "does not hold"
    return [
        *found,
        f"The paper's numbers suggest that SAC is blind to over-confident adaptation; that {held} "
        f"here. It chose the clean set for {len(blind):,} of the adapted networks that are too "
        f"sure on the target by {100 * _MARGIN:.0f} points more than on the source, {len(sure):,} "
        f"of {len(own):,}. These are right on {means[0]:.1f} % of the source with a mean "
        f"confidence of {means[1]:.1f} %, and on {means[2]:.1f} % of the target with "
        f"{means[3]:.1f} %.",
    ]


_SAID = ("source_accuracy", "source_confidence", "target_accuracy", "target_confidence")


def _chose_clean(records: Sequence[Record], where: str) -> str:
    clean = sum(record.chosen == CLEAN for record in records)
    return f"{where} in {clean:,} of {len(records):,} evaluations"
