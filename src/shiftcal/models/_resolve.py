"""Which adapter a thing needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from shiftcal.errors import InputError
from shiftcal.models.base import Model
from shiftcal.models.callable import CallableModel

_TORCHSCRIPT = (".pt", ".pth", ".ts", ".torchscript")


def as_model(thing: Any, **options: Any) -> Model:
    """A model of whatever can be one.

    Args:
        thing: A :class:`Model`, which is given back; a PyTorch module; a fitted scikit-learn
            classifier; the path of an ``.onnx`` file, or its bytes; the path of a TorchScript file
            (``.pt``); or a function from images to logits.
        **options: Those of the adapter, and ``preprocessing``, ``classes``, ``output`` and
            ``batch_size``.

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
    if isinstance(thing, str | Path | bytes):
        return _from_file(thing, options)
    return _from_object(thing, options)


def _from_file(file: str | Path | bytes, options: dict[str, Any]) -> Model:
    ending = ".onnx" if isinstance(file, bytes) else Path(file).suffix.lower()
    if ending == ".onnx":
        from shiftcal.models.onnx import OnnxModel

        return OnnxModel(file, **options)
    if ending in _TORCHSCRIPT and not isinstance(file, bytes):
        from shiftcal.models.torchscript import TorchScriptModel

        return TorchScriptModel(file, **options)
    raise InputError(
        f"the file of a model must end in .onnx, or in .pt for TorchScript; got {file!s}. "
        "Weights alone go into an architecture first."
    )


def _from_object(thing: Any, options: dict[str, Any]) -> Model:
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
        "a model must be a function, a PyTorch module, a fitted scikit-learn classifier, or the "
        f"path of an ONNX or TorchScript file; got {type(thing).__name__}."
    )
