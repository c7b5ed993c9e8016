"""``.npz``: numpy's archive of named arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError
from shiftcal.scores._arrays import numbers_of
from shiftcal.scores._assemble import from_arrays
from shiftcal.scores._opening import parsing, refuse_bomb, require_magic
from shiftcal.scores._scores import Scores

_KIND = "an .npz archive"


def read(path: Path) -> Scores:
    """Scores from the arrays ``logits`` or ``probabilities``, ``labels`` and so on."""
    with _opened(path) as archive:
        return from_arrays(path, archive.files, lambda name: _member(path, archive, name))


def read_member(path: Path, name: str) -> NDArray[Any] | None:
    """One array of an archive that need not hold scores; ``None`` if it is not there."""
    with _opened(path) as archive:
        return _member(path, archive, name) if name in archive.files else None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    require_magic(path, (b"PK",), _KIND)
    # Opened here, since numpy leaves its own handle open when the archive proves damaged.
    with path.open("rb") as file:
        with parsing(path, _KIND):
            archive = np.load(file, allow_pickle=False)
        yield archive


def _member(path: Path, archive: Any, name: str) -> NDArray[Any]:
    with parsing(path, _KIND):
        members = archive.zip.namelist()
        info = archive.zip.getinfo(f"{name}.npy" if f"{name}.npy" in members else name)
        refuse_bomb(path, unpacked=info.file_size, stored=info.compress_size)
        array = archive[name]
    if not isinstance(array, np.ndarray):
        raise FileError(f"{path} is damaged: {name!r} in it is not an array. Write it again.")
    return array


def write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write every part under its name, uncompressed: scores hardly shrink."""
    arrays = numbers_of(scores, extra)
    if scores.ids is not None:
        arrays["ids"] = scores.ids
    if scores.classes is not None:
        arrays["classes"] = np.array(scores.classes, dtype=np.str_)
    # Given a name, numpy would add a suffix of its own.
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
