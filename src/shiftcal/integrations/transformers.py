"""Pipelines of transformers whose scores are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal import maps, methods
from shiftcal.errors import InputError, NotFittedError
from shiftcal.maps import Map
from shiftcal.methods import Method, Selection
from shiftcal.persistence import clone
from shiftcal.surrogates import SurrogateBank


class CalibratedPipeline:
    """A pipeline for texts, images or audio that returns calibrated probabilities.

    Args:
        pipeline: A classification pipeline, ``transformers.pipeline("text-classification", ...)``,
            whose model gives one logit for each of two or more classes.
        calibration: A method or map of logits, fitted or not, or the name of one.

    Attributes:
        classes: Names of the classes, in the order of the model's logits.
        calibration: The fitted calibration.
    """

    def __init__(self, pipeline: Any, calibration: Method | Map | str = "rehearsal") -> None:
        config = pipeline.model.config
        self.classes = tuple(config.id2label[i] for i in range(config.num_labels))
        single = getattr(config, "problem_type", None) in (None, "single_label_classification")
        if len(set(self.classes)) < max(2, config.num_labels) or not single:
            raise InputError(
                "pipeline must have a model of two or more classes that exclude each other, with "
                f"different names; got {config.problem_type} of {self.classes[:10]}."
            )
        self.pipeline = pipeline
        if isinstance(calibration, str):
            calibration = (maps if calibration in maps.names() else methods).get(calibration)()
        self.calibration: Any = calibration

    def logits(self, inputs: Sequence[Any], **options: Any) -> NDArray[np.float64]:
        """Logits ``(n, k)`` of inputs; options are the pipeline's, such as ``batch_size``."""
        every = {"top_k": len(self.classes), "function_to_apply": "none"}
        rows = [
            {entry["label"]: entry["score"] for entry in result}
            for result in self.pipeline(list(inputs), **every, **options)
        ]
        return np.array([[row[name] for name in self.classes] for row in rows], dtype=np.float64)

    def fit(
        self,
        inputs: Sequence[Any],
        labels: object,
        *,
        corruption: object,
        severities: Sequence[int] | int | None = None,
        seed: int = 0,
    ) -> Self:
        """Fit the calibration on inputs that the model was not trained on, and corrupted copies.

        Args:
            inputs: Whatever the pipeline takes.
            labels: ``(n,)`` names of classes, or indices.
            corruption: As for :meth:`shiftcal.SurrogateBank.from_inputs`: ``"typos"`` for texts, a
                function for images.
            severities: Which ones; default: all.
            seed: Of the corruptions.
        """
        bank = SurrogateBank.from_inputs(
            self.logits,
            list(inputs),
            labels,
            corruption=corruption,
            severities=severities,
            seed=seed,
            classes=self.classes,
        )
        fresh = clone(self.calibration)
        is_map = isinstance(fresh, Map)
        fresh = fresh.fit(bank.clean.logits, bank.clean.labels) if is_map else fresh.fit(bank)
        self.calibration = fresh
        return self

    def adapt(self, inputs: Sequence[Any], **options: Any) -> Selection:
        """Show unlabelled inputs of the target to the method; what it chose."""
        if not isinstance(self.calibration, Method):
            raise InputError(f"a method adapts to a target; {self.calibration.name!r} is a map.")
        return self.calibration.adapt(self.logits(inputs, **options))

    def __call__(self, inputs: Any, *, top_k: int | None = None, **options: Any) -> Any:
        """``{"label", "score"}`` of every class, the most probable first: a list for each input.

        Args:
            inputs: A list; or one input, which gives one such list.
            top_k: How many classes; default: all.
            **options: The pipeline's.
        """
        if not hasattr(self.calibration, "n_classes_"):
            raise NotFittedError("this CalibratedPipeline is not fitted yet; call fit first.")
        many = isinstance(inputs, list | tuple)
        probs = self.calibration.predict_proba(self.logits(inputs if many else [inputs], **options))
        results = [
            [{"label": self.classes[j], "score": float(row[j])} for j in order[:top_k]]
            for row, order in zip(probs, np.argsort(-probs, axis=1, kind="stable"), strict=True)
        ]
        return results if many else results[0]
