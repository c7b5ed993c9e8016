"""Which files a report wrote, so that the next one takes away those it does not write itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from shiftcal._files import atomic_write

LIST = "report.json"
_FOLDERS = ("tables", "figures", "data")


@contextmanager
def replacing(folder: Path, files: Sequence[str]) -> Iterator[None]:
    """Files of an earlier report that are not among these are gone after the block.

    A report lists its files in ``report.json`` before it writes the first, so that those of one
    that was interrupted are known, too. Nothing is removed that no report listed: a file that
    somebody put beside them stays.

    Args:
        folder: Of the run.
        files: What the block writes, from the folder of the run.
    """
    earlier = [name for name in _listed(folder) if name not in files]
    _list(folder, [*files, *earlier])
    yield
    for name in earlier:
        with suppress(OSError):
            (folder / name).unlink()
    _list(folder, files)


def remove_written(folder: Path) -> None:
    """Remove every file that reports wrote and listed, then the list.

    Args:
        folder: Of the run.
    """
    for name in _listed(folder):
        (folder / name).unlink(missing_ok=True)
    (folder / LIST).unlink(missing_ok=True)


def _listed(folder: Path) -> list[str]:
    """What the list says; a damaged one says nothing, and of another place nothing is taken."""
    try:
        names = json.loads((folder / LIST).read_text("utf-8"))["files"]
        return [name for name in names if _is_ours(name)]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []


def _is_ours(name: object) -> bool:
    parts = PurePosixPath(name).parts if isinstance(name, str) else ()
    return len(parts) == 2 and parts[0] in _FOLDERS and parts[1] not in ("", ".", "..")


def _list(folder: Path, files: Sequence[str]) -> None:
    with atomic_write(folder / LIST, durable=False) as temporary:
        temporary.write_text(json.dumps({"files": list(files)}, indent=1) + "\n", "utf-8")
