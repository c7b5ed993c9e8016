"""Source-only, DAN, JAN, CDAN, MDD, SAFN and MCC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal.adaptation.trainer import Pass, Settings, Trainer, together
from shiftcal.checks import check_count, check_flag, check_not_negative, check_positive


@final
@dataclass(frozen=True, kw_only=True)
class CDAN(Trainer):
    """Conditional domain adversarial network (Long et al., 2018).

    A discriminator learns the domain from the outer product of probabilities and features, by
    binary cross-entropy; the bottleneck learns the contrary, by that gradient times ``-c``. In
    iteration ``t``, ``c = reversal * (2 / (1 + exp(-t / warm_up)) - 1)``.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        entropy: Whether images with sure predictions weigh more, by ``1 + exp(-entropy)``: CDAN+E.
        hidden: Width of the discriminator's two hidden layers.
        reversal: What ``c`` tends to.
        warm_up: Iterations until it has come 46% of the way.
    """

    name: ClassVar[str] = "cdan"
    label: ClassVar[str] = "CDAN"
    settings: ClassVar[Settings] = Settings(
        iterations=20_000, lr=0.01, lr_gamma=1e-3, weight_decay=1e-3
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 30_000},
        "visda": {"iterations": 30_000},
        "frozen": {"iterations": 1_000, "hidden": 64, "warm_up": 300},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "hidden": 256,
            "backbone_lr": 1.0,
            "warm_up": 300,
        },
    }

    entropy: bool = False
    hidden: int = 1024
    reversal: float = 1.0
    warm_up: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.entropy, name="entropy")
        check_count(self.hidden, name="hidden")
        check_not_negative(self.reversal, name="reversal")
        check_count(self.warm_up, name="warm_up")

    def extra(self, width: int, n_classes: int) -> Any:
        """The discriminator, from ``width * n_classes`` numbers to a logit."""
        from shiftcal.adaptation.network import discriminator

        return discriminator(width * n_classes, self.hidden)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The discriminator's loss."""
        from shiftcal.adaptation.losses import (
            domain_loss,
            entropy_weights,
            outer,
            reverse,
            warm_start,
        )

        coefficient = warm_start(step, hi=self.reversal, max_iters=self.warm_up)
        features, logits = together(source, target)
        probabilities = logits.detach().softmax(dim=1)
        weights = entropy_weights(probabilities) if self.entropy else None
        # The outer product is linear in the features: reversing their gradient reverses its.
        domain_logits = extra(outer(probabilities, reverse(features, coefficient)))
        ours, theirs = domain_logits.chunk(2)
        return domain_loss(ours, theirs, weights)


@final
@dataclass(frozen=True, kw_only=True)
class DAN(Trainer):
    """Deep adaptation network (Long et al., 2015).

    The transfer loss is the squared maximum mean discrepancy of the bottleneck's features, with
    the sum of five Gaussian kernels whose variances are 1/8 to 2 times the mean squared distance.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        linear: Whether it is estimated from neighbouring pairs of the batch; else from all pairs.
    """

    name: ClassVar[str] = "dan"
    label: ClassVar[str] = "DAN"
    joint: ClassVar[bool] = False
    settings: ClassVar[Settings] = Settings()
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000},
        "frozen": {"iterations": 1_000},
        "digits": {"iterations": 1_000, "batch_size": 64, "lr": 0.03, "backbone_lr": 1.0},
    }

    linear: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.linear, name="linear")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, ReLU, dropout of one half."""
        from shiftcal.adaptation.network import linear_bottleneck

        return linear_bottleneck(n_in, width, norm=False, dropout=0.5)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The discrepancy of the features."""
        from shiftcal.adaptation.losses import mk_mmd

        return mk_mmd(source.features, target.features, linear=self.linear)


