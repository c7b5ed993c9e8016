"""Numbers that are found by trying, and have to be the same for all who share a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftcal._checks import check_count
from shiftcal._files import atomic_write, make_folder
from shiftcal.errors import FileError
from shiftcal.scoring.sharing import alone_in

_FILE = "notes.json"
# A folder of its own: the workshop itself is locked by all who are in it.
_DOOR = "notes.lock"


@dataclass(frozen=True)
class Notes:
    """Where such numbers are written down.

    Attributes:
        workshop: Folder of one result, whose word counts first; ``None`` for none.
        cache: Folder that several results share; it is done without where it cannot be used.
    """

    workshop: Path | None = None
    cache: Path | None = None

    def settled(self, name: str, find: Callable[[], int]) -> int:
        """The number of that name; found if nobody has, while others who ask for it wait.

        Args:
            name: By which it is known.
            find: Finds it.

        Raises:
            FileError: If the workshop's notes are damaged, or cannot be written.
        """
        with ExitStack() as held:
            held.enter_context(_alone(self.workshop))
            with suppress(FileError, OSError):  # the cache is read-only, or no folder
                held.enter_context(_alone(self.cache))
            near, far = _read(self.workshop), self._of_cache()
            number = near.get(name, far.get(name))
            if number is None:
                number = find()
            if self.workshop is not None and name not in near:
                _write(self.workshop, {**near, name: number})
            if self.cache is not None and name not in far:
                with suppress(FileError, OSError):
                    _write(self.cache, {**far, name: number})
            return number

    def _of_cache(self) -> dict[str, int]:
        try:
            return _read(self.cache)
        except FileError:  # made anew, like anything in a cache
            return {}


@contextmanager
def _alone(folder: Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    make_folder(folder / _DOOR)
    with alone_in(folder / _DOOR):
        yield


def _read(folder: Path | None) -> dict[str, int]:
    if folder is None:
        return {}
    file = folder / _FILE
    try:
        found: Any = json.loads(file.read_text("utf-8"))
        return {str(name): check_count(found[name], name=str(name)) for name in found}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise FileError(f"{file} is damaged ({error}). Remove it.") from error


def _write(folder: Path, numbers: dict[str, int]) -> None:
    with atomic_write(folder / _FILE) as temporary:
        temporary.write_text(json.dumps(numbers, indent=1), "utf-8")
