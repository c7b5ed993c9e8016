"""Files of weights: read without running anything in them, and put into a network."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from shiftcal._optional import require
from shiftcal.errors import FileError, MissingData

# Where training scripts put the weights inside what they save.
_NESTS = ("state_dict", "model", "net")


def load_weights(network: Any, path: str | Path, *, what: str) -> Any:
    """Fill a network with the weights of a file, every one of them and no others.

    Args:
        network: The module, which is changed and given back.
        path: ``.safetensors``, or a file of ``torch.save``.
        what: What the network is, for messages, such as ``"a CIFAR ResNet-20"``.

    Raises:
        FileError: If the file is missing, holds more than tensors, or weights of another network.
    """
    return fill(network, read_weights(path), source=str(path), what=what)


def fill(network: Any, state: Mapping[str, Any], *, source: str, what: str) -> Any:
    """Fill a network with named weights that were read already.

    Raises:
        FileError: If they are those of another network.
    """
    try:
        network.load_state_dict(dict(state))
    except (RuntimeError, TypeError, AttributeError) as error:
        reason = _difference(network, state) or shorten(str(error), 300, placeholder=" ...")
        raise FileError(f"{source} does not hold the weights of {what}: {reason}") from error
    return network


def _difference(network: Any, state: Mapping[str, Any]) -> str:
    """In what named weights differ from those of a network; empty if not in names and shapes."""
    wanted = {name: _shape(value) for name, value in network.state_dict().items()}
    given = {name: _shape(value) for name, value in state.items()}
    # Counters, which older files do not have, and which are not missed.
    absent = [n for n in wanted if n not in given and not n.endswith("num_batches_tracked")]
    strange = [name for name in given if name not in wanted]
    other = [name for name in wanted if given.get(name, wanted[name]) != wanted[name]]
    said = [f"{_some(absent)} missing"] if absent else []
    if strange:
        said.append(f"{_some(strange)} not part of the network")
    if other:
        first = other[0]
        verb = f"{_some(other)} of another shape"
        said.append(f"{verb} ({first} has {given[first]} in place of {wanted[first]})")
    return "; ".join(said) + "." if said else ""


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))


def _some(names: Sequence[str]) -> str:
    more = len(names) - 1
    return f"{names[0]} and {more} more are" if more else f"{names[0]} is"


def read_weights(path: str | Path) -> dict[str, Any]:
    """Named tensors of a file.

    They may lie under ``state_dict``, ``model`` or ``net``, and their names may begin with
    ``module.``. Of a file of ``torch.save`` only tensors and plain containers are read
    (``weights_only=True``).

    Raises:
        FileError: If the file is missing or damaged, or holds something else or more.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingData(f"{path} must be a file of weights; there is no file of that name.")
    state = _tensors(path) if path.suffix == ".safetensors" else _saved(path)
    while isinstance(state, dict):
        nest = next((name for name in _NESTS if isinstance(state.get(name), dict)), None)
        if nest is None:
            return {str(name).removeprefix("module."): value for name, value in state.items()}
        state = state[nest]
    raise FileError(f"{path} must hold named weights; got {type(state).__name__}.")


def _tensors(path: Path) -> Any:
    safetensors = require("safetensors", extra="torch", needed_by="a .safetensors file")
    reader = require("safetensors.torch", extra="torch", needed_by="a .safetensors file")
    try:
        return reader.load_file(path)
    except safetensors.SafetensorError as error:
        raise FileError(f"{path} is not a safetensors file: {error}") from error


def _saved(path: Path) -> Any:
    torch = require("torch", extra="torch", needed_by="a file of weights")
    try:
        with warnings.catch_warnings():
            # On files of another kind, which are refused right after.
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise FileError(
            f"{path} could not be read as weights: it is damaged, or holds more than tensors, "
            "which is never loaded. Save its state_dict() alone, best as .safetensors."
        ) from error
