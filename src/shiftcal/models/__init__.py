"""Models: images in, logits out.

:func:`as_model` makes a :class:`Model` of what you have: a function, a PyTorch module, a
scikit-learn classifier, a file of one of several kinds, or a text such as ``"timm:resnet50"``.
Adapters are imported when used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.models.architectures import cifar_resnet, efficientnet_lite
    from shiftcal.models.model import CallableModel, GroupedModel, Model, Outputs
    from shiftcal.models.onnx import OnnxModel
    from shiftcal.models.preprocessing import Preprocessing
    from shiftcal.models.pytorch import ExportedModel, TorchModel, TorchScriptModel, load_weights
    from shiftcal.models.resolve import Spec, agreement, as_model, parse_spec
    from shiftcal.models.sklearn import SklearnModel

# Public name -> the module it is imported from on first use.
_WHERE = {
    "CallableModel": "model",
    "ExportedModel": "pytorch",
    "GroupedModel": "model",
    "Model": "model",
    "OnnxModel": "onnx",
    "Outputs": "model",
    "Preprocessing": "preprocessing",
    "SklearnModel": "sklearn",
    "Spec": "resolve",
    "TorchModel": "pytorch",
    "TorchScriptModel": "pytorch",
    "agreement": "resolve",
    "as_model": "resolve",
    "cifar_resnet": "architectures",
    "efficientnet_lite": "architectures",
    "load_weights": "pytorch",
    "parse_spec": "resolve",
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
