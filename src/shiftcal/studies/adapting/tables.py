"""Tables of a study of domain adaptation, in the layouts of the paper's Tables 3 and 4."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.adapting.paper import PUBLISHED, PublishedTable, paper_key
from shiftcal.studies.adapting.plan import TrainerPlan
from shiftcal.studies.adapting.results import AdaptationResults
from shiftcal.studies.adapting.showing import (
    AVERAGE,
    accuracy_cell,
    ece_cell,
    over_seeds,
    paper_name,
    paper_of,
    uncalibrated,
)
from shiftcal.studies.adapting.unlike_paper import unlike_paper
from shiftcal.studies.catalog.base import variant_key
from shiftcal.studies.paper import METHODS
from shiftcal.studies.record import Record
from shiftcal.studies.results import mean_over_splits

BY_TRAINER = "ECE by trainer"


def task_table(results: AdaptationResults, trainer: TrainerPlan) -> Table:
    """ECE of every method on every task, and the mean: the layout of the paper's Table 3.

    If the images are the paper's, its own rows stand below, the lowest marked as in ours.
    """
    pairs = results.pairs
    columns = [Column(pair.title, unit="%", lower_is_better=True) for pair in pairs]
    columns += [Column(AVERAGE, unit="%", lower_is_better=True)] if len(pairs) > 1 else []
    rows = []
    for key, label in results.variants.items():
        cells = [ece_cell(results.at(trainer.key, key, pair.name)) for pair in pairs]
        if len(pairs) > 1:
            cells.append(ece_cell(results.over_tasks([trainer.key], key)))
        rows.append(Row(label, tuple(cells), ranked=key != "oracle"))
    title, note = f"ECE with {trainer.label}", over_seeds(results.plan)
    table = Table(title, tuple(columns), tuple(rows), note=note, corner="Method")
    table = _marked(table)
    theirs = _paper_rows(results, trainer)
    if not theirs:
        return table
    beside = _marked(replace(table, rows=tuple(theirs)))
    below = [replace(row, ranked=False) for row in beside.rows]
    below[0] = replace(below[0], rule_before=True)
    said = "Below the line: the paper's own numbers, of one training each."
    whole = " ".join(filter(None, (note, said, unlike_paper(results.plan))))
    return replace(table, rows=(*table.rows, *below), note=whole)


def _paper_rows(results: AdaptationResults, trainer: TrainerPlan) -> list[Row]:
    paper, name = paper_of(results.plan), paper_name(trainer)
    if paper is None or name not in paper.trainers:
        return []
    rows = []
    for method, label in METHODS.items():
        told = [paper.ece.get((name, pair.title, method)) for pair in results.pairs]
        whole = len(results.pairs) == len(paper.tasks) and None not in told
        told += [paper.mean(name, method) if whole else None] if len(results.pairs) > 1 else []
        rows.append(Row(f"{label} (paper)", tuple(_published(value, paper) for value in told)))
    return rows


def _published(value: float | None, paper: PublishedTable) -> Cell:
    return Cell(value, source="" if value is None else paper.source)


def _marked(table: Table) -> Table:
    """With the lowest of each column marked; one alone is the lowest of nothing."""
    return table.marked() if sum(row.ranked for row in table.rows) > 1 else table


def trainer_table(results: AdaptationResults) -> Table:
    """Mean ECE over tasks of every method with every trainer: the layout of the paper's Table 4.

    If the images are the paper's, its own numbers stand beside.
    """
    adapting = [trainer.key for trainer in results.adapting]
    several, paper = len(adapting) > 1, paper_of(results.plan)
    columns = [Column(t.label, unit="%", lower_is_better=True) for t in results.trainers]
    columns += [Column("mean, adapted", unit="%", lower_is_better=True)] if several else []
    columns += [] if paper is None else _paper_columns(paper)
    rows = []
    for method in results.plan.methods:
        key = variant_key(method.name, method.settings)
        cells = [ece_cell(results.over_tasks([t.key], key)) for t in results.trainers]
        cells += [ece_cell(results.over_tasks(adapting, key))] if several else []
        cells += [] if paper is None else _paper_cells(paper, paper_key(method))
        rows.append(Row(method.label, tuple(cells), ranked=method.name != "oracle"))
    tasks = f"Means over {len(results.pairs)} tasks. " if len(results.pairs) > 1 else ""
    beside = (_ABOUT_PAPER, unlike_paper(results.plan)) if paper else ()
    note = " ".join(filter(None, (f"{tasks}{over_seeds(results.plan)}", *beside)))
    return _marked(Table(BY_TRAINER, tuple(columns), tuple(rows), note=note, corner="Method"))


def other_data_table() -> Table:
    """The paper's own numbers, for a study whose images are others."""
    papers = list(PUBLISHED.values())
    columns = [column for paper in papers for column in _paper_columns(paper)]
    rows = [
        Row(label, tuple(cell for paper in papers for cell in _paper_cells(paper, method)))
        for method, label in METHODS.items()
    ]
    note = f"None of these images are those of this study. {_ABOUT_PAPER}"
    title = "The paper's ECE, on other data"
    return Table(title, tuple(columns), tuple(rows), note=note, corner="Method").marked()


