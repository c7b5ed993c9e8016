"""A network from a function of the user's, named as ``package.module:factory``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shiftcal._optional import require
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.models._importing import current_folder, imported, told
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
    rest = {key: value for key, value in options.items() if key != "weights"}
    with current_folder():
        factory = imported("torch", name, noun="factory")
        if not callable(factory):
            raise InputError(f"torch:{name} must be a function; got {type(factory).__name__}.")
        try:
            network = factory(**rest)
        except ShiftcalError:
            raise
        except Exception as error:
            given = ", ".join(f"{key}={value!r}" for key, value in rest.items())
            raise InputError(f"torch:{name} called with ({given}) raised {told(error)}.") from error
    if not isinstance(network, nn.Module):
        raise InputError(
            f"torch:{name} must return a torch.nn.Module; got {type(network).__name__}."
        )
    if "weights" in options:
        load_weights(network, options["weights"], what=f"the network of {name}")
    return network
