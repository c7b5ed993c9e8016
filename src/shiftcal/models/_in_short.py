"""A model in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from shiftcal.models.preprocessing import Preprocessing


def in_short(
    kind: str, spec: str | None, classes: Sequence[str] | None, preprocessing: Preprocessing
) -> str:
    """Such as ``<OnnxModel onnx:/x/net.onnx, classes: 10 named, preprocessing: crop 224>``.

    Args:
        kind: Name of the adapter.
        spec: The text it was made from.
        classes: Names of its classes.
        preprocessing: Of which settings that are not the default are said.
    """
    named = f"{kind} {spec}" if spec else kind
    known = "not named" if classes is None else f"{len(classes)} named"
    return f"<{named}, classes: {known}, preprocessing: {_settings(preprocessing)}>"


def _settings(preprocessing: Preprocessing) -> str:
    said = [
        f"{field.name} {_value(getattr(preprocessing, field.name))}"
        for field in fields(preprocessing)
        if not _same(getattr(preprocessing, field.name), field.default)
    ]
    return ", ".join(said) or "pixels from 0 to 1"


def _same(value: object, default: object) -> bool:
    """Whether a setting is the default one, for however many channels."""
    if isinstance(value, tuple) and isinstance(default, tuple):
        return set(value) == set(default)
    return value == default


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{number:.4g}" for number in value)
    return str(value)
