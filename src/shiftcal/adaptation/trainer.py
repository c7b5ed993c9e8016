"""The contract of a trainer and the settings every trainer has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from shiftcal.checks import check_count, check_flag, check_not_negative, check_positive
from shiftcal.errors import InputError, UnknownName
from shiftcal.registry import suggest


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


class Pass(NamedTuple):
    """What a network gives for a batch.

    Attributes:
        features: After the bottleneck, ``(b, d)``.
        logits: ``(b, k)``.
    """

    features: Any
    logits: Any


def together(source: Pass, target: Pass) -> Pass:
    """The rows of the source, then as many of the target.

    Raises:
        InputError: If one has more rows than the other.
    """
    from shiftcal.adaptation.losses import torch

    if len(source.logits) != len(target.logits):
        raise InputError(
            "source and target batches must have the same number of rows; got "
            f"{len(source.logits)} and {len(target.logits)}. Drop the extra rows."
        )
    return Pass(*(torch.cat(pair) for pair in zip(source, target, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Trainer(ABC):
    """A way to train on labelled source images and unlabelled target images.

    What is minimised is the cross-entropy on the source plus ``trade_off`` times :meth:`transfer`.
    A new trainer is a final frozen dataclass with a ``name``, whose fields are its options. It is
    the same for a whole network and for frozen features.

    Attributes:
        name: What it is called in Python and on the command line.
        label: What it is called in tables.
        joint: Whether source and target have common batch statistics. Else they go through the
            backbone one after the other, and a bottleneck that normalises, which always gets both,
            the source first, must do so apart.
        adapts: Whether it looks at the target at all.
        settings: The reference library's own, unless a recipe says otherwise.
        recipes: Settings and options for a data set or a mode, by name: what differs.
        transform: What is done to training images, by name, as for :func:`training_transform`.
        trade_off: What the transfer loss is multiplied with.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    joint: ClassVar[bool] = True
    adapts: ClassVar[bool] = True
    settings: ClassVar[Settings] = Settings()
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    transform: ClassVar[str] = "default"

    trade_off: float = 1.0

    def __post_init__(self) -> None:
        check_not_negative(self.trade_off, name="trade_off")

    @classmethod
    def prepared(
        cls, recipe: str | None = None, changes: Mapping[str, Any] | None = None
    ) -> tuple[Self, Settings]:
        """The trainer and its settings by a recipe, with what the user wants otherwise.

        Args:
            recipe: One of :attr:`recipes`; ``None`` is the library's defaults.
            changes: Options of the trainer and settings of the training, by name.

        Raises:
            UnknownName: If there is no such recipe.
            InputError: If a name is neither an option nor a setting, or a value cannot be used.
        """
        if recipe is not None and recipe not in cls.recipes:
            raise UnknownName(
                f"{cls.label} has no recipe {recipe!r}. {suggest(recipe, sorted(cls.recipes))}"
            )
        wanted = {**(cls.recipes[recipe] if recipe is not None else {}), **(changes or {})}
        own = {field.name for field in fields(cls)}
        common = set(cls.settings.to_dict())
        for name in wanted:
            if name not in own | common:
                raise InputError(
                    f"{cls.label} has no option {name!r}, and training no such setting. "
                    f"{suggest(name, sorted(own | common))}"
                )
        made = cls(**{name: value for name, value in wanted.items() if name in own})
        changed = {name: value for name, value in wanted.items() if name in common}
        return made, cls.settings.changed(changed)

    def bottleneck(self, n_in: int, width: int) -> Any:
        """From the backbone's features ``(b, n_in)`` to ``(b, width)``, a module."""
        from shiftcal.adaptation.network import linear_bottleneck

        return linear_bottleneck(n_in, width, apart=not self.joint)

    def head(self, width: int, n_classes: int) -> Any:
        """From features ``(b, width)`` to logits ``(b, n_classes)``, a module."""
        from shiftcal.adaptation.losses import nn

        return nn.Linear(width, n_classes)

    def extra(self, width: int, n_classes: int) -> Any:
        """A module that is trained along and is no part of the classifier, or ``None``."""
        del width, n_classes

    @abstractmethod
    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The transfer loss of a batch, a scalar; not yet multiplied with ``trade_off``.

        Args:
            source: What the network gives for the source images: ``source.features``, ``(b, d)``,
                and ``source.logits``, ``(b, k)``.
            target: The same of as many target images.
            extra: What :meth:`extra` made.
            step: Which iteration this is, from 0, for schedules.
        """

    def to_dict(self) -> dict[str, Any]:
        """Its options as plain values, for JSON."""
        return plain_fields(self)
