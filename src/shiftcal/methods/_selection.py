"""What a method chose for a target, and how sure it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from shiftcal._html import facts, piece, remarks, table
from shiftcal._types import Flag, Interval

# Sets whose distances a notebook shows.
_NEAREST = 6


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

    def _repr_html_(self) -> str:
        rows, mean = self.n_target, self.mean_confidence
        target = None if rows is None or mean is None else f"{rows:,} rows, mean {mean:.4f}"
        told = [
            ("confidence of the target", target),
            ("distance", self.distance),
            ("margin to the next set", None if self.margin is None else f"{self.margin:.4g}"),
            *((name.replace("_", " "), f"{value:.4g}") for name, value in self.details.items()),
        ]
        flags = remarks((flag.code, flag.message) for flag in self.flags)
        return piece(f"{self.method}: {self}", facts(told), self._distances_html(), flags)

    def _distances_html(self) -> str:
        """The nearest sets; their names are known to whoever has the bank."""
        if not self.distances:
            return ""
        order = sorted(
            range(len(self.distances)), key=lambda j: (j != self.index, self.distances[j])
        )
        named = {self.index: f"{self.set_name}, chosen"}
        rows = ((j + 1, named.get(j, ""), f"{self.distances[j]:.4f}") for j in order)
        head = ("set", "", "distance")
        return table(head, rows, total=len(order), most=_NEAREST, words=2, marked=0)
