"""A table written in every format."""

from __future__ import annotations

import os
import re
from pathlib import Path

from shiftcal._files import atomic_write
from shiftcal.errors import FileError, InputError
from shiftcal.report.tables.csv import to_csv
from shiftcal.report.tables.latex import to_latex
from shiftcal.report.tables.markdown import to_markdown
from shiftcal.report.tables.table import Table

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write_table(table: Table, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write ``<name>.md``, ``<name>.csv`` and ``<name>.tex``, each whole or not at all.

    The same table gives the same bytes, everywhere. All texts are made before the first file is
    touched. The label in LaTeX is ``tab:<name>``.

    Args:
        table: What to write.
        folder: Made if it is not there.
        name: Of the files, without an ending.

    Returns:
        The files written, in that order.

    Raises:
        InputError: If the name is not one for a file on every system.
        FileError: If a file cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            "name of a table must be of letters, digits and any of . _ - with a letter or digit "
            f"first; got {name!r}. Name the folder apart from it."
        )
    texts = {
        "md": to_markdown(table),
        "csv": to_csv(table),
        "tex": to_latex(table, label=f"tab:{name}"),
    }
    files = [_made(Path(folder)) / f"{name}.{ending}" for ending in texts]
    for file, text in zip(files, texts.values(), strict=True):
        with atomic_write(file) as temporary:
            # As bytes: writing text would change the ends of lines on some systems.
            temporary.write_bytes(text.encode())
    return files


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"the folder {folder} of a table could not be made: {error.strerror}. "
            "Name another, or make room for it."
        ) from error
    return folder