_ABOUT_PAPER = (
    "The paper's numbers are of one training each; it does not say which reading of CPCS and "
    "TransCal it used."
)


def _paper_columns(paper: PublishedTable) -> list[Column]:
    average = f" {AVERAGE}" if len(paper.tasks) > 1 else ""
    group = f"paper, {paper.data}"
    return [
        Column(f"{trainer.upper()}{average}", unit="%", group=group, lower_is_better=True)
        for trainer in paper.trainers
    ]


def _paper_cells(paper: PublishedTable, method: str | None) -> list[Cell]:
    means = [None if method is None else paper.mean(t, method) for t in paper.trainers]
    return [_published(mean, paper) for mean in means]


def accuracy_table(results: AdaptationResults) -> Table:
    """Accuracy on the held-out target of every trainer on every task, and the mean."""
    pairs, key = results.pairs, uncalibrated(results)
    columns = [Column(pair.title, unit="%", digits=1, lower_is_better=False) for pair in pairs]
    average = Column(AVERAGE, unit="%", digits=1, lower_is_better=False)
    columns += [average] if len(pairs) > 1 else []
    rows = []
    for trainer in results.trainers:
        cells = [accuracy_cell(results.at(trainer.key, key, pair.name)) for pair in pairs]
        if len(pairs) > 1:
            cells.append(accuracy_cell(results.over_tasks([trainer.key], key)))
        rows.append(Row(trainer.label, tuple(cells)))
    title, note = "Accuracy on the target", over_seeds(results.plan)
    return _marked(Table(title, tuple(columns), tuple(rows), note=note, corner="Trainer"))


def temperature_table(results: AdaptationResults) -> Table:
    """The temperature of every method with every trainer, a geometric mean over tasks."""
    rows = []
    for key, label in results.variants.items():
        own = [results.over_tasks([trainer.key], key) for trainer in results.trainers]
        if any(record.temperature for each in own for record in each if record.method != "vanilla"):
            rows.append(Row(label, tuple(map(_temperature, own)), ranked=False))
    return Table(
        "Temperature",
        tuple(Column(trainer.label) for trainer in results.trainers),
        tuple(rows),
        note=f"Geometric means over tasks and seeds. {over_seeds(results.plan)}",
        corner="Method",
    )


def _temperature(records: list[Record]) -> Cell:
    known = [record for record in records if record.temperature]
    if not known:
        return Cell(None)
    mean = mean_over_splits(known, lambda record: log(record.temperature or 1.0), least=None)
    ends = (None if end is None else exp(end) for end in (mean.low, mean.high))
    return Cell(exp(mean.value), *ends)
