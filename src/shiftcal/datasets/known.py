"""A published data set by its name: its loader, and what is known of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from shiftcal.datasets import _CATALOG
from shiftcal.datasets.about import About
from shiftcal.datasets.base import ImageSet


def known(name: str) -> tuple[str, Callable[..., ImageSet], About]:
    """The name as it is listed, the function that loads the data set, and what is known of it.

    Raises:
        UnknownName: With the nearest names there are.
    """
    load: Any = _CATALOG.get(name)
    listed = name.replace("_", "-").lower()
    module = importlib.import_module(f"{_CATALOG.package}.{listed.replace('-', '_')}")
    return listed, load, module.ABOUT
