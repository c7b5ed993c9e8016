"""Tables, figures and remarks of a study of domain adaptation."""

from __future__ import annotations

from shiftcal.studies.adapting.figures import accuracy_lines, trainer_lines
from shiftcal.studies.adapting.remarks import remarks
from shiftcal.studies.adapting.results import AdaptationResults
from shiftcal.studies.adapting.sureness import sureness_table
from shiftcal.studies.adapting.tables import (
    accuracy_table,
    other_data_table,
    task_table,
    temperature_table,
    trainer_table,
)
from shiftcal.studies.adapting.trainings_table import TRAININGS, trainings_to_csv
from shiftcal.studies.catalog.base import Findings

TITLE = "Domain adaptation"


def findings_of(results: AdaptationResults) -> Findings:
    """What is shown of a run."""
    if not results.records:
        return Findings({}, {}, (*remarks(results), "No network was trained to its end."))
    tables = {"ece-by-trainer": trainer_table(results), "accuracy": accuracy_table(results)}
    if results.plan.paper is None:
        tables["paper"] = other_data_table()
    tables |= {f"ece-{trainer.key}": task_table(results, trainer) for trainer in results.trainers}
    tables["temperatures"] = temperature_table(results)
    if results.facts:
        tables["sureness"] = sureness_table(results)
    trainings = trainings_to_csv(results.facts, results.failures)
    figures = {"ece-by-trainer": trainer_lines(results), "accuracy": accuracy_lines(results)}
    return Findings(tables, figures, remarks(results), {TRAININGS: trainings})
