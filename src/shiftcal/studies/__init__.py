"""Studies: a plan in, tables and figures out, every number traceable to arrays on disk.

:func:`names` lists the plans of shiftcal, :func:`read_plan` reads one, :func:`reproduce` runs it,
:func:`rebuild` makes tables and figures again from stored scores, and :class:`Run` opens a finished
run to look at its numbers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.studies.plan import AdaptationPlan, Plan, plan_text, read_plan, to_toml
    from shiftcal.studies.plan import built_in as names
    from shiftcal.studies.records import Record
    from shiftcal.studies.run import Done, Run, rebuild, reproduce
    from shiftcal.studies.sources import Means

# Public name -> module and its name there.
_WHERE = {
    "AdaptationPlan": ("plan", "AdaptationPlan"),
    "Done": ("run", "Done"),
    "Means": ("sources", "Means"),
    "Plan": ("plan", "Plan"),
    "Record": ("records", "Record"),
    "Run": ("run", "Run"),
    "names": ("plan", "built_in"),
    "plan_text": ("plan", "plan_text"),
    "read_plan": ("plan", "read_plan"),
    "rebuild": ("run", "rebuild"),
    "reproduce": ("run", "reproduce"),
    "to_toml": ("plan", "to_toml"),
}

__all__ = [
    "AdaptationPlan",
    "Done",
    "Means",
    "Plan",
    "Record",
    "Run",
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
    module, attribute = _WHERE[name]
    value = getattr(importlib.import_module(f"shiftcal.studies.{module}"), attribute)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted(__all__)
