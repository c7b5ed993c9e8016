"""Reading a scores file, whatever its format."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from shiftcal._registry import suggest
from shiftcal.errors import FileError
from shiftcal.scores._opening import find, parsing
from shiftcal.scores._scores import Scores

# A suffix is also the name of the module that knows the format.
READABLE = (".npz", ".npy", ".csv", ".parquet", ".safetensors")


def read_scores(path: str | os.PathLike[str]) -> Scores:
    """The scores in a file; its suffix says the format.

    ``.npz``, ``.npy`` (with its siblings), ``.csv``, ``.parquet`` and ``.safetensors`` are read, as
    the page on file formats describes. Nothing is unpickled. Large ``.npy`` arrays stay on disk.

    Args:
        path: The file.

    Raises:
        FileError: If it is missing, damaged, of another kind, or contradicts itself.
        MissingExtra: If the format needs a package that is not installed.
    """
    file = find(path)
    module = format_of(file, READABLE)
    # Only a lack of memory is left to catch: the modules catch what damaged bytes lead to.
    with parsing(file, "a scores file", errors=()):
        scores: Scores = module.read(file)
    return scores


def format_of(path: Path, suffixes: tuple[str, ...]) -> Any:
    """The module of the format that the suffix names.

    Raises:
        FileError: If it is not one of ``suffixes``.
    """
    suffix = path.suffix.lower()
    if suffix == ".tsv":
        raise FileError(
            f"{path} must be separated by commas, not tabs. Save it with commas, as .csv."
        )
    if suffix not in suffixes:
        raise FileError(
            f"{path} must end in the suffix of its format; got {path.suffix!r}. "
            f"{suggest(suffix, suffixes)}"
        )
    return importlib.import_module(f"shiftcal.scores.{suffix[1:]}")
