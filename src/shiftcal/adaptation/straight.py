"""Layers, gone through without calling them as modules.

A step on frozen features lasts two milliseconds, and the call of a small layer in it about as long
as what the layer does: torch looks for hooks, for options and for what kind of number comes.
"""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import functional, nn, torch
from shiftcal.adaptation.heads import ApartBatchNorm1d, Dropout, NormPreservingDropout


def straight(module: Any, x: Any) -> Any:
    """``module(x)``, to the bit, with all gradients and running statistics.

    Layers that are not known here are called, and so are those of which a call is more than their
    own forward pass: with hooks, compiled, or changed.

    Args:
        module: A layer, or an ``nn.Sequential`` of some.
        x: What goes in.
    """
    if any(_HOOKS_OF_ALL):
        return module(x)
    if type(module) is not nn.Sequential or _is_more(module):
        return _through(module, x)
    for layer in module._modules.values():
        x = _through(layer, x)
    return x


def _through(layer: Any, x: Any) -> Any:
    way = _WAYS.get(type(layer))
    return layer(x) if way is None or _is_more(layer) else way(layer, x)


def _is_more(layer: Any) -> bool:
    """Whether the call of a layer is more than the forward pass of its class."""
    return bool(
        layer._forward_hooks
        or layer._forward_pre_hooks
        or layer._backward_hooks
        or layer._backward_pre_hooks
        or layer._compiled_call_impl
        or "forward" in layer.__dict__
    )


def _linear(layer: Any, x: Any) -> Any:
    own = layer._parameters
    return functional.linear(x, own["weight"], own["bias"])


def _batch_norm(layer: Any, x: Any) -> Any:
    if not _is_usual(layer) or x.shape[0] < 2:
        return layer(x)
    layer._buffers["num_batches_tracked"].add_(1)
    return _normalised(layer, x)


def _apart(layer: Any, x: Any) -> Any:
    if not _is_usual(layer) or x.shape[0] < 4:
        return layer(x)
    source, target = x.chunk(2)
    layer._buffers["num_batches_tracked"].add_(2)
    return torch.cat((_normalised(layer, source), _normalised(layer, target)))


def _is_usual(norm: Any) -> bool:
    """Whether a normalisation uses the batch's statistics, and its own move by a fixed share."""
    return norm.training and norm.track_running_stats and norm.momentum is not None


def _normalised(norm: Any, x: Any) -> Any:
    own, moving = norm._parameters, norm._buffers
    return torch.batch_norm(
        x,
        own["weight"],
        own["bias"],
        moving["running_mean"],
        moving["running_var"],
        True,
        norm.momentum,
        norm.eps,
        torch.backends.cudnn.enabled,
    )


# Those that are called for every module there is.
_HOOKS_OF_ALL = (
    nn.modules.module._global_forward_hooks,
    nn.modules.module._global_forward_pre_hooks,
    nn.modules.module._global_backward_hooks,
    nn.modules.module._global_backward_pre_hooks,
)
_WAYS = {
    nn.Linear: _linear,
    nn.BatchNorm1d: _batch_norm,
    ApartBatchNorm1d: _apart,
    nn.ReLU: lambda _, x: x.relu(),
    Dropout: Dropout.forward,
    NormPreservingDropout: NormPreservingDropout.forward,
}
