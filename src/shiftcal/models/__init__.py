"""Models: images in, logits out.

:func:`as_model` makes a :class:`Model` of what you have: a function, a PyTorch module, a
scikit-learn classifier, a file of one of several kinds, or a text such as ``"timm:resnet50"``. One
file is one adapter, imported when used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.models._agreement import agreement
    from shiftcal.models._resolve import as_model
    from shiftcal.models.architectures.cifar_resnet import cifar_resnet
    from shiftcal.models.architectures.efficientnet_lite import efficientnet_lite
    from shiftcal.models.base import Model, Outputs
    from shiftcal.models.callable import CallableModel
    from shiftcal.models.exported import ExportedModel
    from shiftcal.models.grouped import GroupedModel
    from shiftcal.models.onnx import OnnxModel
    from shiftcal.models.preprocessing import Preprocessing
    from shiftcal.models.pytorch import TorchModel
    from shiftcal.models.sklearn import SklearnModel
    from shiftcal.models.spec import Spec, parse_spec
    from shiftcal.models.torchscript import TorchScriptModel
    from shiftcal.models.weights import load_weights

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "CallableModel": "callable",
    "ExportedModel": "exported",
    "GroupedModel": "grouped",
    "Model": "base",
    "OnnxModel": "onnx",
    "Outputs": "base",
    "Preprocessing": "preprocessing",
    "SklearnModel": "sklearn",
    "Spec": "spec",
    "TorchModel": "pytorch",
    "TorchScriptModel": "torchscript",
    "agreement": "_agreement",
    "as_model": "_resolve",
    "cifar_resnet": "architectures.cifar_resnet",
    "efficientnet_lite": "architectures.efficientnet_lite",
    "load_weights": "weights",
    "parse_spec": "spec",
}

__all__ = [
    "CallableModel",
    "ExportedModel",
    "GroupedModel",
    "Model",
    "OnnxModel",
    "Outputs",
    "Preprocessing",
    "SklearnModel",
    "Spec",
    "TorchModel",
    "TorchScriptModel",
    "agreement",
    "as_model",
    "cifar_resnet",
    "efficientnet_lite",
    "load_weights",
    "parse_spec",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"shiftcal.models.{_WHERE[name]}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted(__all__)
