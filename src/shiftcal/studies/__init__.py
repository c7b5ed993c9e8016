"""Studies: a plan in, tables and figures out, every number traceable to arrays on disk.

:func:`names` lists the plans of shiftcal, :func:`read_plan` reads one, :func:`reproduce` runs it,
:func:`rebuild` makes tables and figures again from stored scores, and :class:`Run` opens a finished
run to look at its numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.lazy import lazy

if TYPE_CHECKING:
    from shiftcal.studies.plan import AdaptationPlan, Plan, names, plan_text, read_plan, to_toml
    from shiftcal.studies.records import Record
    from shiftcal.studies.run import Done, Run, rebuild, reproduce
    from shiftcal.studies.sources import Means

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "plan": "AdaptationPlan Plan names plan_text read_plan to_toml",
        "records": "Record",
        "run": "Done Run rebuild reproduce",
        "sources": "Means",
    },
)
