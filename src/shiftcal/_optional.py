"""Optional packages: imported where they are used, with an error that says what to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from shiftcal.errors import MissingExtra


def require(module: str, *, extra: str, needed_by: str) -> ModuleType:
    """Import ``module``, or say which extra brings it.

    Args:
        module: Importable name, such as ``"pyarrow.parquet"``.
        extra: The extra of shiftcal that installs it.
        needed_by: What the user asked for, as the subject of the message.

    Raises:
        MissingExtra: If the package is absent. A package that is there but broken
            raises its own error untouched.
    """
    return _imported(module, needed_by=needed_by, install=f"'shiftcal[{extra}]'")


def require_package(module: str, *, package: str, needed_by: str) -> ModuleType:
    """Import ``module`` of a package that no extra brings, or say how it is installed.

    Args:
        module: Importable name, such as ``"timm.data"``.
        package: What pip calls the package.
        needed_by: What the user asked for, as the subject of the message.

    Raises:
        MissingExtra: As for :func:`require`.
    """
    return _imported(module, needed_by=needed_by, install=package)


def _imported(module: str, *, needed_by: str, install: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise MissingExtra(
            f"{needed_by} needs {package}, which is not installed. Run: pip install {install}"
        ) from error
