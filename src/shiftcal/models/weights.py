"""Files of weights: read without running anything in them, and put into a network."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shiftcal._optional import require
from shiftcal.errors import FileError

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
        lines = str(error).strip().splitlines()
        reason = " ".join(line.strip() for line in lines[1:2]) or lines[0]
        raise FileError(f"{source} does not hold the weights of {what}: {reason[:300]}") from error
    return network


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
        raise FileError(f"{path} must be a file of weights; there is no file of that name.")
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
