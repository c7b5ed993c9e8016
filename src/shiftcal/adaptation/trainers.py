"""Trainers: source-only, DAN, JAN, CDAN, MDD, SAFN and MCC, and the settings all of them have.

Nothing here needs PyTorch until something is trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np

from shiftcal.checks import (
    check_choice,
    check_count,
    check_flag,
    check_not_negative,
    check_positive,
)
from shiftcal.errors import InputError, UnknownName, suggest
from shiftcal.registry import TRAINERS

Recipes: TypeAlias = Mapping[str, Mapping[str, Any]]


class _Network:
    """The module ``shiftcal.adaptation.network``, which needs PyTorch: imported on first use."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("shiftcal.adaptation.network"), name)


network = _Network()

# The recipe with the reference library's defaults.
DEFAULT = "default"
# What is done to training images; see shiftcal.adaptation.loop.
TRANSFORMS = ("default", "center-crop", "random-crop", "none")
# Transforms of recipes that differ from the trainer's.
_RECIPE_TRANSFORMS = {"visda": "center-crop", "digits": "none"}
# The least number where it is not 1, and numbers that must be above 0.
_LEAST = {"batch_size": 2, "bottleneck": 0}
_POSITIVE = ("lr", "sigma", "temperature")


class _Options:
    """A frozen dataclass of numbers, flags and names, checked by the types of their defaults."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            name, value = field.name, getattr(self, field.name)
            if isinstance(field.default, bool):
                check_flag(value, name=name)
            elif isinstance(field.default, int):
                check_count(value, name=name, least=_LEAST.get(name, 1))
            elif isinstance(field.default, float):
                (check_positive if name in _POSITIVE else check_not_negative)(value, name=name)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in asdict(self).items()  # type: ignore[call-overload]
        }


@dataclass(frozen=True, kw_only=True)
class Settings(_Options):
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
        super().__post_init__()
        for name in ("momentum", "backbone_momentum"):
            value = getattr(self, name)
            if value is not None and check_not_negative(value, name=name) >= 1:
                raise InputError(f"{name} must be below 1; got {value!r}.")

    def lr_at(self, step: int) -> float:
        """Learning rate of what was added, in iteration ``step``, from 0."""
        return float(self.lr * (1 + self.lr_gamma * step) ** -self.lr_power)


class Pass(NamedTuple):
    """What a network gives for a batch.

    Attributes:
        features: After the bottleneck, ``(b, d)``.
        logits: ``(b, k)``.
    """

    features: Any
    logits: Any


def together(source: Pass, target: Pass) -> Pass:
    """The rows of the source, then as many of the target."""
    return Pass(*(network.torch.cat(pair) for pair in zip(source, target, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Trainer(_Options, ABC):
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
    recipes: ClassVar[Recipes] = MappingProxyType({})
    transform: ClassVar[str] = "default"

    trade_off: float = 1.0

    @classmethod
    def prepared(
        cls, recipe: str | None = None, changes: Mapping[str, Any] | None = None
    ) -> tuple[Self, Settings]:
        """The trainer and its settings by a recipe, with the user's changes.

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
        common = {field.name for field in fields(Settings)}
        for name in wanted:
            if name not in own | common:
                raise InputError(
                    f"{cls.label} has no option {name!r}, and training no such setting. "
                    f"{suggest(name, sorted(own | common))}"
                )
        trainer = cls(**{name: value for name, value in wanted.items() if name in own})
        changed = {name: value for name, value in wanted.items() if name in common}
        return trainer, replace(cls.settings, **changed)

    def bottleneck(self, n_in: int, width: int) -> Any:
        """From the backbone's features ``(b, n_in)`` to ``(b, width)``, a module."""
        return network.linear_bottleneck(n_in, width, apart=not self.joint)

    def head(self, width: int, n_classes: int) -> Any:
        """From features ``(b, width)`` to logits ``(b, n_classes)``, a module."""
        return network.nn.Linear(width, n_classes)

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
            extra: What :meth:`extra` returned.
            step: Which iteration this is, from 0, for schedules.
        """


class Choice(NamedTuple):
    """A trainer with its settings.

    Attributes:
        name: Of the trainer.
        trainer: The trainer.
        settings: How the network is trained.
        recipe: Which recipe that is.
        transform: What is done to training images, by name.
    """

    name: str
    trainer: Trainer
    settings: Settings
    recipe: str
    transform: str


def choose(
    name: str,
    recipe: str | None = None,
    changes: Mapping[str, Any] | None = None,
    *,
    transform: str | None = None,
    frozen: bool = False,
    backbone: object = None,
) -> Choice:
    """A trainer with its settings; arguments as for :func:`shiftcal.adaptation.adapt`.

    Raises:
        UnknownName: If there is no such trainer, recipe or transform.
        InputError: If an option or the transform cannot be used.
    """
    if transform is not None:
        check_choice(transform, TRANSFORMS, name="transform")
        if frozen:
            raise InputError("transform changes training images; a frozen backbone sees none.")
    kind: type[Trainer] = TRAINERS.get(name)
    if recipe is None:
        # Untrained networks need settings of their own.
        suited = "frozen" if frozen else "digits" if backbone == "digits-cnn" else DEFAULT
        recipe = suited if suited in kind.recipes else DEFAULT
    trainer, settings = kind.prepared(None if recipe == DEFAULT else recipe, changes)
    transform = transform or _RECIPE_TRANSFORMS.get(recipe, kind.transform)
    return Choice(TRAINERS.canonical(name), trainer, settings, recipe, transform)


# The recipe of all trainers for small networks that start from scratch; it and "frozen" are ours.
_DIGITS = {"iterations": 1_000, "batch_size": 64, "lr": 0.03, "backbone_lr": 1.0}


@final
@dataclass(frozen=True, kw_only=True)
class CDAN(Trainer):
    """Conditional domain adversarial network (Long et al., 2018).

    A discriminator learns the domain from the outer product of probabilities and features, by
    binary cross-entropy; the bottleneck learns the contrary, by that gradient times ``-c``. In
    iteration ``t``, ``c = reversal * (2 / (1 + exp(-t / warm_up)) - 1)``.

    Attributes:
        entropy: Whether images with confident predictions weigh more, by ``1 + exp(-entropy)``:
            CDAN+E.
        hidden: Width of the discriminator's two hidden layers.
        reversal: What ``c`` tends to.
        warm_up: Iterations until it has come 46% of the way.
    """

    name = "cdan"
    label = "CDAN"
    settings = Settings(iterations=20_000, lr=0.01, lr_gamma=1e-3, weight_decay=1e-3)
    recipes: ClassVar[Recipes] = {
        "office-home": {"iterations": 30_000},
        "visda": {"iterations": 30_000},
        "frozen": {"iterations": 1_000, "hidden": 64, "warm_up": 300},
        "digits": {**_DIGITS, "hidden": 256, "warm_up": 300},
    }

    entropy: bool = False
    hidden: int = 1024
    reversal: float = 1.0
    warm_up: int = 1000

    def extra(self, width: int, n_classes: int) -> Any:
        """The discriminator, from ``width * n_classes`` numbers to a logit."""
        return network.discriminator(width * n_classes, self.hidden)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The discriminator's loss."""
        coefficient = network.warm_start(step, self.reversal, self.warm_up)
        features, logits = together(source, target)
        probs, weights = logits.detach().softmax(dim=1), None
        if self.entropy:
            weights = 1 + network.torch.special.xlogy(probs, probs).sum(1).exp()
            weights = weights / weights.mean()
        # The outer product is linear in the features: reversing their gradient reverses its.
        reversed_features = network.reverse(features, coefficient)
        outer = network.torch.bmm(probs.unsqueeze(2), reversed_features.unsqueeze(1)).flatten(1)
        return network.domain_loss(extra(outer), weights)


