"""Toys that must be fetched by hand."""

from __future__ import annotations

from dataclasses import replace

from toy_catalog import toys as _toys

ABOUT = replace(
    _toys.ABOUT, title="Other Toys", downloads=(), by_hand="Ask the maker of the toys for them."
)
toys_by_hand = _toys.toys
