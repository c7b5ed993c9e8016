"""From a name, a text or a module to a backbone."""

from __future__ import annotations

import copy
import re
from typing import Any

from shiftcal._registry import suggest
from shiftcal.adaptation._torch import nn, torch
from shiftcal.adaptation.backbones.base import Backbone, reference_preprocessing
from shiftcal.adaptation.backbones.digits import PREPROCESSING as DIGITS
from shiftcal.adaptation.backbones.digits import digits_cnn
from shiftcal.adaptation.backbones.headless import Features, without_head
from shiftcal.adaptation.backbones.named import CLASSIFIERS
from shiftcal.adaptation.backbones.trial import leave_out_unused, tried
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
        return _whole(copy.deepcopy(spec), preprocessing or reference_preprocessing(), None)
    return _of_model(as_model(spec), preprocessing)


def _named(name: str, pretrained: bool, preprocessing: Preprocessing | None) -> Backbone:
    if name == "digits-cnn":
        return _whole(digits_cnn(), preprocessing or DIGITS, name)
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
    _check_numbers(preprocessing)
    module = Features(network, model.features_from)
    with torch.enable_grad():
        features = tried(module, preprocessing)
        leave_out_unused(module, features)
    return Backbone(module.train(), int(features.shape[1]), preprocessing, model.spec)


def _whole(network: Any, preprocessing: Preprocessing, spec: str | None) -> Backbone:
    _check_numbers(preprocessing)
    module = Features(network)
    with torch.no_grad():
        n_features = int(tried(module, preprocessing).shape[1])
    return Backbone(module.train(), n_features, preprocessing, spec)


def _headless(network: Any, preprocessing: Preprocessing, spec: str | None) -> Backbone:
    _check_numbers(preprocessing)
    network, n_features = without_head(network, preprocessing)
    return Backbone(Features(network).train(), n_features, preprocessing, spec)


def _check_numbers(preprocessing: Preprocessing) -> None:
    if (preprocessing.layout, preprocessing.dtype) != ("nchw", "float32"):
        raise InputError(
            "a backbone must take images as float32 with channels first; got "
            f"{preprocessing.dtype} in layout {preprocessing.layout}. Leave out dtype and layout."
        )
