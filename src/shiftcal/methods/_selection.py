"""What a method chose for a target, and how sure it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from shiftcal._types import Flag, Interval


@dataclass(frozen=True)
class Selection:
    """The outcome of ``adapt``. What a method does not have stays ``None`` or empty.

    Attributes:
        method: Name of the method.
        temperature: The temperature that will be applied, if the map is one.
        temperature_interval: Where the temperature that is right for the target may lie.
        n_target: Target rows looked at; ``None`` if the method looks at no target.
        mean_confidence: Mean raw p_max of those rows.
        index: Position of the chosen surrogate set, 0 for the clean one.
        n_sets: Number of sets in the bank.
        set_name: Name of the chosen set.
        corruption: Its corruption.
        severity: Its severity.
        distance: Name of the distance that chose.
        distances: Distance of the target to every set.
        margin: Distance to the runner-up minus distance to the chosen set.
        details: Further numbers of the method, by name.
        flags: What should be known before the confidences are trusted.
    """

    method: str
    temperature: float | None = None
    temperature_interval: Interval | None = None
    n_target: int | None = None
    mean_confidence: float | None = None
    index: int | None = None
    n_sets: int | None = None
    set_name: str | None = None
    corruption: str | None = None
    severity: int | None = None
    distance: str | None = None
    distances: tuple[float, ...] = ()
    margin: float | None = None
    details: dict[str, float] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()

    def has(self, code: str) -> bool:
        """Whether a flag of this code was raised."""
        return any(flag.code == code for flag in self.flags)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        parts = []
        if self.index is not None:
            parts.append(f"set {self.index + 1} of {self.n_sets} ({self.set_name})")
        if self.temperature is not None:
            parts.append(f"T = {self.temperature:.3g}{self._range()}")
        if self.index is not None:
            outside = self.has("outside-range")
            parts.append("OUTSIDE the bank's range" if outside else "inside the bank's range")
        parts += [flag.code for flag in self.flags if flag.code != "outside-range"]
        return ", ".join(parts) or self.method

    def _range(self) -> str:
        if self.temperature_interval is None:
            return ""
        return f" ({self.temperature_interval.low:.3g} to {self.temperature_interval.high:.3g})"

    def __repr__(self) -> str:
        return f"<{self.method} selection: {self}>"
