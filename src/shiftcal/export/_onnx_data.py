"""Files that hold weights of an ONNX network beside its own."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftcal._files import atomic_write, make_folder
from shiftcal.errors import FileError, MissingData
from shiftcal.models._onnx_file import external_files


def data_files(network: bytes, path: Path) -> list[Path]:
    """Where the weights lie that a network refers to, relative to it.

    Raises:
        FileError: If a file is missing, or lies outside the network's folder.
    """
    folder = path.parent.resolve()
    places = []
    for file in external_files(network, folder):
        if not file.resolve().is_relative_to(folder):
            raise FileError(
                f"{path} must refer to weights in its own folder; it names {file}. Save it anew, "
                "with the weights beside it."
            )
        if not file.is_file():
            raise MissingData(
                f"{path} refers to weights in {file}, which is not there. Take both files along."
            )
        places.append(file.relative_to(folder))
    return places


@contextmanager
def copied(places: Sequence[Path], source: Path, target: Path) -> Iterator[None]:
    """Copy files from a folder to another, where they are not there; gone if the block fails.

    Args:
        places: Relative to both folders.
        source: From where.
        target: To where.

    Raises:
        FileError: If another file of that name is there.
    """
    made: list[Path] = []
    try:
        for place in places:
            _copy(source / place, target / place, made)
        yield
    except BaseException:
        for file in made:
            with suppress(OSError):
                file.unlink(missing_ok=True)
        raise


def _copy(given: Path, copy: Path, made: list[Path]) -> None:
    if copy.exists():
        if copy.samefile(given) or filecmp.cmp(given, copy, shallow=False):
            return
        raise FileError(
            f"{copy} must be the copy of {given}, which holds weights of the network; another "
            "file of that name is there. Write to another folder."
        )
    make_folder(copy.parent)
    with atomic_write(copy) as temporary:
        shutil.copyfile(given, temporary)
    made.append(copy)
