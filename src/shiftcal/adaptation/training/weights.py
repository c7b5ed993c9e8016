"""Tensors of a training, as a safetensors file has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shiftcal.adaptation._torch import torch

_MOMENTUM = "momentum."


def network_tensors(objective: Any) -> dict[str, Any]:
    """Every parameter and buffer by its name, each once: the tensors themselves, not copies."""
    return {**dict(objective.named_parameters()), **dict(objective.named_buffers())}


def training_tensors(objective: Any, momentum: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the next iteration depends on."""
    remembered = {f"{_MOMENTUM}{name}": tensor for name, tensor in momentum.items()}
    return {**network_tensors(objective), **remembered}


def not_finite(tensors: Mapping[str, Any]) -> str | None:
    """The name of the first that holds NaN or infinite numbers, or ``None``."""
    real = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    # A sum is finite only if all its terms are, and is found much faster than they are looked at;
    # one that is not may also be too large.
    if bool(torch.isfinite(torch.stack([tensor.detach().sum() for tensor in real.values()])).all()):
        return None
    return next((name for name, one in real.items() if not torch.isfinite(one).all()), None)


def to_bytes(tensors: Mapping[str, Any]) -> bytes:
    """A safetensors file of them."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content: bytes = save(plain)
    return content


def fill(tensors: Mapping[str, Any], content: bytes) -> str | None:
    """Overwrite tensors with those of a file, which may hold more.

    Returns:
        ``None``, or in what the file differs from what is expected; nothing is changed then.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        stored = load(content)
    except SafetensorError as error:
        return f"it is no safetensors file ({error})"
    for name, tensor in tensors.items():
        if name not in stored:
            return f"it has no {name}"
        if stored[name].shape != tensor.shape or stored[name].dtype != tensor.dtype:
            return (
                f"{name} has shape {tuple(stored[name].shape)} of {stored[name].dtype}, "
                f"not {tuple(tensor.shape)} of {tensor.dtype}"
            )
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(stored[name])
    return None
