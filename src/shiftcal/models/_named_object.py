"""A model of something in a module of the user's, named as ``package.module:function``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shiftcal.errors import InputError
from shiftcal.models._from_object import model_from_object
from shiftcal.models._importing import current_folder, imported
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing


def model_of_name(name: str, changes: Mapping[str, Any], options: Mapping[str, Any]) -> Model:
    """The model of a function, a PyTorch module, a fitted classifier or a model.

    Modules in the current folder can be imported, and win over installed ones.

    Args:
        name: ``package.module:function``.
        changes: Settings of the preprocessing that differ from what the thing brings.
        options: Those of its adapter.

    Raises:
        InputError: If there is no such thing, or it does not have these options.
    """
    with current_folder():
        thing = imported("python", name, noun="function")
    given = dict(options)
    if changes:
        given["preprocessing"] = replace(_brought(thing), **changes)
    try:
        made = model_from_object(thing, given)
    except TypeError as error:
        raise InputError(
            f"python:{name} is a {type(thing).__name__}, which has not all of the options "
            f"{', '.join(given)}: {error}."
        ) from error
    # The user's own must not get the text as its name.
    return copy.copy(made) if made is thing else made


def _brought(thing: Any) -> Preprocessing:
    carried = getattr(thing, "preprocessing", None)
    if isinstance(carried, Preprocessing):
        return carried
    return Preprocessing(layout="nhwc" if hasattr(thing, "predict") else "nchw")
