"""Backbones: networks from images to features, which training goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.adaptation.backbones.base import Backbone
    from shiftcal.adaptation.backbones.make import make_backbone

__all__ = ["Backbone", "make_backbone"]


def __getattr__(name: str) -> Any:
    if name == "Backbone":
        from shiftcal.adaptation.backbones.base import Backbone

        return Backbone
    if name == "make_backbone":
        from shiftcal.adaptation.backbones.make import make_backbone

        return make_backbone
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
