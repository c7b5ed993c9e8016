"""Reports and calibrated models in MLflow; what is stored is JSON and .skops, never a pickle."""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal.errors import InputError, require
from shiftcal.export.sklearn import CalibratedClassifier
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.models.sklearn import read_skops
from shiftcal.persistence import load
from shiftcal.report.facts import ReportFacts
from shiftcal.report.render import write_report

__all__ = ["log_model", "log_report"]
_CALIBRATION, _CLASSIFIER, _SETTINGS = "calibration.json", "classifier.skops", "settings.json"


def log_report(facts: ReportFacts, *, folder: str = "shiftcal", step: int | None = None) -> None:
    """Log a report to the active run: the page, its JSON, and its numbers as metrics.

    The metrics are ``shiftcal_mean_confidence``, ``shiftcal_estimated_accuracy``, for every method
    ``shiftcal_<method>_mean_confidence``, and with labels ``shiftcal_accuracy`` and
    ``shiftcal_<method>_ece``.

    Args:
        facts: What :func:`shiftcal.report.facts.make_facts` found.
        folder: For the artifacts ``report.html`` and ``report.json``.
        step: Of the metrics.
    """
    mlflow = _mlflow("log_report")
    target = facts.target
    metrics = {
        "mean_confidence": target.mean_confidence,
        "estimated_accuracy": facts.estimate.value,
    }
    if target.accuracy is not None:
        metrics["accuracy"] = target.accuracy.value
    for method in facts.methods:
        metrics[f"{method.name}_mean_confidence"] = method.mean_confidence
        if method.ece is not None:
            metrics[f"{method.name}_ece"] = method.ece.value
    mlflow.log_metrics({f"shiftcal_{name}": x for name, x in metrics.items()}, step=step)
    mlflow.set_tag("shiftcal_verdict", facts.verdict.headline)
    with tempfile.TemporaryDirectory() as made:
        for suffix in (".html", ".json"):
            write_report(facts, Path(made, f"report{suffix}"))
        mlflow.log_artifacts(made, artifact_path=folder)


def log_model(model: object, name: str = "model", **options: Any) -> Any:
    """Log a calibrated model as ``pyfunc``: ``mlflow.pyfunc.load_model(...).predict(X)``.

    ``predict`` gives calibrated probabilities ``(n, k)``, of rows for a classifier and of logits
    (or probabilities, if it was made with that ``input``) for a method or map.

    Args:
        model: A fitted :class:`~shiftcal.export.CalibratedClassifier`, which needs the extra
            ``skops``; or a fitted method or map, adapted if it adapts.
        name: Of the model in MLflow.
        **options: As for ``mlflow.pyfunc.log_model``, such as ``registered_model_name`` and
            ``signature``.

    Returns:
        MLflow's ``ModelInfo``; its ``model_uri`` loads the model.
    """
    mlflow = _mlflow("log_model")
    plain = isinstance(model, Method | Map)
    if not plain and not isinstance(model, CalibratedClassifier):
        raise InputError(
            "model must be a CalibratedClassifier, a method or a map, each fitted; got "
            f"{type(model).__name__}."
        )
    with tempfile.TemporaryDirectory() as made:
        calibration: Any = model
        if isinstance(model, CalibratedClassifier):
            skops = require("skops.io", extra="skops", needed_by="log_model of a classifier")
            classifier, calibration = model._ready()
            skops.dump(classifier, Path(made, _CLASSIFIER))
            read_skops(Path(made, _CLASSIFIER))  # whether it can be loaded is found out now
            settings = {"scores": model.scores, "adapt_to": model.adapt_to}
            Path(made, _SETTINGS).write_text(json.dumps(settings), "utf-8")
        calibration.save(Path(made, _CALIBRATION))
        needed = f"shiftcal{'' if plain else '[skops]'}=={version('shiftcal')}"
        options = {"pip_requirements": [needed], **options}
        return mlflow.pyfunc.log_model(name=name, loader_module=__name__, data_path=made, **options)


class _Loaded:
    """What MLflow calls; ``predict`` gives calibrated probabilities."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, rows: Any, params: Any = None) -> Any:
        if isinstance(self.model, Method | Map):
            rows = rows.to_numpy() if hasattr(rows, "to_numpy") else rows
        return self.model.predict_proba(rows)


def _load_pyfunc(path: str) -> _Loaded:
    """The name MLflow looks for in a loader module."""
    calibration: Any = load(Path(path, _CALIBRATION))
    if not (classifier := Path(path, _CLASSIFIER)).exists():
        return _Loaded(calibration)
    settings = json.loads(Path(path, _SETTINGS).read_text("utf-8"))
    return _Loaded(CalibratedClassifier(read_skops(classifier)[0], calibration, **settings))


def _mlflow(function: str) -> Any:
    require("mlflow.pyfunc", extra="mlflow", needed_by=f"shiftcal.integrations.mlflow.{function}")
    return require("mlflow", extra="mlflow", needed_by=function)
