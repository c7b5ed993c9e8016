"""How a run goes, and what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shiftcal.studies.catalog.base import Findings
from shiftcal.studies.folder import check_still
from shiftcal.studies.opened import ABOUT
from shiftcal.studies.stages.about import read_about
from shiftcal.studies.stages.scoring import Means


@dataclass(frozen=True)
class Done:
    """What came of a run.

    Attributes:
        folder: Where it is.
        findings: Tables, figures and remarks.
        scored: Images that were scored by this call; the others were there.
        evaluated: Evaluations made by this call.
        records: Evaluations in all.
        seconds: By stage.
        missing: What was left out because it was not there.
        trained: Trainings made by this call; ``None`` for a study that trains nothing.
    """

    folder: Path
    findings: Findings
    scored: int
    evaluated: int
    records: int
    seconds: dict[str, float]
    missing: tuple[str, ...] = ()
    trained: int | None = None


@dataclass
class Course:
    """How a run goes: where, by what plan and means, and how long each stage took."""

    means: Means
    workers: int
    folder: Path = Path()
    text: str = ""
    earlier: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)

    def start(self, folder: Path, text: str) -> None:
        """With a plan, in a folder; what the run before said there is remembered."""
        self.folder, self.text = folder, text
        self.earlier = read_about(folder / ABOUT)

    def check(self) -> None:
        """Refuse to go on if the plan is another one by now."""
        check_still(self.folder, self.text)

    def lap(self, stage: str) -> None:
        """A stage is over."""
        now = time.perf_counter()
        self.seconds[stage] = round(now - self._last, 2)
        self._last = now
