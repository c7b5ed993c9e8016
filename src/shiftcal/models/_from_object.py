"""From an object in memory to the model of it."""

from __future__ import annotations

import sys
from typing import Any

from shiftcal.errors import InputError
from shiftcal.models.base import Model
from shiftcal.models.callable import CallableModel


def model_from_object(thing: Any, options: dict[str, Any]) -> Model:
    """The model of a PyTorch module, a fitted scikit-learn classifier or a function.

    Args:
        thing: One of these, or a :class:`Model`, which is given back.
        options: Those of the adapter; none for a :class:`Model`, which has its own.

    Raises:
        InputError: If it is none of these.
    """
    if isinstance(thing, Model):
        if options:
            raise InputError(
                f"a Model has its options already; got {', '.join(options)} as well. "
                "Say them where the model is made."
            )
        return thing
    if isinstance(thing, type):
        raise InputError(
            f"a model must be an object; got the class {thing.__name__}. Make one: "
            f"{thing.__name__}(...)."
        )
    torch = sys.modules.get("torch")  # whoever has a module has imported it
    if torch is not None and isinstance(thing, torch.nn.Module):
        from shiftcal.models.pytorch import TorchModel

        return TorchModel(thing, **options)
    if hasattr(thing, "predict") and hasattr(thing, "fit"):
        from shiftcal.models.sklearn import SklearnModel

        return SklearnModel(thing, **options)
    if callable(thing):
        return CallableModel(thing, **options)
    raise InputError(
        "a model must be a function, a PyTorch module, a fitted scikit-learn classifier, the path "
        "of an ONNX, TorchScript, torch.export or .skops file, or a text such as timm:resnet50; "
        f"got {type(thing).__name__}."
    )
