"""Models: images in, logits out.

:func:`as_model` makes a :class:`Model` of what you have: a function, a PyTorch module, a
TorchScript or ONNX file, a scikit-learn classifier. One file is one adapter, imported when used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.models._resolve import as_model
    from shiftcal.models.architectures.cifar_resnet import cifar_resnet
    from shiftcal.models.base import Model
    from shiftcal.models.callable import CallableModel
    from shiftcal.models.onnx import OnnxModel
    from shiftcal.models.preprocessing import Preprocessing
    from shiftcal.models.pytorch import TorchModel
    from shiftcal.models.sklearn import SklearnModel
    from shiftcal.models.torchscript import TorchScriptModel

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "CallableModel": "callable",
    "Model": "base",
    "OnnxModel": "onnx",
    "Preprocessing": "preprocessing",
    "SklearnModel": "sklearn",
    "TorchModel": "pytorch",
    "TorchScriptModel": "torchscript",
    "as_model": "_resolve",
    "cifar_resnet": "architectures.cifar_resnet",
}

__all__ = [
    "CallableModel",
    "Model",
    "OnnxModel",
    "Preprocessing",
    "SklearnModel",
    "TorchModel",
    "TorchScriptModel",
    "as_model",
    "cifar_resnet",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"shiftcal.models.{_WHERE[name]}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted(__all__)
