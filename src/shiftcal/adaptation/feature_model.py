"""A model of which only the features are wanted: the frozen backbone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError
from shiftcal.models import Model, TorchModel, as_model
from shiftcal.models._features import as_features
from shiftcal.models._wrapped import WrappedModel
from shiftcal.scoring.kept_features import may_give_features

_NONE = (
    "a frozen backbone must give features; this model {}. Name the layer they are taken from: "
    "features_from=..., in a text ?features_from=LAYER."
)


class FeatureModel(WrappedModel):
    """The features that a model gives; its logits are replaced by two columns of nothing.

    Scoring stores logits beside features, and a thousand columns that nobody asks for would take
    as much room as the features.

    Args:
        model: A model that gives features beside its logits.
        bare: Whether what it gives in the place of logits are the features.
    """

    def __init__(self, model: Model, *, bare: bool = False) -> None:
        super().__init__(model)
        self.bare = bare
        self.spec = model.spec

    def _identity(self) -> Iterable[str] | None:
        inner = self.model.fingerprint
        return None if inner is None else ("features", inner, str(self.bare))

    def _forward(self, batch: NDArray[Any]) -> Any:
        made = self.model._forward(batch)
        if isinstance(made, tuple) == self.bare:
            raise InputError(_NONE.format("gives none beside its logits"))
        features = as_features(made if self.bare else made[1], name="the backbone")
        return np.zeros((len(batch), 2), np.float32), features


def as_feature_model(backbone: object) -> FeatureModel:
    """The frozen backbone of whatever can be one.

    Args:
        backbone: A :class:`FeatureModel`, which is given back; a model of any kind that gives
            features, or the text of one, such as ``"net.onnx?features_from=pool"``; or whatever
            :func:`make_backbone` takes.

    Raises:
        InputError: If it gives no features.
    """
    if isinstance(backbone, FeatureModel):
        return backbone
    from shiftcal.adaptation.backbones.make import NAMES, make_backbone

    text = isinstance(backbone, str | Path)
    given = as_model(backbone) if text and backbone not in NAMES else backbone
    if isinstance(given, Model):
        if may_give_features(given):
            return FeatureModel(given)
        if not isinstance(given, TorchModel):
            raise InputError(_NONE.format("was not asked for any"))
    found = make_backbone(given)
    model = TorchModel(found.module, preprocessing=found.preprocessing)
    model.spec = found.spec
    return FeatureModel(model, bare=True)
