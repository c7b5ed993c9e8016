"""Records and results of a study of domain adaptation made by hand."""

from __future__ import annotations

from typing import Any

from study_records import LABELS, record

from shiftcal.studies.domain_adaptation import Facts
from shiftcal.studies.plan import AdaptationPlan, DomainPlan, MethodPlan, NetworkPlan, TrainerPlan

DOMAINS = ("art", "clipart", "product")
TRAINERS = {"source-only": "source only", "dan": "DAN", "cdan": "CDAN"}


def plan(**changes: Any) -> AdaptationPlan:
    """Three domains with the shorts A, C, P; the tasks A2C and A2P; the methods of LABELS."""
    defaults: dict[str, Any] = {
        "domains": tuple(DomainPlan(x, x[0].upper(), x, ((x,),)) for x in DOMAINS),
        "tasks": (("art", "clipart"), ("art", "product")),
        "trainers": tuple(TrainerPlan(name, label) for name, label in TRAINERS.items()),
        "network": NetworkPlan(("net",), True),
        "methods": tuple(MethodPlan(name, label) for name, label in LABELS.items()),
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


def facts(**changes: Any) -> Facts:
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
    return Facts(**{**defaults, **changes})
