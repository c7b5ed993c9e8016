"""A network from a function of the user's, named as ``package.module:factory``."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shiftcal._optional import require
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.models.weights import load_weights


def made_by_factory(name: str, options: Mapping[str, Any]) -> Any:
    """What the factory returns, filled with weights if there are any.

    Modules in the current folder can be imported, and win over installed ones.

    Args:
        name: ``package.module:factory``; the factory may be an attribute of an attribute.
        options: Keyword arguments of the factory; ``weights`` is the file its network is filled
            from and is not given to it.

    Raises:
        InputError: If there is no such function, it raises, or returns no module.
        FileError: If the weights are not those of the network.
    """
    nn = require("torch.nn", extra="torch", needed_by=f"torch:{name}")
    place, _, attribute = name.partition(":")
    if not place or not attribute:
        raise InputError(f"torch: must be followed by package.module:factory; got {name!r}.")
    rest = {key: value for key, value in options.items() if key != "weights"}
    with _current_folder():
        factory = _imported(name, place, attribute)
        try:
            network = factory(**rest)
        except ShiftcalError:
            raise
        except Exception as error:
            given = ", ".join(f"{key}={value!r}" for key, value in rest.items())
            raise InputError(
                f"torch:{name} called with ({given}) raised {_where(error)}."
            ) from error
    if not isinstance(network, nn.Module):
        raise InputError(
            f"torch:{name} must return a torch.nn.Module; got {type(network).__name__}."
        )
    if "weights" in options:
        load_weights(network, options["weights"], what=f"the network of {name}")
    return network


def _imported(name: str, place: str, attribute: str) -> Any:
    try:
        found: Any = importlib.import_module(place)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # the module is the user's, and raises what it likes
        raise InputError(f"torch:{name} cannot be imported: {_where(error)}.") from error
    if not callable(found):
        raise InputError(f"torch:{name} must be a function; got {type(found).__name__}.")
    return found


@contextmanager
def _current_folder() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:  # what was imported may have changed the list
            sys.path.remove(folder)


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {str(error).rstrip('.')}"
    library = "importlib" in frame.filename or frame.filename == __file__
    return said if library else f"{said}, in {Path(frame.filename).name}, line {frame.lineno}"
