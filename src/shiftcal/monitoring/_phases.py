"""The rule that changes states, with hysteresis."""

from __future__ import annotations

from typing import NamedTuple

from shiftcal.monitoring._update import Kind, State


class Phase(NamedTuple):
    """Where a stream stands.

    Attributes:
        state: The state.
        calm: Looks in a row at which a shifted stream kept to the lower limit.
        crossed: Looks in a row at which it was on the other side of the bank's reach.
    """

    state: State
    calm: int = 0
    crossed: int = 0


def next_phase(
    phase: Phase, ratio: float, outside: float, *, full: bool, lower: float, patience: int
) -> tuple[Phase, Kind | None]:
    """The phase after a look, and what happened, if anything did.

    Args:
        phase: Before it.
        ratio: Distance from the clean set over what raises an alarm.
        outside: Distance from the bank over its reach.
        full: Whether the window is full.
        lower: Ratio that a return to normal has to keep to.
        patience: Looks in a row that a return, or the way out of the bank, takes.
    """
    quiet: State = "normal" if full else "filling"
    if phase.state in ("filling", "normal"):
        return (Phase("shifted"), "shift-began") if ratio >= 1 else (Phase(quiet), None)
    calm = phase.calm + 1 if ratio <= lower else 0
    if calm >= patience:
        return Phase(quiet), "back-to-normal"
    inside = phase.state == "shifted"
    crossed = phase.crossed + 1 if (outside >= 1) == inside else 0
    if crossed < patience:
        return Phase(phase.state, calm, crossed), None
    return (
        (Phase("outside-bank", calm), "outside-bank")
        if inside
        else (Phase("shifted", calm), "back-inside")
    )