@final
@dataclass(frozen=True, kw_only=True)
class JAN(Trainer):
    """Joint adaptation network (Long et al., 2017).

    The transfer loss is the squared maximum mean discrepancy with the product of two kernels: that
    of :class:`DAN` on the bottleneck's features, and a Gaussian one on the probabilities.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        linear: Whether it is estimated from neighbouring pairs of the batch; else from all pairs.
        sigma: Standard deviation of the kernel on the probabilities.
    """

    name: ClassVar[str] = "jan"
    label: ClassVar[str] = "JAN"
    settings: ClassVar[Settings] = Settings()
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000},
        "frozen": {"iterations": 1_000},
        "digits": {"iterations": 1_000, "batch_size": 64, "lr": 0.03, "backbone_lr": 1.0},
    }

    linear: bool = False
    sigma: float = 0.92

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.linear, name="linear")
        check_positive(self.sigma, name="sigma")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half."""
        from shiftcal.adaptation.network import linear_bottleneck

        return linear_bottleneck(n_in, width, dropout=0.5)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The discrepancy of features and probabilities together."""
        from shiftcal.adaptation.losses import jmmd

        features, logits = together(source, target)
        return jmmd(features, logits.softmax(1), linear=self.linear, sigma=self.sigma)


@final
@dataclass(frozen=True, kw_only=True)
class MCC(Trainer):
    """Minimum class confusion (Jin et al., 2020).

    With ``P`` the target's probabilities at a temperature and ``w`` weights that favour sure
    predictions, the class confusion is ``Pᵀ diag(w) P`` with rows that sum to one; the transfer
    loss is the mean over classes of what lies off its diagonal.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        temperature: What logits are divided by.
    """

    name: ClassVar[str] = "mcc"
    label: ClassVar[str] = "MCC"
    settings: ClassVar[Settings] = Settings(
        iterations=20_000, batch_size=36, lr=0.005, lr_gamma=1e-3, weight_decay=1e-3
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 30_000, "bottleneck": 2048, "temperature": 2.5},
        "visda": {"iterations": 30_000, "lr": 0.002, "temperature": 3.0},
        "frozen": {"iterations": 1_000, "batch_size": 32},
        "digits": {"iterations": 1_000, "batch_size": 64, "lr": 0.03, "backbone_lr": 1.0},
    }

    temperature: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.temperature, name="temperature")

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The target's class confusion."""
        from shiftcal.adaptation.losses import class_confusion

        return class_confusion(target.logits, self.temperature)


@final
@dataclass(frozen=True, kw_only=True)
class MDD(Trainer):
    """Margin disparity discrepancy (Zhang et al., 2019).

    With ``p`` the probabilities of an adversarial head and ``i`` the class that the main head
    predicts, the transfer loss is ``-margin * mean log p_i`` on the source, minus the mean of
    ``log(1 - p_i)`` on the target. The adversarial head learns by it; the bottleneck learns the
    contrary, by that gradient times ``-c`` with ``c`` as in :class:`CDAN`.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        margin: What the source counts for, against the target.
        width: Of the hidden layer of both heads.
        reversal: What ``c`` tends to.
        warm_up: Iterations until it has come 46% of the way.
    """

    name: ClassVar[str] = "mdd"
    label: ClassVar[str] = "MDD"
    settings: ClassVar[Settings] = Settings(
        iterations=20_000, lr=0.004, lr_gamma=2e-4, bottleneck=1024
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 30_000, "bottleneck": 2048, "width": 2048},
        "visda": {"iterations": 30_000, "batch_size": 36, "bottleneck": 1024, "width": 1024},
        "frozen": {"iterations": 1_000, "bottleneck": 256, "width": 128, "warm_up": 300},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "backbone_lr": 1.0,
            "bottleneck": 256,
            "width": 128,
            "warm_up": 300,
        },
    }

    margin: float = 4.0
    width: int = 1024
    reversal: float = 0.1
    warm_up: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self.margin, name="margin")
        check_count(self.width, name="width")
        check_not_negative(self.reversal, name="reversal")
        check_count(self.warm_up, name="warm_up")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half."""
        from shiftcal.adaptation.network import draw_layers, linear_bottleneck

        made = linear_bottleneck(n_in, width, dropout=0.5)
        draw_layers(made, deviation=0.005, bias=0.1)
        return made

    def head(self, width: int, n_classes: int) -> Any:
        """Linear, ReLU, dropout of one half, linear."""
        from shiftcal.adaptation.network import draw_layers, two_layer_head

        made = two_layer_head(width, self.width, n_classes, dropout=0.5)
        draw_layers(made, deviation=0.01)
        return made

    def extra(self, width: int, n_classes: int) -> Any:
        """The adversarial head, made like the main one."""
        return self.head(width, n_classes)

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """The adversarial head's loss."""
        from shiftcal.adaptation.losses import margin_disparity, reverse, warm_start

        coefficient = warm_start(step, hi=self.reversal, max_iters=self.warm_up)
        features, _ = together(source, target)
        ours, theirs = extra(reverse(features, coefficient)).chunk(2)
        return margin_disparity(source.logits, ours, target.logits, theirs, margin=self.margin)


