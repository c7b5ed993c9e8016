"""Records and results of a study made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shiftcal.studies.plan import DataPlan, MethodPlan, ModelPlan, Plan
from shiftcal.studies.records import Record, Results
from shiftcal.studies.sources import Archive

LABELS = {
    "vanilla": "Vanilla",
    "ts": "TS",
    "cpcs": "CPCS",
    "transcal": "TransCal",
    "sts": "STS",
    "sac": "SAC",
    "oracle": "Oracle",
}


def record(**changes: Any) -> Record:
    """A record with every field filled; the label follows the variant, the target its shift.

    ``record(corruption="fog", severity=3)`` is of the target ``fog-3``, ``severity=0`` of the clean
    set, and ``corruption="sketch", severity=None`` of the natural set ``sketch``.
    """
    corruption, severity = changes.get("corruption", "fog"), changes.get("severity", 1)
    if severity == 0:
        corruption = changes.get("corruption", "none")
    target = {0: "clean", None: corruption}.get(severity, f"{corruption}-{severity}")
    variant = changes.get("variant", "sac")
    method = variant.split("-")[0]
    defaults = {
        "panel": "",
        "setting": "",
        "variant": variant,
        "label": LABELS.get(variant, variant),
        "method": method,
        "calibration": "pixelate",
        "n_sets": 6,
        "n_calibration": 5000,
        "split": 0,
        "draw": 0,
        "target": target,
        "corruption": corruption,
        "severity": severity,
        "n": 5000,
        "ece": 0.05,
        "debiased_ece": 0.045,
        "nll": 0.6,
        "brier": 0.3,
        "accuracy": 0.8,
        "confidence": 0.82,
        "raw_confidence": 0.9,
        "temperature": 2.0,
        "chosen": "pixelate-1" if method == "sac" else "",
        "flags": "",
        "arrays": f"scores/{target}.npz",
        "key": "0" * 64,
    }
    return Record(**{**defaults, **changes})


def plan(**changes: Any) -> Plan:
    """A plan of the study ``synthetic`` whose data are nowhere; the methods are those of LABELS."""
    defaults: dict[str, Any] = {
        "study": "synthetic",
        "model": ModelPlan(("cifar-resnet:20",)),
        "data": DataPlan(("nowhere",)),
        "methods": tuple(MethodPlan(name, label) for name, label in LABELS.items()),
    }
    return Plan(**{**defaults, **changes})


def results(records: Iterable[Record], **changes: Any) -> Results:
    """Results of these records, with no stored scores; changes are those of the plan."""
    return Results(plan(**changes), tuple(records), Archive(Path("nowhere"), {}))
