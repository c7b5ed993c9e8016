"""What is evaluated: a method with its settings and its surrogate sets, on some targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CLEAN = "clean"


def set_name(corruption: str, severity: int) -> str:
    """What the images under a corruption are called in files and records."""
    return f"{corruption}-{severity}" if severity else CLEAN


@dataclass(frozen=True)
class Ladder:
    """The surrogate sets a method learns from.

    Attributes:
        corruption: What made them.
        severities: Beside the clean set, which always is the first; empty is the clean set alone.
        images: How many calibration images; ``None`` is all of the split.
    """

    corruption: str
    severities: tuple[int, ...]
    images: int | None = None

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets, the clean one first."""
        return (CLEAN, *(set_name(self.corruption, s) for s in self.severities))


@dataclass(frozen=True)
class Target:
    """Images to be calibrated for.

    Attributes:
        name: Of the scored set.
        corruption: What shifted it; the name itself for a natural shift.
        severity: 0 for the clean test images; ``None`` for a natural shift.
    """

    name: str
    corruption: str
    severity: int | None

    @property
    def natural(self) -> bool:
        """Whether it has images of its own, all of which are tested on."""
        return self.severity is None


@dataclass(frozen=True)
class Variant:
    """One thing that is compared: a method, its settings and its surrogate sets.

    Attributes:
        key: Short name, unique within a panel and a setting; the same method has the same key, and
            so the same colour, in every study.
        label: In tables and legends.
        method: Name of a method, or ``"oracle"``.
        ladder: What it learns from.
        targets: What it is evaluated on.
        settings: Of the method.
        panel: Which question of the study it belongs to; one question has none.
        setting: What is varied within the panel, as text.
        draws: How often it is evaluated with another ``seed``, for methods that draw.
        where: Where the plan says it, for messages.
    """

    key: str
    label: str
    method: str
    ladder: Ladder
    targets: tuple[Target, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    panel: str = ""
    setting: str = ""
    draws: int = 1
    where: str = field(default="", compare=False)
