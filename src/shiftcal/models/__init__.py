"""Models: images in, logits out.

:func:`as_model` makes a :class:`Model` of what you have: a function, a PyTorch module, a
scikit-learn classifier, a file of one of several kinds, or a text such as ``"timm:resnet50"``.
Adapters are imported when used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.lazy import lazy

if TYPE_CHECKING:
    from shiftcal.models.model import CallableModel, GroupedModel, Model, Outputs
    from shiftcal.models.networks import cifar_resnet, efficientnet_lite
    from shiftcal.models.onnx import OnnxModel
    from shiftcal.models.preprocessing import Preprocessing
    from shiftcal.models.pytorch import ExportedModel, TorchModel, load_weights
    from shiftcal.models.resolve import Spec, as_model, parse_spec
    from shiftcal.models.sklearn import SklearnModel

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
    "as_model",
    "cifar_resnet",
    "efficientnet_lite",
    "load_weights",
    "parse_spec",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "model": "CallableModel GroupedModel Model Outputs",
        "networks": "cifar_resnet efficientnet_lite",
        "onnx": "OnnxModel",
        "preprocessing": "Preprocessing",
        "pytorch": "ExportedModel TorchModel load_weights",
        "resolve": "Spec as_model parse_spec",
        "sklearn": "SklearnModel",
    },
)
