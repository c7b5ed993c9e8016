"""How a network is trained: numbers that every trainer has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from shiftcal._checks import check_count, check_flag, check_not_negative, check_positive
from shiftcal._registry import suggest
from shiftcal.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Stochastic gradient descent with the reference library's schedule.

    In iteration ``t`` a group of parameters has the learning rate ``lr * m * (1 + lr_gamma *
    t) ** -lr_power``, where ``m`` is ``backbone_lr`` for the backbone and 1 for what was added.

    Attributes:
        iterations: Batches in all.
        batch_size: Images of the source in each, and as many of the target; two or more, because
            of batch statistics.
        lr: Learning rate at the start.
        lr_gamma: How fast it falls; 0 keeps it.
        lr_power: Exponent of its fall.
        momentum: Of the gradient.
        backbone_momentum: Of the backbone's; ``None`` is that of the rest.
        nesterov: Whether it is Nesterov's, in groups that have momentum.
        weight_decay: On all parameters.
        backbone_lr: What the backbone's learning rate is multiplied with.
        bottleneck: Features after the bottleneck; 0 is none, and the head takes the backbone's.
    """

    iterations: int = 10_000
    batch_size: int = 32
    lr: float = 0.003
    lr_gamma: float = 3e-4
    lr_power: float = 0.75
    momentum: float = 0.9
    backbone_momentum: float | None = None
    nesterov: bool = True
    weight_decay: float = 5e-4
    backbone_lr: float = 0.1
    bottleneck: int = 256

    def __post_init__(self) -> None:
        for name, least in (("iterations", 1), ("batch_size", 2), ("bottleneck", 0)):
            check_count(getattr(self, name), name=name, least=least)
        for name in ("lr_gamma", "lr_power", "weight_decay", "backbone_lr"):
            check_not_negative(getattr(self, name), name=name)
        check_positive(self.lr, name="lr")
        check_flag(self.nesterov, name="nesterov")
        _check_momentum(self.momentum, name="momentum")
        if self.backbone_momentum is not None:
            _check_momentum(self.backbone_momentum, name="backbone_momentum")

    def changed(self, changes: Mapping[str, Any]) -> Settings:
        """The same with some of the numbers changed.

        Raises:
            InputError: If one has no such name, or cannot be used.
        """
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise InputError(f"training has no setting {name!r}. {suggest(name, known)}")
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return plain_fields(self)

    def lr_at(self, step: int) -> float:
        """Learning rate of what was added, in iteration ``step``, from 0."""
        return float(self.lr * (1 + self.lr_gamma * step) ** -self.lr_power)


def plain_fields(options: Any) -> dict[str, Any]:
    """The fields of a dataclass of numbers, flags and names, with numpy's as Python's own."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in asdict(options).items()
    }


def _check_momentum(value: float, *, name: str) -> None:
    if check_not_negative(value, name=name) >= 1:
        raise InputError(
            f"{name} must be below 1, or no gradient is ever forgotten; got {value!r}."
        )
