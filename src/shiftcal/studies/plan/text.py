"""A plan as TOML, so that what was run can be run again."""

from __future__ import annotations

from dataclasses import asdict

from shiftcal.studies.adapting.plan import AdaptationPlan, AnyPlan
from shiftcal.studies.adapting.text import adaptation_toml
from shiftcal.studies.plan.toml import entries

_TABLES = ("model", "data", "calibration", "shifts", "options")


def to_toml(plan: AnyPlan) -> str:
    """The plan as :func:`~shiftcal.studies.read_plan` reads it, with the defaults written out."""
    if isinstance(plan, AdaptationPlan):
        return adaptation_toml(plan)
    values = asdict(plan)
    values["methods"] = [{"name": m.name, "label": m.label, **m.settings} for m in plan.methods]
    del values["where"]
    ladders, sets = values.pop("ladders"), values["shifts"].pop("sets")
    lines = entries({key: value for key, value in values.items() if key not in _TABLES})
    for name in _TABLES:
        if values[name]:
            lines += ["", f"[{name}]", *entries(values[name])]
    for name, tables in (("shifts.sets", sets), ("ladders", ladders)):
        for each in tables:
            lines += ["", f"[[{name}]]", *entries(each)]
    return "\n".join(lines) + "\n"
