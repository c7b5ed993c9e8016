"""What the paper prints and claims about domain adaptation: its Tables 3 and 4.

The paper: *Frustratingly Easy Uncertainty Estimation for Distribution Shift* (arXiv 2106.03762).
ECE in percent, 15 bins of equal size, on the half of the target that training never saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from shiftcal.studies.catalog.base import variant_key
from shiftcal.studies.paper import METHODS, READING_UNTOLD, Claim
from shiftcal.studies.plan.plan import MethodPlan


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper.

    Attributes:
        source: Where it stands.
        data: Of what images.
        backbone: Which network was adapted.
        trainers: Names of the trainers.
        tasks: Titles of the tasks.
        ece: By trainer, task and method; in percent.
    """

    source: str
    data: str
    backbone: str
    trainers: tuple[str, ...]
    tasks: tuple[str, ...]
    ece: Mapping[tuple[str, str, str], float]

    def mean(self, trainer: str, method: str) -> float | None:
        """The mean over all tasks; ``None`` if the table has no such trainer or method."""
        found = [self.ece.get((trainer, task, method)) for task in self.tasks]
        known = [value for value in found if value is not None]
        return sum(known) / len(known) if known and len(known) == len(found) else None


# fmt: off
_OFFICE_HOME = (
    "A2C", "A2P", "A2R", "C2A", "C2P", "C2R", "P2A", "P2C", "P2R", "R2A", "R2C", "R2P",
)
_TABLE_3 = {
    "vanilla": (
        27.88, 17.42, 6.70, 13.26, 13.07, 10.81, 12.75, 26.07, 5.45, 7.49, 20.90, 5.62,
    ),
    "ts": (28.08, 17.88, 8.39, 11.09, 10.97, 8.72, 15.07, 27.06, 6.10, 6.32, 21.37, 5.63),
    "cpcs": (18.18, 17.33, 9.36, 10.22, 10.21, 15.88, 10.18, 34.26, 11.38, 7.42, 17.12, 5.12),
    "transcal": (10.76, 16.26, 14.65, 12.50, 11.32, 6.38, 9.56, 22.34, 5.80, 7.09, 9.51, 8.85),
    "sac": (28.08, 17.88, 8.39, 11.14, 10.89, 8.14, 17.72, 29.44, 7.41, 6.56, 20.54, 5.63),
    "sts": (25.23, 15.26, 4.86, 10.2, 11.47, 7.90, 14.55, 27.97, 5.28, 6.03, 15.95, 4.94),
}
_VISDA = ("dan", "jan", "cdan", "mdd", "safn", "mcc")
_TABLE_4 = {
    "vanilla": (21.10, 27.46, 18.44, 23.34, 22.93, 23.58),
    "ts": (19.24, 29.85, 21.03, 24.56, 19.55, 24.03),
    "cpcs": (6.67, 31.04, 21.89, 24.17, 25.78, 24.53),
    "transcal": (25.61, 34.48, 22.81, 25.88, 29.73, 24.84),
    "sac": (7.83, 23.66, 18.68, 22.72, 7.05, 23.32),
    "sts": (5.33, 20.03, 9.04, 18.11, 9.45, 22.38),
}
# fmt: on
_ONE_TASK = "S2R"

# By what ``paper`` of a plan may say; tasks are called as the plans of the same name call them.
PUBLISHED: Mapping[str, PublishedTable] = MappingProxyType(
    {
        "office-home": PublishedTable(
            "paper, Table 3",
            "Office-Home",
            "resnet50",
            ("cdan",),
            _OFFICE_HOME,
            MappingProxyType(
                {
                    ("cdan", task, method): value
                    for method, row in _TABLE_3.items()
                    for task, value in zip(_OFFICE_HOME, row, strict=True)
                }
            ),
        ),
        "visda": PublishedTable(
            "paper, Table 4",
            "VisDA-2017",
            "resnet101",
            _VISDA,
            (_ONE_TASK,),
            MappingProxyType(
                {
                    (trainer, _ONE_TASK, method): value
                    for method, row in _TABLE_4.items()
                    for trainer, value in zip(_VISDA, row, strict=True)
                }
            ),
        ),
    }
)

CLAIMS = (
    Claim(
        "adaptation",
        "Results, domain adaptation; Table 3",
        "On Office-Home with CDAN, STS is the best on 6 of the 12 tasks; in the mean over them "
        "TransCal is, and SAC has the ECE of TS on four, where it chose the clean set.",
    ),
    Claim(
        "adaptation",
        "Results, domain adaptation; Table 4",
        "On VisDA-2017 STS has the lowest ECE, followed by SAC, over six ways to adapt.",
    ),
)


def paper_key(method: MethodPlan) -> str | None:
    """Which row of the paper's tables a method is; ``None`` if it is none of them.

    One with settings of its own is not the paper's, unless the paper leaves its reading open.
    """
    if method.name not in METHODS or (method.settings and method.name not in READING_UNTOLD):
        return None
    return method.name


def papers_variants(methods: Sequence[MethodPlan]) -> list[str]:
    """Keys of the methods that the paper compares, one for each of its own.

    Of several readings of one it is the one as published, without settings, if there is such.
    """
    found: dict[str, str] = {}
    for method in sorted(methods, key=lambda each: bool(each.settings)):
        row = paper_key(method)
        if row is not None:
            found.setdefault(row, variant_key(method.name, method.settings))
    return list(found.values())
