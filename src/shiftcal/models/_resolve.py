"""Which adapter a thing needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shiftcal.models._from_object import model_from_object
from shiftcal.models._from_spec import model_from_spec
from shiftcal.models.base import Model
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
        The model. Its ``spec`` is the text that makes it again, from whatever folder, if a text
        or path and nothing else was given.

    Raises:
        InputError: If it is none of these.
    """
    if isinstance(thing, str | Path):
        spec = _as_spec(thing)
        model = model_from_spec(spec, options)
        model.spec = None if options else str(_with_whole_paths(spec))
        return model
    if isinstance(thing, bytes):
        from shiftcal.models.onnx import OnnxModel

        return OnnxModel(thing, **options)
    return model_from_object(thing, options)


def _as_spec(thing: str | Path) -> Spec:
    """A path means the file of exactly that name; so does a text, if there is such a file."""
    path = Path(thing)
    kind = ENDINGS.get(path.suffix.lower())
    if kind is not None and (isinstance(thing, Path) or path.is_file()):
        return Spec(kind, str(thing))
    return parse_spec(str(thing))


def _with_whole_paths(spec: Spec) -> Spec:
    """Files and folders said from the root, so that the text means the same in every folder."""
    target = spec.target
    if spec.kind in set(ENDINGS.values()) or (spec.kind == "hf" and Path(target).is_dir()):
        target = str(Path(target).absolute())
    options = dict(spec.options)
    # What torchvision calls weights need not be a file.
    if Path(options.get("weights", "")).is_file():
        options["weights"] = str(Path(options["weights"]).absolute())
    return Spec(spec.kind, target, options)
