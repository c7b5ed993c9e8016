"""Entries that plans of every kind have."""

from __future__ import annotations

import re

from shiftcal.errors import InputError
from shiftcal.studies.plan.tables import TomlTable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def spelled(corruption: str) -> str:
    """A published name as files and records have it: ``Defocus-Blur`` is ``defocus_blur``."""
    from shiftcal import corruptions

    usual = corruption.replace("-", "_").lower()
    return usual if usual in corruptions.names() else corruption


def needed(table: TomlTable, name: str) -> tuple[str, ...]:
    """A list of texts that must be there, none of them empty; one text is a list of one."""
    found = table.texts(name)
    if not found or not all(found):
        raise InputError(f"{table.where} needs {name} = ...; it was not given.")
    return found


def file_name(table: TomlTable, name: str) -> str:
    """A word by which files are called."""
    found = table.word(name)
    if not _NAME.fullmatch(found):
        raise InputError(
            f"{table.where} {name} must be letters, digits, '-', '_' and '.'; got {found!r}. What "
            "is shown is the title."
        )
    return found
