"""The lines of ``shiftcal monitor``: plain values first, then text or JSON."""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

from shiftcal.cli import _tables
from shiftcal.cli._streams import one_line, say

if TYPE_CHECKING:
    from shiftcal.cli._monitor_batches import Broken
    from shiftcal.monitoring import Event, Update

Line: TypeAlias = dict[str, Any]


class ReaderGone(Exception):
    """Whoever read stdout has seen enough."""


class Printer:
    """Writes lines to stdout, flushed.

    Args:
        as_json: As JSON objects, one a line.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def lines(self, lines: list[Line]) -> None:
        """Write lines.

        Raises:
            ReaderGone: If nobody reads them.
            FileError: If the disk behind stdout is full, or the like.
        """
        shown = json_of if self.as_json else text_of
        self.texts([text for line in lines if (text := shown(line))])

    def texts(self, texts: list[str]) -> None:
        """Write lines as they are; errors as of :meth:`lines`."""
        if texts and not say("\n".join(texts)):
            raise ReaderGone


def start_line(**facts: Any) -> Line:
    """What the program begins with, for programs."""
    return {"type": "start", "shiftcal": version("shiftcal"), "command": "monitor", **facts}


def window_line(update: Update, *, at: float | None, mean_confidence: float) -> Line:
    """Where the stream stands.

    Args:
        update: Of the last rows.
        at: The caller's clock, if it said anything.
        mean_confidence: Mean calibrated confidence of the rows since the line before.
    """
    estimate, selection = update.estimate, update.selection
    accuracy = None
    if estimate is not None:
        accuracy = {name: getattr(estimate, name) for name in ("value", "low", "high", "level")}
    return {
        "type": "window",
        "row": update.rows,
        "at": at,
        "state": update.state,
        "statistic": _finite(update.statistic),
        "outside": _finite(update.outside),
        "temperature": _finite(update.temperature),
        "set": None if selection is None else selection.set_name,
        "mean_confidence": mean_confidence,
        "raw_mean_confidence": None if selection is None else selection.mean_confidence,
        "accuracy": accuracy,
    }


def event_line(event: Event) -> Line:
    """A change of state."""
    found = event.to_dict()
    numbers = {name: _finite(found[name]) for name in ("statistic", "threshold")}
    return {"type": "event", **found, **numbers}


def broken_line(broken: Broken) -> Line:
    """A piece of the input that was left out."""
    where = broken.where or (broken.file and f"file {broken.file}")
    return {"type": "malformed", "where": where, "message": str(broken)}


def json_of(line: Line) -> str:
    """A line for programs, in ASCII."""
    return json.dumps(line, allow_nan=False)


def text_of(line: Line) -> str:
    """A line for people; empty if it is for programs alone."""
    if line["type"] not in _TEXTS:
        return ""
    text = _TEXTS[line["type"]](line)
    return f"{text} (repeated: it may have been printed before)" if line.get("repeated") else text


def _window_text(line: Line) -> str:
    parts = [f"row {line['row']:,}", line["state"]]
    if line["temperature"] is not None:
        parts.append(f"T {_tables.temperature(line['temperature'])}")
    if line["set"] is not None:
        parts.append(f"set {one_line(line['set'])}")
    raw = line["raw_mean_confidence"]
    before = "" if raw is None else f" (raw {raw:.4f})"
    parts.append(f"confidence {line['mean_confidence']:.4f}{before}")
    if line["accuracy"]:
        value, low, high = (line["accuracy"][name] for name in ("value", "low", "high"))
        parts.append(f"accuracy {value:.4f} ({low:.4f} to {high:.4f})")
    return "  ".join(parts)


def _event_text(line: Line) -> str:
    at = "" if line["at"] is None else f" at {line['at']:.15g}"
    return f"event  row {line['row']:,}{at}  {line['kind']}: {one_line(line['message'])}"


def _end_text(line: Line) -> str:
    if line["by"] == "error" and not line["batches"]:
        return ""
    malformed = f", {line['malformed']:,} malformed" if line["malformed"] else ""
    what = "file" if line["followed"] else "batch"
    many = {"file": "files", "batch": "batches"}[what]
    batches = f"{line['batches']:,} {what if line['batches'] == 1 else many}"
    events = _tables.count_of(sum(line["events"].values()), "event")
    return (
        f"end  {_tables.count_of(line['rows'], 'row')} in {batches}{malformed}, {events}; "
        f"at row {line['row']:,}, {line['state']}"
    )


_TEXTS = {"window": _window_text, "event": _event_text, "end": _end_text}


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
