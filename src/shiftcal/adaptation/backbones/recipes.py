"""Recipes that belong to a backbone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Networks that begin with nothing cannot do with settings that are made for published weights.
_RECIPES: Mapping[str, str] = MappingProxyType({"digits-cnn": "digits"})


def recipe_of(backbone: object) -> str | None:
    """The recipe for a backbone, where it has one; ``None`` where the data set decides."""
    return _RECIPES.get(backbone) if isinstance(backbone, str) else None
