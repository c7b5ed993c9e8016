"""Calibration in every validation of a Lightning trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shiftcal import plot
from shiftcal.errors import InputError, require

_Callback: Any = require(
    "lightning.pytorch.callbacks", extra="lightning", needed_by="CalibrationCallback"
).Callback


class CalibrationCallback(_Callback):
    """Logs ECE, NLL, Brier score, accuracy and mean confidence of every validation, with a figure.

    ``validation_step`` must return a dict with logits ``(n, k)`` and labels ``(n,)``. The numbers
    are those of the rows of all processes. The reliability diagram goes to loggers that take
    figures: TensorBoard, Weights & Biases and MLflow. Of several validation sets each has its own.

    Args:
        logits: Key of the logits.
        labels: Key of the labels.
        prefix: Comes before the names: ``val_ece``; the figure is ``val_reliability``.
        figure: Whether to draw, which needs matplotlib.
    """

    def __init__(
        self,
        *,
        logits: str = "logits",
        labels: str = "labels",
        prefix: str = "val_",
        figure: bool = True,
    ) -> None:
        self.logits = logits
        self.labels = labels
        self.prefix = prefix
        self.figure = figure
        self.metrics: dict[int, Any] = {}  # CalibrationMetrics of every validation set

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget the rows of the last validation."""
        self.metrics = {}

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Count the rows of a batch."""
        if not isinstance(outputs, Mapping) or not {self.logits, self.labels} <= outputs.keys():
            keys = list(outputs) if isinstance(outputs, Mapping) else type(outputs).__name__
            raise InputError(
                f"validation_step must return a dict with {self.logits!r} and {self.labels!r}; got "
                f"{keys}. CalibrationCallback(logits=..., labels=...) names other keys."
            )
        from shiftcal.integrations.torchmetrics import CalibrationMetrics

        z = outputs[self.logits]
        if dataloader_idx not in self.metrics:
            self.metrics[dataloader_idx] = CalibrationMetrics(z.shape[1]).to(z.device)
        self.metrics[dataloader_idx].update(z, outputs[self.labels])

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the numbers, and draw."""
        for number, metric in sorted(self.metrics.items()):
            end = f"_{number}" if len(self.metrics) > 1 else ""
            values = {f"{self.prefix}{name}{end}": x for name, x in metric.compute().items()}
            pl_module.log_dict(values, sync_dist=True)  # the same numbers everywhere
            if self.figure and not trainer.sanity_checking:
                table = metric.statistics().bin_table()
                if trainer.is_global_zero:
                    _log_figure(trainer, f"{self.prefix}reliability{end}", table)


def _log_figure(trainer: Any, name: str, table: Any) -> None:
    figures = require("matplotlib.figure", extra="plot", needed_by="CalibrationCallback")
    figure = figures.Figure(figsize=(4.8, 4.8), layout="constrained")
    plot.reliability(table, ax=figure.subplots(), label=f"epoch {trainer.current_epoch}")
    for logger in trainer.loggers:
        experiment = logger.experiment
        if hasattr(experiment, "add_figure"):  # TensorBoard
            experiment.add_figure(name, figure, global_step=trainer.global_step)
        elif hasattr(experiment, "log_figure"):  # MLflow
            experiment.log_figure(logger.run_id, figure, f"{name}-{trainer.global_step}.png")
        elif hasattr(logger, "log_image"):  # Weights & Biases
            logger.log_image(name, [figure], step=trainer.global_step)
