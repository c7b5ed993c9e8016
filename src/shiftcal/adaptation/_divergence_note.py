"""What is written down of a run whose training diverged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.errors import FileError

# Below the folder of a run, gone when it is finished.
TRAINING = "training"
_FILE = "diverged.json"
# As the checkpoints have it, which cannot be asked without torch.
_CHECKPOINT = "checkpoint.json"


def write_note(folder: Path, document: Mapping[str, Any], reason: str) -> None:
    """Say why a run came to nothing, and what it was; a full disk only loses that.

    Args:
        folder: Of the run.
        document: What ``adapt.json`` would have said.
        reason: In words.
    """
    text = json.dumps({**document, "reason": reason}, indent=1, ensure_ascii=False)
    with suppress(FileError), atomic_write(folder / TRAINING / _FILE, durable=False) as temporary:
        temporary.write_text(f"{text}\n", "utf-8")


def read_note(folder: Path) -> dict[str, Any] | None:
    """What was said; ``None`` if nothing was, or it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads((folder / TRAINING / _FILE).read_text("utf-8"))
        if isinstance(found, dict) and isinstance(found.get("reason"), str):
            return found
    return None


def remove_note(folder: Path) -> None:
    """Forget it: the training is gone on with."""
    with suppress(OSError):
        (folder / TRAINING / _FILE).unlink()


def told_of(folder: Path) -> str:
    """What is said of a run that is not finished, after its folder."""
    note = read_note(folder)
    if note is None:
        return "holds a run that is not finished. The same call, or command, goes on with it."
    said = f"holds no finished run: {note['reason']}"
    if (folder / TRAINING / _CHECKPOINT).exists():
        said += " adaptation.last_checkpoint(folder) gives the network as it was then."
    return said
