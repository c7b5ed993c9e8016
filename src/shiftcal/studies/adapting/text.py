"""A plan of domain adaptation as TOML."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from shiftcal.studies.adapting.plan import AdaptationPlan, TrainerPlan
from shiftcal.studies.plan.plan import MethodPlan
from shiftcal.studies.plan.toml import entries


def adaptation_toml(plan: AdaptationPlan) -> str:
    """The plan as it is read, with the defaults written out."""
    values = asdict(plan)
    del values["where"]
    values["trainers"] = [_named(trainer) for trainer in plan.trainers]
    values["methods"] = [_named(method) for method in plan.methods]
    domains = values.pop("domains")
    network, training = values.pop("network"), values.pop("training")
    calibration = values.pop("calibration")
    settings = training.pop("settings")
    first = {"study": values.pop("study"), "about": values.pop("about")}
    lines = entries({**first, **values})
    lines += ["", "[network]", *entries(network), "", "[training]", *entries(training)]
    lines += ["", "[training.settings]", *entries(settings)] if settings else []
    lines += ["", "[calibration]", *entries(calibration)]
    for domain in domains:
        lines += ["", "[[domains]]", *entries(domain)]
    return "\n".join(lines) + "\n"


def _named(each: TrainerPlan | MethodPlan) -> dict[str, Any]:
    return {"name": each.name, "label": each.label, **each.settings}
