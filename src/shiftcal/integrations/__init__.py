"""shiftcal inside other libraries; each of these needs the library it is named after.

:class:`CalibrationMetrics` is a torchmetrics metric, :class:`CalibrationCallback` a callback for
Lightning, :class:`CalibratedPipeline` goes around a pipeline of transformers, and the functions of
:mod:`shiftcal.integrations.mlflow` log to MLflow. For scikit-learn there is
:class:`~shiftcal.export.CalibratedClassifier`. Each is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.lazy import lazy

if TYPE_CHECKING:
    from shiftcal.integrations import mlflow
    from shiftcal.integrations.lightning import CalibrationCallback
    from shiftcal.integrations.torchmetrics import CalibrationMetrics
    from shiftcal.integrations.transformers import CalibratedPipeline

__all__ = ["CalibratedPipeline", "CalibrationCallback", "CalibrationMetrics", "mlflow"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "lightning": "CalibrationCallback",
        "torchmetrics": "CalibrationMetrics",
        "transformers": "CalibratedPipeline",
    },
    modules="mlflow",
)
