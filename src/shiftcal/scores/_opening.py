"""From a path to a file that can be parsed, and from a parser's failure to a message."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shiftcal.errors import FileError, ShiftcalError

# Scores are noise to a compressor: they never shrink to a hundredth. Small constant arrays do, so
# only what would also fill memory is refused.
_LARGE = 1 << 30
_SHRINKAGE = 100
# What numpy says of arrays that it would have to unpickle, read and memory-mapped.
_OBJECTS = ("Object arrays cannot be loaded", "Python objects in dtype")
# The first byte of every pickle since protocol 2, which torch.save and joblib write too.
_PICKLE = b"\x80"
_ALIKE = 0.75


def find(path: str | os.PathLike[str]) -> Path:
    """The path, if a non-empty file is there.

    Raises:
        FileError: If not, with the nearest name there is.
    """
    file = Path(path)
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise FileError(f"{file} does not exist. {_neighbour(file)}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{file} cannot be opened: {reason}.") from error
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{file} is a folder; name one scores file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{file} is not a regular file; save the scores to a file first.")
    if status.st_size == 0:
        raise FileError(f"{file} is empty; write it again.")
    return file


def _neighbour(file: Path) -> str:
    try:
        names = [entry.name for entry in file.parent.iterdir()]
    except OSError:
        return f"Nor can its folder {file.parent} be listed."
    # Stems are compared, since a suffix in common makes any two names half alike.
    names.sort(key=lambda name: Path(name).suffix == file.suffix)
    by_stem = {Path(name).stem: name for name in names}
    near = difflib.get_close_matches(file.stem, by_stem, n=1, cutoff=_ALIKE)
    return f"Did you mean {by_stem[near[0]]!r}?" if near else "Check the path."


def require_magic(path: Path, magic: tuple[bytes, ...], kind: str) -> None:
    """Refuse a file that does not begin as its format does, before numpy takes it for a pickle.

    Raises:
        FileError: Saying what it should be.
    """
    with parsing(path, kind), path.open("rb") as file:
        head = file.read(max(map(len, magic)))
    if head.startswith(_PICKLE):
        raise FileError(_pickled(path))
    if not head.startswith(magic):
        raise FileError(
            f"{path} is not {kind}: it begins with the bytes {head!r}. "
            "Give it the suffix of its format, or write it again."
        )


@contextmanager
def parsing(
    path: Path, kind: str, errors: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Turn whatever a third party's parser raises into a FileError that names the file.

    Args:
        path: The file being read.
        kind: What it should be, such as ``"an .npz archive"``.
        errors: What the parser raises on damaged bytes; most of them raise anything.
    """
    try:
        yield
    except ShiftcalError:
        raise
    except MemoryError as error:
        raise FileError(
            f"{path} needs more memory than there is. Split it, or save the scores as .npy, "
            "which is read from disk as needed."
        ) from error
    except PermissionError as error:
        raise FileError(f"{path} may not be read: {error.strerror or error}.") from error
    except errors as error:
        if any(words in str(error) for words in _OBJECTS):
            raise FileError(_pickled(path)) from error
        raise FileError(
            f"{path} could not be read as {kind}: it is damaged, cut short, or something else "
            f"({_one_line(error)}). Write it again."
        ) from error


def _pickled(path: Path) -> str:
    return (
        f"{path} holds pickled Python objects, which are never loaded because they can run code. "
        "Save numbers as numbers, and text as np.array(names, dtype=str)."
    )


def refuse_bomb(path: Path, *, unpacked: int, stored: int) -> None:
    """Refuse a small file that would unpack to fill the memory.

    Args:
        path: The file.
        unpacked: Bytes it says it holds.
        stored: Bytes they take in the file.

    Raises:
        FileError: If that is over 1 GiB and a hundred times what is stored.
    """
    if unpacked > _LARGE and unpacked > _SHRINKAGE * stored:
        raise FileError(
            f"{path} would unpack from {stored} bytes to {unpacked}, which no real scores do. "
            "If they are real, save them without compression."
        )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
