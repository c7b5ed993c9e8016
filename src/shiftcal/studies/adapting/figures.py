"""Figures of a study of domain adaptation."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.report.tables.table import Cell
from shiftcal.studies.adapting.results import AdaptationResults
from shiftcal.studies.adapting.showing import (
    AVERAGE,
    accuracy_cell,
    ece_cell,
    over_seeds,
    uncalibrated,
)
from shiftcal.studies.adapting.tables import BY_TRAINER
from shiftcal.studies.showing import ECE


def trainer_lines(results: AdaptationResults) -> Lines:
    """Mean ECE over tasks of every method, trainer by trainer."""
    trainers = results.trainers
    series = [
        _series(key, label, [ece_cell(results.over_tasks([t.key], key)) for t in trainers])
        for key, label in results.variants.items()
    ]
    names = tuple(trainer.label for trainer in trainers)
    panel = Panel(x=names, series=tuple(series), x_label="Trainer")
    note = over_seeds(results.plan)
    return Lines(panels=(panel,), y_label=f"mean {ECE}", title=BY_TRAINER, note=note)


def accuracy_lines(results: AdaptationResults) -> Lines:
    """Accuracy on the held-out target of every trainer, task by task."""
    pairs, key = results.pairs, uncalibrated(results)
    names = [pair.title for pair in pairs] + ([AVERAGE] if len(pairs) > 1 else [])
    series = []
    for trainer in results.trainers:
        cells = [accuracy_cell(results.at(trainer.key, key, pair.name)) for pair in pairs]
        if len(pairs) > 1:
            cells.append(accuracy_cell(results.over_tasks([trainer.key], key)))
        series.append(_series(f"trainer-{trainer.key}", trainer.label, cells))
    panel = Panel(x=tuple(names), series=tuple(series), x_label="Task")
    return Lines(
        panels=(panel,),
        y_label="accuracy (%)",
        title="Accuracy on the target",
        note=over_seeds(results.plan),
    )


def _series(key: str, label: str, cells: Sequence[Cell]) -> Series:
    y, low, high = (
        tuple(getattr(cell, part) for cell in cells) for part in ("number", "low", "high")
    )
    ends = {} if all(end is None for end in low) else {"low": low, "high": high}
    return Series(key=key, label=label, y=y, **ends)
