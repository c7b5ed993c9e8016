"""Which adapter a thing needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from shiftcal.errors import InputError
from shiftcal.models._from_spec import model_from_spec
from shiftcal.models.base import Model
from shiftcal.models.callable import CallableModel
from shiftcal.models.spec import ENDINGS, Spec, parse_spec


def as_model(thing: Any, **options: Any) -> Model:
    """A model of whatever can be one.

    Args:
        thing: A :class:`Model`, which is given back; a PyTorch module; a fitted scikit-learn
            classifier; the path of an ``.onnx``, ``.pt`` (TorchScript), ``.pt2`` (``torch.export``)
            or ``.skops`` file; the bytes of an ONNX file; the text of a model, such as
            ``"timm:resnet50"`` (see :func:`parse_spec`); or a function from images to logits.
        **options: Those of the adapter, and ``preprocessing``, ``classes``, ``output`` and
            ``batch_size``.

    Returns:
        The model. Its ``spec`` is the text that makes it again, if a text or path and nothing
        else was given.

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
    if isinstance(thing, str | Path):
        spec = _as_spec(thing)
        model = model_from_spec(spec, options)
        model.spec = None if options else str(spec)
        return model
    if isinstance(thing, bytes):
        from shiftcal.models.onnx import OnnxModel

        return OnnxModel(thing, **options)
    return _from_object(thing, options)


def _as_spec(thing: str | Path) -> Spec:
    """A path means the file of exactly that name; so does a text, if there is such a file."""
    path = Path(thing)
    kind = ENDINGS.get(path.suffix.lower())
    if kind is not None and (isinstance(thing, Path) or path.is_file()):
        return Spec(kind, str(thing))
    return parse_spec(str(thing))


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
        "a model must be a function, a PyTorch module, a fitted scikit-learn classifier, the path "
        "of an ONNX, TorchScript, torch.export or .skops file, or a text such as timm:resnet50; "
        f"got {type(thing).__name__}."
    )