@final
@dataclass(frozen=True, kw_only=True)
class SAFN(Trainer):
    """Stepwise adaptive feature norm (Xu et al., 2019).

    The transfer loss is the mean over a domain of ``(|f| - (r + delta))²``, where ``r`` is the
    value of ``|f|`` without its gradient, added up over both domains: every feature vector is to be
    ``delta`` longer than it is. The learning rate stays and is the backbone's too, which has no
    momentum. The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        delta: How much longer.
    """

    name: ClassVar[str] = "safn"
    label: ClassVar[str] = "SAFN"
    joint: ClassVar[bool] = False
    transform: ClassVar[str] = "random-crop"
    settings: ClassVar[Settings] = Settings(
        lr=0.001,
        lr_gamma=0.0,
        backbone_momentum=0.0,
        nesterov=False,
        backbone_lr=1.0,
        bottleneck=1000,
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000, "batch_size": 36, "delta": 0.3},
        "frozen": {"iterations": 1_000, "lr": 0.003, "bottleneck": 256},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "backbone_momentum": 0.9,
            "bottleneck": 256,
            "delta": 0.3,
        },
    }

    trade_off: float = 0.05
    delta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self.delta, name="delta")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half that keeps the norm."""
        from shiftcal.adaptation.network import norm_preserving_bottleneck

        return norm_preserving_bottleneck(n_in, width, dropout=0.5)

    def head(self, width: int, n_classes: int) -> Any:
        """One linear layer."""
        from shiftcal.adaptation.network import draw_layers

        made = super().head(width, n_classes)
        draw_layers(made, deviation=0.01, bias_deviation=0.01)
        return made

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """How far the norms are from what they are to be, in both domains."""
        from shiftcal.adaptation.losses import stepwise_norm

        return stepwise_norm(together(source, target).features, domains=2, delta=self.delta)


@final
@dataclass(frozen=True, kw_only=True)
class SourceOnly(Trainer):
    """The cross-entropy on the source, and nothing else; ``trade_off`` multiplies nothing.

    The reference puts the head on the backbone itself. The recipes ``"frozen"`` and ``"digits"``,
    which are ours, have a bottleneck as the others have; learning rates and heads still differ.
    """

    name: ClassVar[str] = "source-only"
    label: ClassVar[str] = "source only"
    adapts: ClassVar[bool] = False
    settings: ClassVar[Settings] = Settings(lr=0.001, bottleneck=0)
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 2_500},
        "visda": {"iterations": 20_000},
        "frozen": {"iterations": 1_000, "lr": 0.003, "bottleneck": 256},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "backbone_lr": 1.0,
            "bottleneck": 256,
        },
    }

    def transfer(self, source: Pass, target: Pass, extra: Any, step: int) -> Any:
        """Nothing."""
        return source.logits.new_zeros(())
