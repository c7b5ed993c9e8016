"""A fitted calibration for ONNX, PyTorch or scikit-learn.

:func:`to_onnx` writes it into a network's graph, :class:`CalibratedModule` is a PyTorch module and
:class:`CalibratedClassifier` a scikit-learn classifier. Each is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.lazy import lazy

if TYPE_CHECKING:
    from shiftcal.export.onnx import OnnxExport, to_onnx
    from shiftcal.export.pytorch import CalibratedModule
    from shiftcal.export.sklearn import CalibratedClassifier

__all__ = ["CalibratedClassifier", "CalibratedModule", "OnnxExport", "to_onnx"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "onnx": "OnnxExport to_onnx",
        "pytorch": "CalibratedModule",
        "sklearn": "CalibratedClassifier",
    },
)