@final
@dataclass(frozen=True, kw_only=True)
class DAN(Trainer):
    """Deep adaptation network (Long et al., 2015).

    The transfer loss is the squared maximum mean discrepancy of the bottleneck's features, with
    the sum of five Gaussian kernels whose variances are 1/8 to 2 times the mean squared distance.

    Attributes:
        linear: Whether it is estimated from neighbouring pairs of the batch; else from all pairs.
    """

    name = "dan"
    label = "DAN"
    joint = False
    recipes: ClassVar[Recipes] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000},
        "frozen": {"iterations": 1_000},
        "digits": _DIGITS,
    }

    linear: bool = True

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, ReLU, dropout of one half."""
        return network.linear_bottleneck(n_in, width, norm=False, dropout=0.5)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The discrepancy of the features."""
        return network.mk_mmd(source.features, target.features, linear=self.linear)


@final
@dataclass(frozen=True, kw_only=True)
class JAN(Trainer):
    """Joint adaptation network (Long et al., 2017).

    The transfer loss is the squared maximum mean discrepancy with the product of two kernels: that
    of :class:`DAN` on the bottleneck's features, and a Gaussian one on the probabilities.

    Attributes:
        linear: Whether it is estimated from neighbouring pairs of the batch; else from all pairs.
        sigma: Standard deviation of the kernel on the probabilities.
    """

    name = "jan"
    label = "JAN"
    recipes: ClassVar[Recipes] = DAN.recipes

    linear: bool = False
    sigma: float = 0.92

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half."""
        return network.linear_bottleneck(n_in, width, dropout=0.5)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The discrepancy of features and probabilities together."""
        features, logits = together(source, target)
        return network.jmmd(features, logits.softmax(1), linear=self.linear, sigma=self.sigma)


