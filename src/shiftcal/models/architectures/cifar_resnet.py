"""The ResNets of CIFAR-10 (He et al., 2016, section 4.2), for the weights published of them."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

from shiftcal._checks import check_count
from shiftcal._optional import require
from shiftcal.errors import FileError, InputError
from shiftcal.models.preprocessing import Preprocessing

DEPTHS = (20, 32, 44, 56, 110)
# What the published weights were trained with: the mean and deviation of ImageNet.
PREPROCESSING = Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


def cifar_resnet(depth: int, *, weights: str | Path | None = None, n_classes: int = 10) -> Any:
    """A CIFAR ResNet with ``6 m + 2`` layers, as a PyTorch module in evaluation mode.

    It carries its preprocessing, which :func:`as_model` finds.

    Args:
        depth: 20, 32, 44, 56 or 110.
        weights: File of its weights, ``.safetensors`` or one of ``torch.save``, from which only
            tensors are read; without one they are random. Names may begin with ``module.``.
        n_classes: Number of classes.

    Raises:
        FileError: If the file is missing, holds more than tensors, or weights of another network.
    """
    if depth not in DEPTHS:
        raise InputError(f"depth must be one of {', '.join(map(str, DEPTHS))}; got {depth!r}.")
    n_classes = check_count(n_classes, name="n_classes", least=2)
    require("torch", extra="torch", needed_by="a CIFAR ResNet")
    from shiftcal.models.architectures._cifar_resnet_modules import CifarResNet

    network = CifarResNet((depth - 2) // 6, n_classes)
    network.preprocessing = PREPROCESSING
    if weights is not None:
        _fill(network, Path(weights), f"a CIFAR ResNet-{depth} of {n_classes} classes")
    return network.eval()


def _fill(network: Any, path: Path, what: str) -> None:
    state = _read(path)
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict):
        raise FileError(f"{path} must hold named weights; got {type(state).__name__}.")
    state = {str(name).removeprefix("module."): value for name, value in state.items()}
    try:
        network.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        lines = str(error).strip().splitlines()
        reason = " ".join(line.strip() for line in lines[1:2]) or lines[0]
        raise FileError(f"{path} does not hold the weights of {what}: {reason[:300]}") from error


def _read(path: Path) -> Any:
    """What the file holds: tensors and plain containers, never anything that could run."""
    if not path.is_file():
        raise FileError(f"{path} must be a file of weights; there is no file of that name.")
    if path.suffix == ".safetensors":
        safetensors = require("safetensors", extra="torch", needed_by="a .safetensors file")
        reader = require("safetensors.torch", extra="torch", needed_by="a .safetensors file")
        try:
            return reader.load_file(path)
        except safetensors.SafetensorError as error:
            raise FileError(f"{path} is not a safetensors file: {error}") from error
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
