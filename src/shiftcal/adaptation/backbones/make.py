"""From a name, a text or a module to a backbone."""

from __future__ import annotations

import copy
import re
from typing import Any

from shiftcal._registry import suggest
from shiftcal.adaptation._torch import nn
from shiftcal.adaptation.backbones.base import Backbone, reference_preprocessing
from shiftcal.adaptation.backbones.digits import PREPROCESSING as DIGITS
from shiftcal.adaptation.backbones.digits import digits_cnn
from shiftcal.adaptation.backbones.headless import Features, without_head
from shiftcal.adaptation.backbones.named import CLASSIFIERS
from shiftcal.adaptation.backbones.trial import (
    as_evaluated,
    count_features,
    leave_out_unused,
    trial_images,
)
from shiftcal.errors import InputError, UnknownName
from shiftcal.models import Model, TorchModel, as_model
from shiftcal.models.preprocessing import Preprocessing

NAMES = (*CLASSIFIERS, "digits-cnn")


def make_backbone(
    spec: Any, *, pretrained: bool = True, preprocessing: Preprocessing | None = None
) -> Backbone:
    """A network from images to features, to be trained further.

    Args:
        spec: ``"resnet50"`` or ``"resnet101"``, of torchvision or timm; ``"efficientnet-lite0"``;
            ``"digits-cnn"``. Or the text of a classifier, as for :func:`as_model`: features are
            what its layer ``features_from`` gives, averaged over positions, or else what goes into
            its last linear layer. Or a PyTorch module, whose output is the features; a copy of it
            is trained.
        pretrained: Whether a bare name comes with its published weights. A text says its own.
        preprocessing: What images go through when the network is evaluated. By default what the
            model says, and for bare names and modules that say nothing what the reference library
            does: 256 x 256, its centre of 224 x 224, and ImageNet's mean and deviation.

    Raises:
        UnknownName: If nothing has that name.
        MissingExtra: If a package is not installed.
        InputError: If gradients cannot go through the model, or it gives no features.
    """
    if isinstance(spec, str) and spec in NAMES:
        return _named(spec, pretrained, preprocessing)
    if isinstance(spec, str) and re.fullmatch(r"[\w-]+", spec):
        raise UnknownName(
            f"no backbone is called {spec!r}. {suggest(spec, NAMES)} Others are named as models "
            "are, such as timm:resnet50 or torch:package.module:factory."
        )
    if isinstance(spec, nn.Module):
        carried = getattr(spec, "preprocessing", None)
        if preprocessing is None and isinstance(carried, Preprocessing):
            preprocessing = carried
        module = Features(copy.deepcopy(spec))
        return _finished(module, preprocessing or reference_preprocessing(), None)
    return _of_model(as_model(spec), preprocessing)


def _named(name: str, pretrained: bool, preprocessing: Preprocessing | None) -> Backbone:
    if name == "digits-cnn":
        return _finished(Features(digits_cnn()), preprocessing or DIGITS, name)
    network, own = CLASSIFIERS[name](name, pretrained)
    return _headless(network, preprocessing or own, name)


def _of_model(model: Model, preprocessing: Preprocessing | None) -> Backbone:
    if not isinstance(model, TorchModel):
        raise InputError(
            "a backbone must be a PyTorch module, through which gradients go; got "
            f"{type(model).__name__}. Such a model gives frozen features, on which heads can be "
            "trained: frozen=True, on the command line --frozen."
        )
    # What is named in a module of the user's is the user's.
    network = copy.deepcopy(model.module)
    preprocessing = preprocessing or model.preprocessing
    if model.features_from is None:
        return _headless(network, preprocessing, model.spec)
    module = Features(network, model.features_from)
    leave_out_unused(module, trial_images(module, preprocessing))
    return _finished(module, preprocessing, model.spec)


def _headless(network: Any, preprocessing: Preprocessing, spec: str | None) -> Backbone:
    images = trial_images(network, preprocessing)
    with as_evaluated(network):
        without_head(network, images)
    return _finished(Features(network), preprocessing, spec)


def _finished(module: Any, preprocessing: Preprocessing, spec: str | None) -> Backbone:
    if (preprocessing.layout, preprocessing.dtype) != ("nchw", "float32"):
        raise InputError(
            "a backbone must take images as float32 with channels first; got "
            f"{preprocessing.dtype} in layout {preprocessing.layout}. Leave out dtype and layout."
        )
    images = trial_images(module, preprocessing)
    return Backbone(module.train(), count_features(module, images), preprocessing, spec)
