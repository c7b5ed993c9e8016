"""The state file: all that a restart needs to go on as if nothing had happened."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write, file_to_write
from shiftcal.errors import FileError

FORMAT, VERSION = "shiftcal-monitor-run", 1


@dataclass
class Progress:
    """How far the input has been read, and what has been given out for it.

    Attributes:
        items: Batches of standard input, broken ones with them, by all runs together.
        malformed: Those, and files, that were broken.
        folder: The followed folder; ``None`` if there is none.
        files: Names of the files of it that are done.
        confidences: The file of confidences; ``None`` if none is written.
        acknowledged: Bytes of it that belong to this state.
        sums: Whole numbers added up since the last window line, by name.
        lines: Lines of the last commit. They were printed after this was written, if at all.
    """

    items: int = 0
    malformed: int = 0
    folder: str | None = None
    files: list[str] = field(default_factory=list)
    confidences: str | None = None
    acknowledged: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)


class StateFile:
    """A file that holds the running state of a monitor and a :class:`Progress`.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = file_to_write(path)

    def read(self) -> tuple[dict[str, Any], Progress] | None:
        """The monitor's state and the progress; ``None`` if there is no such file yet.

        Raises:
            FileError: If it is damaged, of another kind, or from a newer version.
        """
        try:
            document = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FileError(f"{self.path} could not be read: {error.strerror or error}.") from error
        except (ValueError, RecursionError) as error:
            raise FileError(self._damaged(f"it is no JSON ({error})")) from error
        return self._parsed(document)

    def write(self, monitor: dict[str, Any], progress: Progress) -> None:
        """Replace the file, whole or not at all, so that it outlives a power cut.

        Raises:
            FileError: If it cannot be written; the one before it is unchanged then.
        """
        document = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"shiftcal {version('shiftcal')}",
            "monitor": monitor,
            "progress": asdict(progress),
        }
        document["checksum"] = _checksum(document)
        with atomic_write(self.path) as temporary:
            temporary.write_text(json.dumps(document, allow_nan=False), "utf-8")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file for this process alone, where the system can do that.

        Raises:
            FileError: If another process holds it.
        """
        from shiftcal.scoring.claims import Claims

        claims, key = Claims(self.path.parent), f".{self.path.name}.lock"
        if not claims.take(key):
            raise FileError(
                f"{self.path} is in use by another `shiftcal monitor`, and one state belongs to "
                "one process. Stop that one first, or name another file with --state."
            )
        try:
            yield
        finally:
            claims.release(key)

    def _parsed(self, document: Any) -> tuple[dict[str, Any], Progress]:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise FileError(
                f"{self.path} is not the state of a monitor: it has no format {FORMAT!r}. Name "
                "the file that --state wrote, or one that is not there yet."
            )
        written = document.get("version")
        if not isinstance(written, int) or written > VERSION:
            raise FileError(
                f"{self.path} has format version {written!r}, written by "
                f"{document.get('written_by')}; this is shiftcal {version('shiftcal')}, which "
                f"reads up to version {VERSION}. Upgrade shiftcal to go on with it."
            )
        if document.pop("checksum", None) != _checksum(document):
            raise FileError(self._damaged("its checksum does not fit its content"))
        progress = document.get("progress")
        if not isinstance(progress, dict) or not _is_sound(progress):
            raise FileError(self._damaged("a part of it is missing or odd"))
        return document.get("monitor") or {}, Progress(**progress)

    def _damaged(self, why: str) -> str:
        return f"{self.path} is damaged: {why}. Take it from a backup, or remove it to begin anew."


def _is_sound(progress: dict[str, Any]) -> bool:
    """Whether every part is there, and what it should be."""

    def is_count(value: Any) -> bool:
        return type(value) is int and value >= 0

    def is_name(value: Any) -> bool:
        return value is None or isinstance(value, str)

    def all_of(kind: type, values: Any) -> bool:
        return isinstance(values, list) and all(isinstance(each, kind) for each in values)

    checks: dict[str, Callable[[Any], bool]] = {
        "items": is_count,
        "malformed": is_count,
        "acknowledged": is_count,
        "folder": is_name,
        "confidences": is_name,
        "files": lambda files: all_of(str, files),
        "lines": lambda lines: all_of(dict, lines) and all("type" in each for each in lines),
        "sums": lambda sums: isinstance(sums, dict) and all(map(is_count, sums.values())),
    }
    return set(progress) == set(checks) and all(checks[name](progress[name]) for name in checks)


def _checksum(document: dict[str, Any]) -> str:
    content = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()
