"""A bank on disk: a folder with ``bank.json`` and one scores file per set, in order."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal.checks import check_features, check_labels
from shiftcal.errors import FileError, InputError
from shiftcal.files import checksum_of, flush_file, flush_folder, parsing
from shiftcal.scores import Scores, read_scores, write_scores
from shiftcal.surrogates.bank import SurrogateBank, SurrogateSet

FORMAT = "shiftcal-bank"
VERSION = 1
_KIND, _FIX = "the description of a bank", "Make the bank again, in a new folder."


def bank_from_files(
    paths: Sequence[str | os.PathLike[str]], *, normalize: bool = False
) -> SurrogateBank:
    """A bank from scores files with labels, the clean set first.

    Raises:
        InputError: If they differ in kind, in classes or in their order, or lack labels.
    """
    if isinstance(paths, (str, os.PathLike)):
        raise InputError(
            f"paths must be a list of scores files, the clean set first; got {str(paths)!r}. "
            "For one file pass [path]; a bank folder is read by SurrogateBank.load."
        )
    if not paths:
        raise InputError("a surrogate bank needs at least one scores file: the clean set.")
    files = [Path(path) for path in paths]
    scores = [read_scores(file, normalize=normalize) for file in files]
    for file, other in zip(files[1:], scores[1:], strict=True):
        _check_alike(files[0], scores[0], file, other)
    sets = [
        _surrogate_set(
            file,
            s,
            name=file.stem,
            corruption=None,
            severity=None if j else 0,
        )
        for j, (file, s) in enumerate(zip(files, scores, strict=True))
    ]
    return SurrogateBank(sets, classes=scores[0].classes, input=scores[0].input)


def save_bank(bank: SurrogateBank, folder: str | os.PathLike[str], *, durable: bool = True) -> None:
    """Write a bank to a new folder, whole or not at all.

    Args:
        bank: The bank.
        folder: Where to.
        durable: As for :func:`shiftcal.write_scores`.

    Raises:
        FileError: If the folder exists and holds something, or cannot be written.
    """
    target = Path(folder)
    if not target.name:
        raise FileError(f"{target} has no name that could be given to a bank. Name a new folder.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError(f"{target} exists already. Remove it, or name a new folder for the bank.")
    temporary = target.with_name(f".shiftcal-{secrets.token_hex(6)}.tmp")
    try:
        temporary.mkdir()
        entries = [_save_set(s, j, temporary, durable=durable) for j, s in enumerate(bank)]
        document = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"shiftcal {version('shiftcal')}",
            "input": bank.input,
            "classes": bank.classes,
            **({} if bank.origin is None else {"origin": bank.origin}),
            "sets": entries,
        }
        (temporary / "bank.json").write_text(document_text(document), "utf-8")
        if durable:
            flush_file(temporary / "bank.json")
        if target.exists():
            target.rmdir()
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"{target} could not be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    if durable:
        flush_folder(target.parent)


def load_bank(folder: str | os.PathLike[str], *, normalize: bool = False) -> SurrogateBank:
    """Read a bank back.

    Raises:
        FileError: If a file is missing, damaged or from a newer version.
    """
    source = Path(folder)
    document = read_document(source)
    with parsing(source / "bank.json", _KIND, fix=_FIX):
        sets = [_load_set(entry, source, normalize=normalize) for entry in document["sets"]]
        return SurrogateBank(
            sets,
            classes=document["classes"],
            input=document["input"],
            origin=document.get("origin"),
        )


def read_document(source: Path) -> dict[str, Any]:
    """What ``bank.json`` of a folder says.

    Raises:
        FileError: If it cannot be read, or is of another kind or a newer version.
    """
    file = source / "bank.json"
    try:
        with parsing(file, _KIND, fix=_FIX):
            return _checked(file, json.loads(file.read_bytes()))
    except FileError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        if (source / ".work").is_dir():
            raise FileError(
                f"{source} holds a bank that is not finished. The command that began it, given "
                "again, goes on with it."
            ) from error
        raise FileError(
            f"{source} is not a bank folder: {file} could not be read "
            f"({error.__cause__.strerror}). A bank is a folder with bank.json and its scores files."
        ) from error


def document_text(document: dict[str, Any]) -> str:
    """What to write to ``bank.json``, with a checksum of its content."""
    document = {name: value for name, value in document.items() if name != "checksum"}
    document["checksum"] = checksum_of(document)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _checked(file: Path, document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileError(f"{file} does not describe a bank: it has no format {FORMAT!r}.")
    written = document.get("version")
    if type(written) is not int or not 1 <= written <= VERSION:
        raise FileError(
            f"{file} has format version {written!r}, written by {document.get('written_by')}; this "
            f"is shiftcal {version('shiftcal')}, which reads up to version {VERSION}. Upgrade "
            "shiftcal to read it."
        )
    # A document made by hand, or before there were checksums, has none.
    if "checksum" in document and document.pop("checksum") != checksum_of(document):
        raise FileError(
            f"{file} is damaged or was edited: its checksum does not fit its content. {_FIX} If "
            "you edited it, remove its checksum."
        )
    return document


def _save_set(
    surrogate: SurrogateSet, position: int, folder: Path, *, durable: bool
) -> dict[str, Any]:
    name = f"set-{position:02d}.npz"
    scores = Scores(
        values=surrogate.logits,
        input="logits",
        labels=surrogate.labels,
        features=surrogate.features,
    )
    write_scores(folder / name, scores, durable=durable)
    return {
        "file": name,
        "name": surrogate.name,
        "corruption": surrogate.corruption,
        "severity": surrogate.severity,
        "sha256": digest_of(folder / name),
    }


def _load_set(entry: dict[str, Any], folder: Path, *, normalize: bool) -> SurrogateSet:
    name = entry["file"]
    if Path(name).name != name:
        raise FileError(f"{folder / 'bank.json'} names {name!r}, which is not a file beside it.")
    file = folder / name
    scores = read_scores(file, normalize=normalize)
    # A folder made by hand need not name it.
    if "sha256" in entry and entry["sha256"] != digest_of(file):
        raise FileError(f"{file} is damaged or was replaced: its checksum is not the bank's.")
    return _surrogate_set(
        file,
        scores,
        name=str(entry["name"]),
        corruption=None if entry["corruption"] is None else str(entry["corruption"]),
        severity=entry["severity"],
    )


def _surrogate_set(
    file: Path, scores: Scores, *, name: str, corruption: str | None, severity: int | None
) -> SurrogateSet:
    if scores.labels is None:
        raise InputError(
            f"{file} has no labels, and a surrogate set needs them: they are the calibration "
            "samples' own, which corruption does not change."
        )
    logits = scores.logits()  # its errors name the file
    try:
        labels = check_labels(scores.labels, n=logits.shape[0], k=logits.shape[1])
        features = scores.features
        if features is not None:
            features = check_features(features, name="features", n=len(logits))
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    return SurrogateSet(logits, labels, name, corruption, severity, features)


def _check_alike(first: Path, a: Scores, second: Path, b: Scores) -> None:
    if a.input != b.input:
        raise InputError(
            f"the sets of a bank must be of one kind: {first} holds {a.input}, {second} holds "
            f"{b.input}."
        )
    if a.classes is not None and b.classes is not None and a.classes != b.classes:
        raise InputError(
            f"the sets of a bank must have the same classes in the same order; {second} differs "
            f"from {first}."
        )


def digest_of(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
