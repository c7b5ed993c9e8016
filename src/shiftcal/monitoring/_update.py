"""What a monitor says of a batch: confidences, where the stream stands, and events."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Probs
from shiftcal.estimates import AccuracyEstimate
from shiftcal.methods._selection import Selection
from shiftcal.monitoring._snapshot import Snapshot

State: TypeAlias = Literal["filling", "normal", "shifted", "outside-bank"]
Kind: TypeAlias = Literal["shift-began", "outside-bank", "back-inside", "back-to-normal"]
STATES: tuple[State, ...] = ("filling", "normal", "shifted", "outside-bank")
KINDS: tuple[Kind, ...] = ("shift-began", "outside-bank", "back-inside", "back-to-normal")


@dataclass(frozen=True)
class Event:
    """A change of state.

    Attributes:
        kind: ``"shift-began"``, ``"outside-bank"``, ``"back-inside"`` or ``"back-to-normal"``.
        row: Rows of the stream that had come when it was seen: always the end of a block.
        at: What the caller's clock said for the batch, in seconds; ``None`` if it said nothing.
        state: The state from then on.
        statistic: What was compared, see :class:`Monitor`.
        threshold: What it was compared with.
        message: The same in a sentence.
    """

    kind: Kind
    row: int
    at: float | None
    state: State
    statistic: float
    threshold: float
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"row {self.row:,}: {self.kind}: {self.message}"


@dataclass(frozen=True, eq=False)
class Update:
    """What a monitor made of one batch.

    Attributes:
        confidence: ``(n,)`` calibrated probability of the predicted class.
        predicted: ``(n,)`` the predicted class.
        probs: ``(n, k)`` calibrated probabilities, if they were asked for.
        rows: Rows of the stream so far, with these.
        state: Where the stream stands after them.
        statistic: How far the last rows are from the clean set, as a share of what raises
            ``shift-began``; 0 before the first look.
        outside: How far they are from all that the bank has, as a share of its reach; from 1 on it
            is outside.
        temperature: What the next row will be divided by; ``None`` if the map is none.
        events: What happened, in order.
    """

    confidence: NDArray[np.float64]
    predicted: NDArray[np.intp]
    probs: Probs | None
    rows: int
    state: State
    statistic: float
    outside: float
    temperature: float | None
    events: tuple[Event, ...]
    _snapshot: Snapshot | None = field(repr=False)

    @property
    def selection(self) -> Selection | None:
        """What the method chose at the last look, with flags; ``None`` before the first.

        Worked out when it is first asked for.
        """
        return None if self._snapshot is None else self._snapshot.selection

    @property
    def estimate(self) -> AccuracyEstimate | None:
        """The accuracy on the window of the last look; ``None`` before it, or without estimator.

        Worked out when it is first asked for.
        """
        return None if self._snapshot is None else self._snapshot.estimate
