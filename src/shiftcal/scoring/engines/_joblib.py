"""What joblib brings along, wherever the installed version keeps it."""

from __future__ import annotations

import importlib
from typing import Any


def part_of_joblib(module: str) -> Any:
    """A module of loky or cloudpickle: joblib has them inside, or requires them, by version.

    Args:
        module: Dotted name, such as ``"loky.backend.resource_tracker"``.
    """
    try:
        return importlib.import_module(f"joblib.externals.{module}")
    except ModuleNotFoundError:
        return importlib.import_module(module)
