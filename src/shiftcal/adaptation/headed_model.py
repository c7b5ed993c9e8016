"""A frozen backbone and the heads that were trained on its features, as one model of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.feature_model import FeatureModel
from shiftcal.adaptation.network import Classifier
from shiftcal.adaptation.passes import Pass
from shiftcal.adaptation.weights import weights_digest
from shiftcal.models._fingerprint import digest
from shiftcal.models._wrapped import WrappedModel

# Rows that go through the heads at once.
_ROWS = 4096


class HeadedModel(WrappedModel):
    """From images to logits by way of frozen features; what the bottleneck gives are its features.

    Args:
        model: The backbone.
        classifier: The heads, from features to logits.
        classes: Names of the classes, if they are known.
    """

    def __init__(
        self, model: FeatureModel, classifier: Classifier, *, classes: Sequence[str] | None = None
    ) -> None:
        super().__init__(model, classes=classes)
        self.classifier = classifier

    def _identity(self) -> Iterable[str] | None:
        inner = self.model.fingerprint
        return None if inner is None else _parts(inner, self.classifier)

    def _forward(self, batch: NDArray[Any]) -> Any:
        _, features = self.model._forward(batch)
        made = run_heads(self.classifier, features)
        return made.logits, made.features


def headed_fingerprint(backbone: str, classifier: Classifier) -> str:
    """The fingerprint of a :class:`HeadedModel` whose backbone has the given one."""
    return digest(["logits", *_parts(backbone, classifier)])


def run_heads(classifier: Classifier, features: NDArray[Any]) -> Pass:
    """Bottleneck features and logits of frozen features, in evaluation mode.

    Args:
        classifier: The heads; left in the mode they are in.
        features: ``(n, d)``, in memory or on disk.

    Returns:
        Arrays of float32.
    """
    device = next(classifier.parameters()).device
    before = classifier.training
    classifier.eval()
    try:
        with torch.inference_mode():
            parts = [
                # A copy: torch takes no array that must not be written.
                classifier.both(torch.from_numpy(np.array(some, np.float32)).to(device))
                for some in (
                    features[start : start + _ROWS] for start in range(0, len(features), _ROWS)
                )
            ]
    finally:
        classifier.train(before)
    columns = zip(*parts, strict=True)
    return Pass(*(torch.cat(column).float().cpu().numpy() for column in columns))


def _parts(backbone: str, classifier: Classifier) -> list[str]:
    """What decides the outputs: the backbone, and the heads by their layers and weights."""
    return ["adapted", backbone, str(classifier), weights_digest(classifier)]
