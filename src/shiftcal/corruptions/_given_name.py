"""The name of a corruption that is given by the user: files are called by it."""

from __future__ import annotations

import re

from shiftcal.errors import InputError


def check_name(name: object) -> str:
    """``name`` if a file can be called by it."""
    if name == "labels":
        raise InputError("name must not be 'labels', which is the file of labels. Pass another.")
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        return name
    raise InputError(
        f"name must be made of letters, digits, '_', '-' and '.', since files are called by it; "
        f"got {name!r}."
    )