@final
@dataclass(frozen=True, kw_only=True)
class MCC(Trainer):
    """Minimum class confusion (Jin et al., 2020).

    With ``P`` the target's probabilities at a temperature and ``w`` weights that favour confident
    predictions, the class confusion is ``Pᵀ diag(w) P`` with rows that sum to one; the transfer
    loss is the mean over classes of what lies off its diagonal.

    Attributes:
        temperature: What logits are divided by.
    """

    name = "mcc"
    label = "MCC"
    settings = Settings(
        iterations=20_000, batch_size=36, lr=0.005, lr_gamma=1e-3, weight_decay=1e-3
    )
    recipes: ClassVar[Recipes] = {
        "office-home": {"iterations": 30_000, "bottleneck": 2048, "temperature": 2.5},
        "visda": {"iterations": 30_000, "lr": 0.002, "temperature": 3.0},
        "frozen": {"iterations": 1_000, "batch_size": 32},
        "digits": _DIGITS,
    }

    temperature: float = 2.5

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The target's class confusion."""
        return network.class_confusion(target.logits, self.temperature)


@final
@dataclass(frozen=True, kw_only=True)
class MDD(Trainer):
    """Margin disparity discrepancy (Zhang et al., 2019).

    With ``p`` the probabilities of an adversarial head and ``i`` the class that the main head
    predicts, the transfer loss is ``-margin * mean log p_i`` on the source, minus the mean of
    ``log(1 - p_i)`` on the target. The adversarial head learns by it; the bottleneck learns the
    contrary, by that gradient times ``-c`` with ``c`` as in :class:`CDAN`.

    Attributes:
        margin: What the source counts for, against the target.
        width: Of the hidden layer of both heads.
        reversal: What ``c`` tends to.
        warm_up: Iterations until it has come 46% of the way.
    """

    name = "mdd"
    label = "MDD"
    settings = Settings(iterations=20_000, lr=0.004, lr_gamma=2e-4, bottleneck=1024)
    recipes: ClassVar[Recipes] = {
        "office-home": {"iterations": 30_000, "bottleneck": 2048, "width": 2048},
        "visda": {"iterations": 30_000, "batch_size": 36, "bottleneck": 1024, "width": 1024},
        "frozen": {"iterations": 1_000, "bottleneck": 256, "width": 128, "warm_up": 300},
        "digits": {**_DIGITS, "bottleneck": 256, "width": 128, "warm_up": 300},
    }

    margin: float = 4.0
    width: int = 1024
    reversal: float = 0.1
    warm_up: int = 1000

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half."""
        return network.draw_layers(
            network.linear_bottleneck(n_in, width, dropout=0.5), 0.005, bias=0.1
        )

    def head(self, width: int, n_classes: int) -> Any:
        """Linear, ReLU, dropout of one half, linear."""
        layers = network.nn.Linear(width, self.width), network.nn.ReLU(), network.nn.Dropout(0.5)
        return network.draw_layers(
            network.nn.Sequential(*layers, network.nn.Linear(self.width, n_classes)), 0.01
        )

    def extra(self, width: int, n_classes: int) -> Any:
        """The adversarial head, made like the main one."""
        return self.head(width, n_classes)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The adversarial head's loss."""
        coefficient = network.warm_start(step, self.reversal, self.warm_up)
        features, _ = together(source, target)
        ours, theirs = extra(network.reverse(features, coefficient)).chunk(2)
        return network.margin_disparity(
            source.logits, ours, target.logits, theirs, margin=self.margin
        )


