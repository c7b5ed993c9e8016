"""Which packages shiftcal asks for, by its own metadata, and which of them are here."""

from __future__ import annotations

import importlib
import re
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

# A line such as: pillow>=10.3; extra == 'images'
_REQUIREMENT = re.compile(
    r"^(?P<name>[\w.-]+)(\[(?P<extras>[\w, -]+)\])?\s*(?P<bounds>[^;]*)(;(?P<marker>.*))?$"
)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")
# What is imported, where it is not what pip calls it.
_MODULES = {
    "scikit-learn": "sklearn",
    "pillow": "PIL",
    "prometheus-client": "prometheus_client",
}
# Extras for work on shiftcal itself, and the one that is all others.
_NOT_SHOWN = {"dev", "all"}


@dataclass(frozen=True)
class Package:
    """A package that is asked for.

    Attributes:
        name: As pip calls it.
        least: The version that is needed at least.
        installed: The version that is here, ``None`` if there is none.
        problem: Why it cannot be used; empty if it can.
    """

    name: str
    least: str
    installed: str | None
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def required(*, imported: bool) -> dict[str, list[Package]]:
    """Packages by the extra that brings them, ``""`` for those that are always needed.

    Args:
        imported: Whether to import what is installed, which finds broken installations.
    """
    found: dict[str, list[Package]] = {}
    for text in metadata.requires("shiftcal") or []:
        parts = _REQUIREMENT.match(text)
        if parts is None or parts["extras"]:  # an extra that is made of others
            continue
        marker = _EXTRA.search(parts["marker"] or "")
        extra = marker[1] if marker else ""
        if extra not in _NOT_SHOWN:
            least = _least(parts["bounds"])
            found.setdefault(extra, []).append(_package(parts["name"], least, imported=imported))
    return found


def _package(name: str, least: str, *, imported: bool) -> Package:
    try:
        here = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Package(name, least, None, "not installed")
    problem = f"older than {least}" if _number(here) < _number(least) else ""
    if imported and not problem:
        problem = _import_problem(_MODULES.get(name.lower(), name.replace("-", "_")))
    return Package(name, least, here, problem)


def _import_problem(module: str) -> str:
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever a broken package raises
        return f"import fails: {type(error).__name__}: {error}"
    return ""


def _least(bounds: str) -> str:
    found = re.search(r">=\s*([\w.]+)", bounds)
    return found[1] if found else "0"


def _number(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without zeros at the end: (2, 13) of ``2.13.0+cpu``."""
    leading = re.split(r"[^\d.]", version, maxsplit=1)[0]
    numbers = [int(part) for part in leading.split(".") if part]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
