"""A fitted calibration for ONNX, PyTorch or scikit-learn.

:func:`to_onnx` writes it into a network's graph, :class:`CalibratedModule` is a PyTorch module and
:class:`CalibratedClassifier` a scikit-learn classifier. Each is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.export.onnx import OnnxExport, to_onnx
    from shiftcal.export.pytorch import CalibratedModule
    from shiftcal.export.sklearn import CalibratedClassifier

# Public name -> the module it is imported from on first use.
_WHERE = {
    "CalibratedClassifier": "sklearn",
    "CalibratedModule": "pytorch",
    "OnnxExport": "onnx",
    "to_onnx": "onnx",
}

__all__ = ["CalibratedClassifier", "CalibratedModule", "OnnxExport", "to_onnx"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"shiftcal.export.{_WHERE[name]}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted(__all__)
