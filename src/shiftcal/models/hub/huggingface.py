"""Image classifiers of Hugging Face's transformers, by name or from a folder."""

from __future__ import annotations

from typing import Any

from shiftcal._optional import require, require_package
from shiftcal.errors import FileError, InputError
from shiftcal.models.hub._image_processor import preprocessing_of
from shiftcal.models.hub.found import Found


def huggingface_model(name: str, *, revision: str | None = None) -> Found:
    """A network of ``AutoModelForImageClassification``, with its preprocessing and classes.

    ``.safetensors`` are taken where there are any, else a ``.bin`` with ``weights_only=True``. Code
    that comes with a model is never run.

    Args:
        name: Such as ``"microsoft/resnet-50"``, or a folder made by ``save_pretrained``.
        revision: Branch, tag or commit of a name.

    Raises:
        FileError: If it cannot be loaded; the message says what transformers said.
        InputError: If its preprocessing cannot be expressed.
    """
    require("torch", extra="torch", needed_by=f"hf:{name}")
    transformers = require_package("transformers", package="transformers", needed_by=f"hf:{name}")
    common: dict[str, Any] = {"trust_remote_code": False}
    if revision is not None:
        common["revision"] = revision
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(name, **common).to_dict()
        module = _network(transformers.AutoModelForImageClassification, name, common)
    except Exception as error:  # transformers raises what it likes
        first = str(error).strip().partition("\n")[0]
        raise FileError(
            f"hf:{name} could not be loaded: {type(error).__name__}: {first}"
        ) from error
    return Found(module.eval(), preprocessing_of(processor, name=f"hf:{name}"), _classes(module))


def _network(auto: Any, name: str, common: dict[str, Any]) -> Any:
    try:
        network, info = auto.from_pretrained(
            name, use_safetensors=True, output_loading_info=True, **common
        )
    except OSError:  # there are none
        network, info = auto.from_pretrained(
            name, use_safetensors=False, weights_only=True, output_loading_info=True, **common
        )
    # transformers fills what a file does not hold with random numbers, and goes on.
    absent = [*info.get("missing_keys", ()), *info.get("mismatched_keys", ())]
    if absent:
        raise InputError(f"it has no weights for {len(absent)} parts, such as {absent[0]}")
    return network


def _classes(module: Any) -> list[str] | None:
    """Names in order, unless they are the placeholders of a model that names none."""
    names = getattr(module.config, "id2label", None) or {}
    listed = [str(names[index]) for index in sorted(names, key=int)]
    plain = [f"LABEL_{index}" for index in range(len(listed))]
    return None if len(listed) < 2 or listed == plain or len(set(listed)) < len(listed) else listed
