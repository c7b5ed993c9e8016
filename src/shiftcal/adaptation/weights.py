"""Weights of a network: their digest, and their file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal._optional import require
from shiftcal.models._fingerprint import digest

FILE = "classifier.safetensors"


def weights_digest(module: Any) -> str:
    """By which other weights, or other layers, are noticed."""
    return digest(
        part
        for name, value in module.state_dict().items()
        for part in (
            f"{name} {value.dtype} {tuple(value.shape)}",
            value.detach().cpu().numpy().tobytes(),
        )
    )


def write_weights(path: Path, module: Any, *, durable: bool) -> None:
    """Write all parameters and buffers of a module to a ``.safetensors`` file, whole or not at all.

    Args:
        path: The file.
        module: The network.
        durable: Whether the file outlives a power cut at once.
    """
    safetensors = require("safetensors.torch", extra="torch", needed_by="domain adaptation")
    # Copies: layers that share a tensor have it twice in the file.
    state = {
        name: value.detach().cpu().clone().contiguous()
        for name, value in module.state_dict().items()
    }
    with atomic_write(path, durable=durable) as temporary:
        temporary.write_bytes(safetensors.save(state))
