"""The numbers behind the conclusions of a report. Data only; fractions, not percent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shiftcal.report.html.parts import Ranged


@dataclass(frozen=True)
class Bin:
    """A bin of a reliability diagram; what an empty one does not have is ``None``."""

    lower: float
    upper: float
    count: int
    confidence: float | None
    accuracy: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class MethodFacts:
    """What one method does to the target.

    Attributes:
        name: Of the method.
        summary: What it does, in a line.
        choice: Its selection in words.
        temperature: The temperature it applies, if that is what it does.
        temperature_low: Lower end of its interval.
        temperature_high: Upper end.
        mean_confidence: On the target, after calibration.
        gap: Mean confidence minus accuracy: measured with labels, else estimated.
        ece: On the target, with labels only.
        n_changed: Rows that are predicted otherwise than before.
        bins: The diagram, on the rows that :class:`Shown` names.
        shares: Rows of those in twenty bins of equal width, as fractions.
    """

    name: str
    summary: str
    choice: str
    temperature: float | None
    temperature_low: float | None
    temperature_high: float | None
    mean_confidence: float
    gap: Ranged | None
    ece: Ranged | None
    n_changed: int
    bins: tuple[Bin, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Shown:
    """On which labelled rows diagrams are drawn.

    Attributes:
        kind: ``"target"``, or ``"surrogate"`` where the target has no labels.
        name: Of the set.
        n: Rows.
    """

    kind: Literal["target", "surrogate"]
    name: str
    n: int


@dataclass(frozen=True)
class SetFacts:
    """A set of the bank.

    Attributes:
        name: Of the set.
        n: Rows.
        mean_confidence: Raw.
        accuracy: By its labels.
        temperature: That fits it best.
        distance: From the target: in mean confidence, or as the method measures it.
        chosen: Whether the method took its map.
        nearest: Whether it is the nearest in mean confidence.
    """

    name: str
    n: int
    mean_confidence: float
    accuracy: float
    temperature: float
    distance: float
    chosen: bool
    nearest: bool


@dataclass(frozen=True)
class Choice:
    """What the method chose and how clear the choice is.

    Attributes:
        method: Name.
        text: The choice in words.
        distance: What tells target and sets apart.
        margin: How much farther the runner-up is; ``None`` if nothing was chosen among sets.
        runner_up: Its name.
        details: Further numbers of the method.
    """

    method: str
    text: str
    distance: str
    margin: float | None
    runner_up: str | None
    details: dict[str, float]


@dataclass(frozen=True)
class Densities:
    """Densities of raw p_max; those of sets by their position in the bank.

    Attributes:
        stretched: Whether they are densities of ``-log10(1 - p_max)``, as where most values are
            near 1 and would be one spike.
        grid: Values of p_max.
        target: Density of the target there.
        sets: Position of a set and its density; the one that stands for the target first.
    """

    stretched: bool
    grid: tuple[float, ...]
    target: tuple[float, ...]
    sets: tuple[tuple[int, tuple[float, ...]], ...]


@dataclass(frozen=True)
class ClassFacts:
    """What is predicted as one class.

    Attributes:
        index: Column.
        name: Its name, or its number.
        n: Rows predicted so.
        share: Of all rows.
        before: Their mean raw confidence, if there are any.
        after: The same after calibration.
        accuracy: How many of them are right, if labels tell.
    """

    index: int
    name: str
    n: int
    share: float
    before: float | None
    after: float | None
    accuracy: Ranged | None


@dataclass(frozen=True)
class Example:
    """A row whose confidence changed much.

    Attributes:
        row: From 0.
        id: What it is called.
        predicted: Class.
        label: True class, if known.
        before: Raw confidence.
        after: Calibrated.
        picture: The image as a data URI; not part of the JSON.
    """

    row: int
    id: str
    predicted: str
    label: str | None
    before: float
    after: float
    picture: str = ""


@dataclass(frozen=True)
class Warned:
    """A flag that was raised.

    Attributes:
        code: The flag.
        by: Who raised it: methods, the estimate, the files.
        messages: What they said, with the numbers.
        meaning: What it means.
        todo: What to do about it.
        serious: Whether the method of the report, or its estimate, is concerned.
    """

    code: str
    by: tuple[str, ...]
    messages: tuple[str, ...]
    meaning: str
    todo: str
    serious: bool
