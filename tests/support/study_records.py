"""Records and results of a study made by hand."""

from __future__ import annotations

from typing import Any

from shiftcal.studies.domain_adaptation import AdaptationFacts
from shiftcal.studies.plan import (
    AdaptationPlan,
    DataPlan,
    DomainPlan,
    ModelPlan,
    NamedPlan,
    NetworkPlan,
    Plan,
)
from shiftcal.studies.records import Record

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
        "methods": tuple(NamedPlan(name, label) for name, label in LABELS.items()),
    }
    return Plan(**{**defaults, **changes})


DOMAINS = ("art", "clipart", "product")
TRAINERS = {"source-only": "source only", "dan": "DAN", "cdan": "CDAN"}


def adaptation_plan(**changes: Any) -> AdaptationPlan:
    """Three domains with the shorts A, C, P; the tasks A2C and A2P; the methods of LABELS."""
    defaults: dict[str, Any] = {
        "domains": tuple(DomainPlan(x, x[0].upper(), x, ((x,),)) for x in DOMAINS),
        "tasks": (("art", "clipart"), ("art", "product")),
        "trainers": tuple(NamedPlan(name, label) for name, label in TRAINERS.items()),
        "network": NetworkPlan(("net",), True),
        "methods": tuple(NamedPlan(name, label) for name, label in LABELS.items()),
        "seeds": (0, 1),
    }
    return AdaptationPlan(**{**defaults, **changes})


def evaluated(**changes: Any):
    """A record of one network: ``trainer``, ``task``, ``seed``, ``method`` and any other field."""
    task = changes.pop("task", "art_to_clipart")
    named = {
        "panel": changes.pop("trainer", "cdan"),
        "split": changes.pop("seed", 0),
        "variant": changes.pop("method", "sac"),
        "corruption": task,
        "severity": None,
        "n": 40,
    }
    return record(**named, **changes)


def everywhere(the_plan: AdaptationPlan, **numbers: Any):
    """A record of every method on every network; ``ece(trainer, task, seed, method)`` and so on."""
    made = []
    for seed in the_plan.seeds:
        for pair in the_plan.pairs:
            for trainer in the_plan.trainers:
                for method in the_plan.methods:
                    told = (trainer.key, pair.name, seed, method.name)
                    own = {name: value(*told) for name, value in numbers.items()}
                    made.append(
                        evaluated(
                            trainer=trainer.key,
                            task=pair.name,
                            seed=seed,
                            method=method.name,
                            **own,
                        )
                    )
    return made


def facts(**changes: Any) -> AdaptationFacts:
    """A network that is 95 % sure, and right on 90 % of the source and 60 % of the target."""
    defaults: dict[str, Any] = {
        "task": "art_to_clipart",
        "trainer": "cdan",
        "seed": 0,
        "n_calibration": 20,
        "source_accuracy": 0.9,
        "source_confidence": 0.95,
        "n_target": 40,
        "target_accuracy": 0.6,
        "target_confidence": 0.95,
    }
    return AdaptationFacts(**{**defaults, **changes})
