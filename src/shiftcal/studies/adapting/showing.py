"""Cells, headers and notes that the tables of a study of domain adaptation share."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal.report.tables.table import Cell
from shiftcal.studies.adapting.paper import PUBLISHED, PublishedTable
from shiftcal.studies.adapting.plan import AdaptationPlan, TrainerPlan
from shiftcal.studies.adapting.results import AdaptationResults
from shiftcal.studies.record import Record
from shiftcal.studies.results import mean_over_splits
from shiftcal.studies.showing import percent

AVERAGE = "Avg"
_OVER_SEEDS = (
    "Intervals: 95 %, over the seeds; each has a split of source and target and a training of its "
    "own. Seeds share images, so that they are somewhat narrow."
)
_ONE_SEED = "One seed: one split of source and target and one training each, and so no intervals."


def over_seeds(plan: AdaptationPlan) -> str:
    """What is to be said of the intervals."""
    return _OVER_SEEDS if len(plan.seeds) > 1 else _ONE_SEED


def ece_cell(records: Sequence[Record]) -> Cell:
    """The mean ECE of some records of one method, in percent."""
    return percent(mean_over_splits(records)) if records else Cell(None)


def accuracy_cell(records: Sequence[Record]) -> Cell:
    """The mean accuracy of the same networks, in percent."""
    if not records:
        return Cell(None)
    return percent(mean_over_splits(records, lambda record: record.accuracy))


def uncalibrated(results: AdaptationResults) -> str:
    """The method whose records tell of the networks themselves: the first that is not an oracle.

    One temperature changes no prediction; a method that may is not looked at, if there is another.
    """
    by_name = {record.variant: record.method for record in results.records}
    for wanted in ("vanilla", "ts", "sts", "sac"):
        for key in results.variants:
            if by_name.get(key) == wanted:
                return key
    return next(iter(results.variants))


def paper_of(plan: AdaptationPlan) -> PublishedTable | None:
    """The paper's table of the same images."""
    return None if plan.paper is None else PUBLISHED[plan.paper]


def paper_name(trainer: TrainerPlan) -> str | None:
    """Which trainer of the paper's tables it is; with settings of its own it is none."""
    return None if trainer.settings else trainer.name
