"""Studies: a plan in, tables and figures out, every number traceable to arrays on disk.

:func:`names` lists the plans of shiftcal, :func:`read_plan` reads one, :func:`reproduce`
runs it (:func:`forecast` says how long that takes), :func:`rebuild` makes tables and figures again
from stored scores, and :class:`Run` opens a finished run to look at its numbers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.studies.adapting.plan import AdaptationPlan
    from shiftcal.studies.course import Done
    from shiftcal.studies.opened import Run
    from shiftcal.studies.plan.plan import Plan
    from shiftcal.studies.plan.reading import built_in as names
    from shiftcal.studies.plan.reading import plan_text, read_plan
    from shiftcal.studies.plan.text import to_toml
    from shiftcal.studies.record import Record
    from shiftcal.studies.run import forecast, rebuild, reproduce
    from shiftcal.studies.stages.estimate import Estimate
    from shiftcal.studies.stages.scoring import Means

# Public name -> the file it is taken from and its name there.
_WHERE = {
    "AdaptationPlan": ("adapting.plan", "AdaptationPlan"),
    "Done": ("course", "Done"),
    "Estimate": ("stages.estimate", "Estimate"),
    "Means": ("stages.scoring", "Means"),
    "Plan": ("plan.plan", "Plan"),
    "Record": ("record", "Record"),
    "Run": ("opened", "Run"),
    "forecast": ("run", "forecast"),
    "names": ("plan.reading", "built_in"),
    "plan_text": ("plan.reading", "plan_text"),
    "read_plan": ("plan.reading", "read_plan"),
    "rebuild": ("run", "rebuild"),
    "reproduce": ("run", "reproduce"),
    "to_toml": ("plan.text", "to_toml"),
}

__all__ = [
    "AdaptationPlan",
    "Done",
    "Estimate",
    "Means",
    "Plan",
    "Record",
    "Run",
    "forecast",
    "names",
    "plan_text",
    "read_plan",
    "rebuild",
    "reproduce",
    "to_toml",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _WHERE[name]
    found = getattr(importlib.import_module(f"shiftcal.studies.{module}"), there)
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted(__all__)