@final
@dataclass(frozen=True, kw_only=True)
class SAFN(Trainer):
    """Stepwise adaptive feature norm (Xu et al., 2019).

    The transfer loss is the mean over a domain of ``(|f| - (r + delta))²``, where ``r`` is the
    value of ``|f|`` without its gradient, added up over both domains: every feature vector is to be
    ``delta`` longer than it is. The learning rate stays and is the backbone's too, which has no
    momentum.

    Attributes:
        delta: How much longer.
    """

    name = "safn"
    label = "SAFN"
    joint = False
    transform = "random-crop"
    settings = Settings(
        lr=0.001,
        lr_gamma=0.0,
        backbone_momentum=0.0,
        nesterov=False,
        backbone_lr=1.0,
        bottleneck=1000,
    )
    recipes: ClassVar[Recipes] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000, "batch_size": 36, "delta": 0.3},
        "frozen": {"iterations": 1_000, "lr": 0.003, "bottleneck": 256},
        "digits": {**_DIGITS, "backbone_momentum": 0.9, "bottleneck": 256, "delta": 0.3},
    }

    trade_off: float = 0.05
    delta: float = 1.0

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half that keeps the norm."""
        return network.norm_preserving_bottleneck(n_in, width, dropout=0.5)

    def head(self, width: int, n_classes: int) -> Any:
        """One linear layer."""
        return network.draw_layers(super().head(width, n_classes), 0.01, bias_deviation=0.01)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The distance of the norms from their targets, in both domains."""
        return network.stepwise_norm(together(source, target).features, domains=2, delta=self.delta)


@final
@dataclass(frozen=True, kw_only=True)
class SourceOnly(Trainer):
    """The cross-entropy on the source, and nothing else; ``trade_off`` multiplies nothing.

    The reference puts the head on the backbone itself. The recipes ``"frozen"`` and ``"digits"``,
    which are ours, have a bottleneck as the others have; learning rates and heads still differ.
    """

    name = "source-only"
    label = "source only"
    adapts = False
    settings = Settings(lr=0.001, bottleneck=0)
    recipes: ClassVar[Recipes] = {
        "office-home": {"iterations": 2_500},
        "visda": {"iterations": 20_000},
        "frozen": {"iterations": 1_000, "lr": 0.003, "bottleneck": 256},
        "digits": {**_DIGITS, "bottleneck": 256},
    }

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """Nothing."""
        return source.logits.new_zeros(())
