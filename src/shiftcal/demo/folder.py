"""The folder of a demonstration: known as one from the start, and refused if it is none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write, make_folder
from shiftcal.errors import FileError

FORMAT, VERSION = "shiftcal-demo", 1


@dataclass(frozen=True)
class DemoFolder:
    """Where the files of a demonstration are."""

    path: Path

    @property
    def document(self) -> Path:
        """What was found, and the mark that the folder is a demonstration's."""
        return self.path / "demo.json"

    @property
    def bank(self) -> Path:
        """The surrogate bank."""
        return self.path / "bank"

    @property
    def train(self) -> Path:
        """Scores and features of training images."""
        return self.path / "train.npz"

    @property
    def method(self) -> Path:
        """The fitted method."""
        return self.path / "rehearsal.json"

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    def scores(self, target: str) -> Path:
        """Scores of a target, with labels."""
        return self.path / f"{target}.npz"

    def images(self, target: str) -> Path:
        """Its images."""
        return self.path / f"{target}-images.npy"

    def write(self, data: str, document: dict[str, Any]) -> None:
        """Write the document, whole or not at all.

        Args:
            data: What the demonstration is about.
            document: What was found; empty at the start.
        """
        head = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"shiftcal {version('shiftcal')}",
            "data": data,
        }
        text = json.dumps({**head, **document}, indent=1, allow_nan=False)
        with atomic_write(self.document) as temporary:
            temporary.write_text(f"{text}\n", "utf-8")


def check_place(path: Path, data: str) -> None:
    """Refuse a folder that a demonstration cannot have; nothing is written.

    It can have a new or an empty one, and that of the same demonstration before.

    Args:
        path: The folder.
        data: What the demonstration is about.

    Raises:
        FileError: If it holds something else.
    """
    try:
        names = sorted(entry.name for entry in path.iterdir() if not _half_written(entry.name))
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise FileError(f"{path} is a file. Name a folder for the demo with -o.") from error
    except OSError as error:
        raise FileError(
            f"{path} cannot be read: {error.strerror or error}. Name another folder with -o."
        ) from error
    before = _of_before(DemoFolder(path).document)
    if names and before is None:
        raise FileError(
            f"{path} holds {names[0]!r} and is no folder of a demo. Name a new one with -o."
        )
    if before not in (None, data):
        raise FileError(
            f"{path} holds the demo with {before}; this one is with {data}. Name a new folder "
            "with -o."
        )


def claim(path: Path, data: str) -> DemoFolder:
    """Have a folder that is marked as the demonstration's, whatever comes in between.

    Raises:
        FileError: As :func:`check_place`, and if it cannot be made or written.
    """
    check_place(path, data)
    make_folder(path)
    folder = DemoFolder(path)
    if not folder.document.exists():
        folder.write(data, {})
    return folder


def _half_written(name: str) -> bool:
    """Whether it is what a process that was killed left behind."""
    return name.startswith(".shiftcal-") and name.endswith(".tmp")


def _of_before(document: Path) -> str | None:
    """What a demonstration was about whose document this is; ``None`` if it is of none."""
    try:
        told = json.loads(document.read_text("utf-8"))
        return str(told["data"]) if told["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
