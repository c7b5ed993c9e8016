"""Stochastic gradient descent, with the learning rate set anew in every iteration."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.settings import Settings

_BACKBONE = "classifier.backbone."


class Optimiser:
    """Descent on two groups of parameters: the backbone, and what was added to it.

    With the gradient ``g`` and the weights ``w``, ``d = g + weight_decay * w``, ``v = momentum * v
    + d``, and ``w`` moves by ``-rate * (d + momentum * v)`` if the momentum is Nesterov's, else by
    ``-rate * v``. The rate is the settings' for the iteration times the group's own factor: it is
    set, never multiplied with what it was.

    These are the numbers of torch's own class, and one of its kernels. The class itself imports a
    compiler, which takes as long as a short training, and spends more time on a step of small
    networks than the kernel does.

    Args:
        objective: Its parameters that want a gradient are trained.
        settings: Of the training.
        device: Where it runs.
    """

    def __init__(self, objective: Any, settings: Settings, device: Any) -> None:
        self._rate = settings.lr_at
        self._update = torch._fused_sgd_ if _has_fused(device) else _update
        named = [(name, p) for name, p in objective.named_parameters() if p.requires_grad]
        backbone = {name: p for name, p in named if name.startswith(_BACKBONE)}
        added = {name: p for name, p in named if name not in backbone}
        slow = settings.backbone_momentum
        groups = [
            _group(backbone, settings.backbone_lr, settings.momentum if slow is None else slow),
            _group(added, 1.0, settings.momentum),
        ]
        # As torch's scaler of gradients wants them.
        self.param_groups = [group for group in groups if group["params"]]
        self._common = {"weight_decay": settings.weight_decay, **_UNUSED}
        self._nesterov = settings.nesterov

    def step(self, step: int) -> None:
        """Move the weights by their gradients; ``step`` is the number of the iteration."""
        rate = self._rate(step)
        with torch.no_grad():
            for group in self.param_groups:
                parameters, velocities = group["params"], group["velocities"]
                gradients = [p.grad for p in parameters]
                if any(one is None for one in gradients):
                    parameters, velocities, gradients = _with_gradient(group)
                if parameters:
                    momentum = group["momentum"]
                    self._update(
                        parameters,
                        gradients,
                        velocities,
                        momentum=momentum,
                        lr=rate * group["factor"],
                        nesterov=self._nesterov and momentum > 0,
                        **self._common,
                    )

    def momentum(self) -> dict[str, Any]:
        """What the descent remembers, by the parameters' names: the tensors it goes on with."""
        return {
            name: velocity
            for group in self.param_groups
            for name, velocity in zip(group["names"], group["velocities"], strict=False)
        }


# What torch's kernel could do besides. At the first step velocities are 0, as if there were none.
_UNUSED = {"dampening": 0.0, "maximize": False, "is_first_step": False}


def _group(named: dict[str, Any], factor: float, momentum: float) -> dict[str, Any]:
    parameters = list(named.values())
    return {
        "names": list(named),
        "params": parameters,
        "velocities": [torch.zeros_like(p) for p in parameters] if momentum else [],
        "momentum": momentum,
        "factor": factor,
    }


def _with_gradient(group: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Those of a group that the loss depended on: parameters, velocities, gradients."""
    kept = [i for i, p in enumerate(group["params"]) if p.grad is not None]
    parameters = [group["params"][i] for i in kept]
    velocities = [group["velocities"][i] for i in kept] if group["velocities"] else []
    return parameters, velocities, [p.grad for p in parameters]


def _update(
    parameters: list[Any],
    gradients: list[Any],
    velocities: list[Any],
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    nesterov: bool,
    **_: Any,
) -> None:
    """The same where torch has no such kernel, which not every kind of device has."""
    for i, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
        move = gradient.add(parameter, alpha=weight_decay)
        if velocities:
            velocity = velocities[i].mul_(momentum).add_(move)
            move = move.add_(velocity, alpha=momentum) if nesterov else velocity
        parameter.add_(move, alpha=-lr)


def _has_fused(device: Any) -> bool:
    one = [torch.zeros(1, device=device)]
    settings = {"weight_decay": 0.0, "momentum": 0.9, "lr": 0.1, "nesterov": True, **_UNUSED}
    try:
        torch._fused_sgd_(one, one, one, **settings)
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    return True
