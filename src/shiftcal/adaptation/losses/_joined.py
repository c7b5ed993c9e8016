"""Source and target as one tensor."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import torch


def joined(source: Any, target: Any) -> Any:
    """Rows of the source, then those of the target.

    If they are the two parts of one tensor, it is that tensor itself: nothing is copied, and
    gradients go straight to it. So do not write to it.

    Args:
        source: ``(n, ...)``.
        target: ``(m, ...)``.
    """
    whole = source._base
    if whole is not None and whole is target._base and _are_parts(whole, source, target):
        return whole
    return torch.cat((source, target))


def _are_parts(whole: Any, first: Any, second: Any) -> bool:
    return (
        whole.shape[0] == first.shape[0] + second.shape[0]
        and whole.shape[1:] == first.shape[1:]
        and first.shape[1:] == second.shape[1:]
        and first.requires_grad == second.requires_grad == whole.requires_grad
        and whole.is_contiguous()
        and first.is_contiguous()
        and second.is_contiguous()
        and first.storage_offset() == whole.storage_offset()
        and second.storage_offset() == whole.storage_offset() + first.numel()
    )
