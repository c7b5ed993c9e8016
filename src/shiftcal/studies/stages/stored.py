"""Scores that an earlier run stored: whether they can be gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.errors import FileError
from shiftcal.surrogates.folder import digest_of, read_document

_DECIDING = ("model", "images", "labels", "n_classes", "dtype", "seed", "table", "shard_size")
_OF_MODEL = ("fingerprint", "engine", "preprocessing", "batch_size")
_OF_SET = ("file", "name", "key", "sha256", "corruption", "severity")


def read_bank(bank: Path) -> dict[str, Any] | None:
    """What the document of the source's scores says; ``None`` if nothing is finished there.

    Raises:
        FileError: If it is damaged, naming the folder to be removed.
    """
    file = bank / "bank.json"
    if not file.exists():
        return None
    try:
        document = read_document(bank)
        _check(document)
    except (FileError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{file} is damaged, or was written by a newer shiftcal, and the scores beside it "
            f"cannot be used without. Remove the folder {bank}, and run the same command again: "
            "its images are scored again."
        ) from error
    return document


def _check(document: dict[str, Any]) -> None:
    """Raises KeyError or TypeError if something is missing that is looked at."""
    origin = document["origin"]
    for name in _DECIDING:
        origin[name]
    for name in _OF_MODEL:
        origin["model"][name]
    origin["images"]["digest"]
    if type(origin["model"]["batch_size"]) is not int:
        raise TypeError("batch_size")
    for entry in document["sets"]:
        for name in _OF_SET:
            entry[name]


@contextmanager
def as_images_of_a_run(bank: Path) -> Iterator[None]:
    """Say in terms of a run that its images are others now; the bank would speak of a bank."""
    try:
        yield
    except FileError as error:
        for what in ("images", "labels"):
            if str(error).startswith(f"{bank} holds a bank with {what} "):
                raise FileError(
                    f"the {what} of this run have changed since it was scored: they are not those "
                    f"whose scores are in {bank}. Name a new folder for the run, or put the "
                    f"{what} back that were there."
                ) from error
        raise


def drop_replaced(file: Path) -> None:
    """Remove a scores file that is not the one that was written, so that it is made again.

    Raises:
        FileError: If it cannot be removed.
    """
    known = known_digest(file)
    if known is None:
        return
    try:
        if file.exists() and digest_of(file) != known:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(
            f"{file} is damaged or was replaced, and could not be removed: "
            f"{error.strerror or error}."
        ) from error


def known_digest(file: Path) -> str | None:
    """The digest that was written down for a scores file, if one was."""
    with suppress(OSError, ValueError, IndexError):
        return _beside(file).read_text("utf-8").split()[0]
    return None


def note_digest(file: Path) -> str:
    """The digest of a scores file, written down beside it as ``sha256sum`` does.

    Raises:
        FileError: If it cannot be read or written.
    """
    try:
        digest = digest_of(file)
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    if known_digest(file) != digest:
        with atomic_write(_beside(file), durable=False) as temporary:
            temporary.write_text(f"{digest}  {file.name}\n", "utf-8")
    return digest


def _beside(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")
