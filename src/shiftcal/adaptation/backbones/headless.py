"""A classifier without its last layer, or up to a layer that is named."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import nn, torch
from shiftcal.adaptation.backbones.trial import tried
from shiftcal.errors import InputError
from shiftcal.models.preprocessing import Preprocessing


class Features(nn.Module):
    """What a network gives as one row an image; maps ``(b, c, h, w)`` are averaged over positions.

    Args:
        network: The network.
        layer: Whose output is wanted, the last one if it runs more than once; ``None`` is that of
            the network itself.
    """

    def __init__(self, network: Any, layer: str | None = None) -> None:
        super().__init__()
        self.network = network
        self.layer = layer

    def forward(self, x: Any) -> Any:
        """Features ``(b, n_features)``; gradients flow through them."""
        if self.layer is None:
            output = self.network(x)
            return _as_row(getattr(output, "logits", output), "the network")
        heard: list[Any] = []
        # For this call alone, so that the network is nobody's but its own when it is stored.
        listened_to = self.network.get_submodule(self.layer)
        handle = listened_to.register_forward_hook(
            lambda _layer, _inputs, output: heard.append(_as_row(output, self.layer).clone())
        )
        try:
            self.network(x)
        finally:
            handle.remove()
        if not heard:
            raise InputError(f"features_from must name a layer that runs; {self.layer!r} did not.")
        return heard[-1]


def without_head(network: Any, preprocessing: Preprocessing) -> tuple[Any, int]:
    """The network with the linear layer that gives its logits taken out, which changes it.

    Args:
        network: A classifier.
        preprocessing: What images it takes, to see which layer that is.

    Returns:
        The network, and how many features the layer was given.

    Raises:
        InputError: If its logits do not come from a linear layer.
    """
    path = _last_linear(network, preprocessing)
    if not path:
        raise InputError(
            "a classifier must end in a linear layer to be used without it as a backbone; this "
            "one does not. Say which layer gives the features: features_from=LAYER, or pass a "
            "module that gives them."
        )
    n_features = network.get_submodule(path).in_features
    parent, _, name = path.rpartition(".")
    setattr(network.get_submodule(parent), name, nn.Identity())
    return network, int(n_features)


def _last_linear(network: Any, preprocessing: Preprocessing) -> str:
    outputs: dict[str, Any] = {}
    handles = [
        layer.register_forward_hook(lambda _l, _i, out, path=path: outputs.update({path: out}))
        for path, layer in network.named_modules()
        if path and isinstance(layer, nn.Linear)
    ]
    try:
        with torch.no_grad():
            result = tried(network, preprocessing)
    finally:
        for handle in handles:
            handle.remove()
    logits = getattr(result, "logits", result)
    found = [path for path, out in outputs.items() if _same(out, logits)]
    return found[-1] if found else ""


def _same(one: Any, other: Any) -> bool:
    """Whether two tensors are the same place in memory."""
    if not isinstance(other, torch.Tensor):
        return False
    return one.shape == other.shape and one.data_ptr() == other.data_ptr()


def _as_row(output: Any, name: str | None) -> Any:
    if isinstance(output, torch.Tensor) and output.ndim == 4:
        return output.mean(dim=(2, 3))
    if isinstance(output, torch.Tensor) and output.ndim == 2:
        return output
    came = (
        f"shape {tuple(output.shape)}"
        if isinstance(output, torch.Tensor)
        else type(output).__name__
    )
    raise InputError(
        "features must be a tensor of shape (n, d), or (n, c, h, w) to be averaged over "
        f"positions; {name} gives {came}. Name another layer, or wrap the module in one that "
        "picks them out."
    )
