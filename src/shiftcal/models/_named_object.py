"""A model of something in a module of the user's, named as ``package.module:function``."""

from __future__ import annotations

import copy
from typing import Any

from shiftcal.errors import InputError
from shiftcal.models._from_object import model_from_object
from shiftcal.models._importing import current_folder, imported
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing


def named_object(name: str) -> Any:
    """What ``package.module:function`` is.

    Modules in the current folder can be imported, and win over installed ones.

    Raises:
        InputError: If there is no such thing.
    """
    with current_folder():
        return imported("python", name, noun="function")


def brought(thing: Any) -> Preprocessing:
    """The preprocessing that something brings, or the usual one of its adapter."""
    carried = getattr(thing, "preprocessing", None)
    if isinstance(carried, Preprocessing):
        return carried
    return Preprocessing(layout="nhwc" if hasattr(thing, "predict") else "nchw")


def model_of_named(name: str, thing: Any, options: dict[str, Any]) -> Model:
    """The model of a function, a PyTorch module, a fitted classifier or a model.

    Args:
        name: What the thing was called, for messages.
        thing: The thing.
        options: Those of its adapter.

    Raises:
        InputError: If it is none of these, or does not have these options.
    """
    try:
        made = model_from_object(thing, options)
    except TypeError as error:
        raise InputError(
            f"python:{name} is a {type(thing).__name__}, which has not all of the options "
            f"{', '.join(options)}: {error}."
        ) from error
    # The user's own must not get the text as its name.
    return copy.copy(made) if made is thing else made
