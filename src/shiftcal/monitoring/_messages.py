"""Events in words."""

from __future__ import annotations

from shiftcal.monitoring._running import Running
from shiftcal.monitoring._update import Event, Kind


def event(kind: Kind, running: Running, lower: float, at: float | None) -> Event:
    """An event with its numbers.

    Args:
        kind: What happened.
        running: The state after it.
        lower: Ratio that a return to normal has to keep to.
        at: The caller's clock.
    """
    about_clean = kind in ("shift-began", "back-to-normal")
    statistic = running.statistic if about_clean else running.outside
    threshold = lower if kind == "back-to-normal" else 1.0
    message = _MESSAGES[kind].format(statistic=statistic, threshold=threshold)
    return Event(kind, running.rows, at, running.state, statistic, threshold, message)


_MESSAGES: dict[Kind, str] = {
    "shift-began": (
        "the outputs of the last rows are {statistic:.2f} times as far from those of the clean set "
        "as chance takes them within the false alarms allowed."
    ),
    "outside-bank": (
        "the outputs of the window are {statistic:.2f} times the reach of the bank away: the shift "
        "is outside what was calibrated, and the confidences are a guess."
    ),
    "back-inside": (
        "the outputs of the window are {statistic:.2f} times the reach of the bank away: still "
        "shifted, and within what was calibrated."
    ),
    "back-to-normal": (
        "the outputs of the last rows have stayed near those of the clean set: {statistic:.2f} of "
        "the distance that raises an alarm, and {threshold:.2f} is near."
    ),
}
