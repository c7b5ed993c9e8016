"""The network that is trained: a backbone, a bottleneck, a head, and the losses on top of them."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from shiftcal.adaptation.trainers import Pass, Trainer
from shiftcal.errors import (
    InputError,
    ShiftcalError,
    UnknownName,
    require,
    suggest,
)
from shiftcal.models import TorchModel, as_model
from shiftcal.models.model import digest, first_line
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.resolve import Spec, must_be_named, stored_spec

# PyTorch: the other modules import it from here, so that a missing one is reported in one place.
torch: Any = require("torch", extra="torch", needed_by="domain adaptation")
nn: Any = require("torch.nn", extra="torch", needed_by="domain adaptation")
functional: Any = require("torch.nn.functional", extra="torch", needed_by="domain adaptation")


def linear_bottleneck(
    n_in: int, width: int, *, norm: bool = True, apart: bool = False, dropout: float = 0.0
) -> Any:
    """A linear layer, batch normalisation, ReLU, dropout.

    Args:
        n_in: Input features.
        width: Output features.
        norm: Whether there is batch normalisation.
        apart: Whether each domain has its own batch statistics, :class:`ApartBatchNorm1d`.
        dropout: Probability that a feature becomes 0 in training; 0 is no dropout layer.
    """
    layers = [nn.Linear(n_in, width)]
    if norm:
        layers.append(ApartBatchNorm1d(width) if apart else nn.BatchNorm1d(width))
    layers.append(nn.ReLU())
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


class ApartBatchNorm1d(nn.BatchNorm1d):
    """Batch normalisation of a batch whose first half is the source and second half the target.

    In training each half is normalised with its own statistics, the source first; in evaluation
    it is the usual one.
    """

    def forward(self, x: Any) -> Any:
        """``x``, normalised, in its order."""
        if not self.training:
            return super().forward(x)
        source, target = x.chunk(2)
        return torch.cat((super().forward(source), super().forward(target)))


class NormPreservingDropout(nn.Module):
    """Dropout whose expected squared norm, in training, is that of its input.

    What is kept is divided by ``sqrt(1 - rate)`` instead of ``1 - rate``.

    Args:
        rate: Probability that an entry becomes 0.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Any) -> Any:
        """``x`` itself, unless in training."""
        if not self.training:
            return x
        return functional.dropout(x, self.rate) * math.sqrt(1 - self.rate)


def norm_preserving_bottleneck(n_in: int, width: int, *, dropout: float) -> Any:
    """A linear layer, batch normalisation apart, ReLU, and dropout that keeps the expected norm.

    All initial weights are normal with deviation 0.01, those of the normalisation around 1.
    """
    bottleneck = linear_bottleneck(n_in, width, apart=True)
    bottleneck.append(NormPreservingDropout(dropout))
    draw_layers(bottleneck, 0.01, bias_deviation=0.01)
    nn.init.normal_(bottleneck[1].weight, 1.0, 0.01)
    return bottleneck


def discriminator(n_in: int, hidden: int) -> Any:
    """Two hidden layers with batch normalisation and ReLU, to one logit: source is positive."""
    return nn.Sequential(
        *linear_bottleneck(n_in, hidden), *linear_bottleneck(hidden, hidden), nn.Linear(hidden, 1)
    )


def draw_layers(
    module: Any, deviation: float, *, bias: float = 0.0, bias_deviation: float = 0.0
) -> Any:
    """A new module whose linear layers have initial weights from normal distributions.

    Args:
        module: The module, which is changed and returned.
        deviation: Standard deviation of the weights, around 0.
        bias: Mean of the biases.
        bias_deviation: Their standard deviation.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0.0, deviation)
            nn.init.normal_(layer.bias, bias, bias_deviation)
    return module


class Classifier(nn.Module):
    """Images, or frozen features of them, to logits.

    Args:
        backbone: From images to features ``(b, n_features)``; ``None`` if the inputs are features.
        n_features: Number of backbone features.
        n_classes: Columns of the logits.
        trainer: Makes the bottleneck and the head.
        width: Features after the bottleneck; 0 is no bottleneck.

    Attributes:
        width: Features that the head takes.
    """

    def __init__(
        self, backbone: Any, n_features: int, n_classes: int, *, trainer: Trainer, width: int
    ) -> None:
        super().__init__()
        self.backbone = nn.Identity() if backbone is None else backbone
        self.bottleneck = trainer.bottleneck(n_features, width) if width else nn.Identity()
        self.width = width or n_features
        self.head = trainer.head(self.width, n_classes)

    def both(self, x: Any) -> Pass:
        """Features after the bottleneck, and logits."""
        return self.after_backbone(self.backbone(x))

    def after_backbone(self, x: Any) -> Pass:
        """The same from the backbone's features ``(b, n_features)``."""
        features = self.bottleneck(x)
        return Pass(features, self.head(features))

    def forward(self, x: Any) -> Any:
        """Logits ``(b, n_classes)``."""
        return self.both(x).logits


class Losses(NamedTuple):
    """The losses of a batch, scalars.

    Attributes:
        total: What is minimised.
        classification: Cross-entropy on the source.
        transfer: Transfer loss, before ``trade_off``; 0 if the trainer uses no target.
    """

    total: Any
    classification: Any
    transfer: Any


class Objective(nn.Module):
    """A new classifier with the modules trained along with it, from a batch to its losses.

    Weights are drawn from torch's generator.

    Args:
        trainer: The loss.
        backbone: As for :class:`Classifier`, as are the others.
        n_features: Number of backbone features.
        n_classes: Columns of the logits.
        width: Features after the bottleneck.
    """

    def __init__(
        self, trainer: Trainer, backbone: Any, n_features: int, n_classes: int, *, width: int
    ) -> None:
        super().__init__()
        self.trainer = trainer
        self.classifier = Classifier(backbone, n_features, n_classes, trainer=trainer, width=width)
        self.extra = trainer.extra(self.classifier.width, n_classes)

    def forward(self, source: Any, labels: Any, target: Any, step: int) -> Losses:
        """The losses of a batch of source inputs with labels and of target inputs."""
        if not self.trainer.adapts:
            loss = functional.cross_entropy(self.classifier(source), labels)
            return Losses(loss, loss, torch.zeros((), device=loss.device))
        backbone = self.classifier.backbone
        if self.trainer.joint:
            x = backbone(torch.cat((source, target)))
        else:
            x = torch.cat((backbone(source), backbone(target)))
        features, logits = self.classifier.after_backbone(x)
        n = len(source)
        loss = functional.cross_entropy(logits[:n], labels)
        transfer = self.trainer.transfer(
            Pass(features[:n], logits[:n]), Pass(features[n:], logits[n:]), self.extra, step
        )
        return Losses(loss + self.trainer.trade_off * transfer, loss, transfer)


def weights_digest(tensors: Mapping[str, Any]) -> str:
    """A digest of named tensors, such as the state of a module."""
    return digest(
        part
        for name, x in sorted(tensors.items())
        for part in (f"{name} {x.dtype} {tuple(x.shape)}", x.detach().cpu().numpy().tobytes())
    )


# --------------------------------------------------------------------------------------
# Backbones: by name, as the text of a model, or as a module.
# --------------------------------------------------------------------------------------

# What the reference library evaluates with: the whole image brought to 256 x 256, whatever its
# proportion, by Pillow's default, bicubic; of that the centre of 224 x 224.
REFERENCE = Preprocessing(
    resize=(256, 256),
    crop=224,
    interpolation="bicubic",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
# Digits are taken whole: MNIST is 28 pixels high and wide, USPS 16.
_DIGITS = Preprocessing(resize=(28, 28), interpolation="bicubic", mean=(0.5,) * 3, std=(0.5,) * 3)
# Names whose published weights are downloaded, and all names.
_DOWNLOADED = ("resnet50", "resnet101")
NAMES = (*_DOWNLOADED, "digits-cnn")


@dataclass(frozen=True, eq=False)
class Backbone:
    """A network from images to features, to be trained further.

    Attributes:
        module: Takes ``(b, channels, side, side)`` and gives ``(b, n_features)``; a PyTorch module
            in training mode that belongs to nobody else.
        n_features: How many features.
        preprocessing: What images go through when the network is evaluated.
        spec: The text that makes it again; ``None`` if it was made of an object.
    """

    module: Any
    n_features: int
    preprocessing: Preprocessing
    spec: str | None = None

    @property
    def fingerprint(self) -> str:
        """A digest of its weights."""
        return weights_digest(self.module.state_dict())

    @property
    def side(self) -> int | None:
        """Height and width of the images it takes; ``None`` if they are taken as they come."""
        return _side(self.preprocessing)


def make_backbone(
    spec: Any, *, pretrained: bool = True, preprocessing: Preprocessing | None = None
) -> Backbone:
    """A network from images to features, to be trained further.

    Args:
        spec: ``"resnet50"`` or ``"resnet101"``, of torchvision; ``"digits-cnn"``. Or the text of a
            PyTorch classifier, as for :func:`as_model`: features are what goes into its last linear
            layer. Or a PyTorch module, whose output is the features; a copy of it is trained.
        pretrained: Whether weights of a bare name are downloaded. A text says its own.
        preprocessing: What images go through when the network is evaluated. By default what the
            model says, and for bare names and modules that say nothing what the reference library
            does: 256 x 256, its centre of 224 x 224, and ImageNet's mean and deviation.

    Raises:
        UnknownName: If nothing has that name.
        MissingExtra: If a package is not installed.
        InputError: If gradients cannot go through the model, or it gives no features.
    """
    text: str | None = None
    if isinstance(spec, str) and spec in NAMES:
        network, own, text = *_named(spec, pretrained), spec
    elif isinstance(spec, str) and re.fullmatch(r"[\w-]+", spec):
        raise UnknownName(
            f"no backbone is called {spec!r}. {suggest(spec, NAMES)} Others are named as models "
            "are, such as timm:resnet50 or torch:package.module:factory."
        )
    elif isinstance(spec, nn.Module):
        network = copy.deepcopy(spec)
        carried = getattr(spec, "preprocessing", None)
        own = carried if isinstance(carried, Preprocessing) else REFERENCE
    else:
        model = as_model(spec)
        if not isinstance(model, TorchModel) or model.features_from is not None:
            raise InputError(
                "a backbone must be a PyTorch module without features_from=, through which "
                f"gradients go; got {type(model).__name__}. Others give frozen features: "
                "frozen=True, on the command line --frozen."
            )
        # A copy, since what a text names in a module of the user's is the user's.
        network, own, text = copy.deepcopy(model.module), model.preprocessing, model.spec
    own = preprocessing or own
    if (own.layout, own.dtype) != ("nchw", "float32"):
        raise InputError(
            "a backbone must take images as float32 with channels first; got "
            f"{own.dtype} in layout {own.layout}. Leave out dtype and layout."
        )
    is_classifier = not isinstance(spec, nn.Module) and spec != "digits-cnn"
    width = _remove_head(network) if is_classifier else None
    module = Features(network)
    n_features = int(_tried(module, own).shape[1])
    if is_classifier and width != n_features:
        raise InputError(
            "a classifier must end in a linear layer to be used without it as a backbone; this "
            "one does not. Pass a module that gives the features."
        )
    return Backbone(module.train(), n_features, own, text)


def _remove_head(network: Any) -> int | None:
    """Replace the last linear layer of a classifier; how many features it took."""
    for path, layer in reversed(list(network.named_modules())):
        if path and isinstance(layer, nn.Linear):
            parent, _, name = path.rpartition(".")
            setattr(network.get_submodule(parent), name, nn.Identity())
            return int(layer.in_features)
    return None


def stored_backbone(text: object, *, pretrained: bool, where: object, name_it: str) -> str | Spec:
    """What a file says of a backbone, for :func:`make_backbone`; see :func:`stored_spec`.

    Raises:
        InputError: If the user must name it.
    """
    if text not in NAMES:
        return stored_spec(text, where=where, name_it=name_it)
    if pretrained and text in _DOWNLOADED:
        raise must_be_named(str(text), where=where, name_it=name_it)
    return str(text)


def _named(name: str, pretrained: bool) -> tuple[Any, Preprocessing]:
    """A classifier by its name, or the features of digits, with its preprocessing."""
    if name == "digits-cnn":
        return digits_cnn(), _DIGITS
    if not pretrained:
        models = require("torchvision.models", package="torchvision", needed_by=name)
        return models.get_model(name, weights=None), REFERENCE
    # Those of torchvision's first version, which the reference library starts from, and not the
    # newer ones that torchvision takes by default.
    model: Any = as_model(f"torchvision:{name}?weights=IMAGENET1K_V1")
    return model.module, REFERENCE


def digits_cnn() -> Any:
    """Three convolutions, for colour images of 28 to 32 pixels; 64,000 parameters, 512 features.

    Each is followed by batch normalisation, ReLU and the largest of every 2 x 2. A stride in the
    place of the pooling is three times as fast, and source-only loses a third of its accuracy on
    digits in colour. The last maps are pooled to 2 x 2, so that where a stroke is still counts.
    Weights are drawn from torch's generator.
    """
    layers: list[Any] = []
    for n_in, n_out, width in ((3, 16, 5), (16, 48, 3), (48, 128, 3)):
        convolution = nn.Conv2d(n_in, n_out, width, padding=width // 2, bias=False)
        layers += [convolution, nn.BatchNorm2d(n_out), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers[:-1], nn.AdaptiveMaxPool2d(2), nn.Flatten())


class Features(nn.Module):
    """What a network gives as one row an image; maps ``(b, c, h, w)`` are averaged over positions.

    Args:
        network: The network.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Any) -> Any:
        """Features ``(b, n_features)``; gradients flow through them."""
        output = self.network(x)
        output = getattr(output, "logits", output)
        shape = tuple(getattr(output, "shape", ()))
        if len(shape) not in (2, 4):
            raise InputError(
                "features must be a tensor (n, d), or (n, c, h, w) to be averaged over positions; "
                f"the network gives {type(output).__name__} of shape {shape}. Wrap the module in "
                "one that picks them out."
            )
        return output.mean(dim=(2, 3)) if len(shape) == 4 else output


def _side(preprocessing: Preprocessing) -> int | None:
    """Height and width of images after preprocessing, if these are the same for all."""
    if preprocessing.crop is not None:
        return preprocessing.crop
    sides = preprocessing.resize
    return sides[0] if isinstance(sides, tuple) and sides[0] == sides[1] else None


def _tried(module: Any, preprocessing: Preprocessing) -> Any:
    """What a module gives for a black image in evaluation mode; it is left in its mode."""
    side, training = _side(preprocessing) or 224, module.training
    device = next(iter(module.parameters()), torch.zeros(())).device
    image = torch.zeros((1, preprocessing.channels, side, side), device=device)
    try:
        with torch.no_grad():
            return module.eval()(image)
    except ShiftcalError:
        raise
    except Exception as error:  # a module raises what it likes
        raise InputError(
            f"the backbone failed on an image of {side} x {side} pixels: {first_line(error)}. Name "
            "the size that it takes in its preprocessing: resize and crop."
        ) from error
    finally:
        module.train(training)


# --------------------------------------------------------------------------------------
# The transfer losses: tensors in, a scalar out.
# --------------------------------------------------------------------------------------

# Variances of the kernels, in mean squared distances.
ALPHAS = tuple(2.0**k for k in range(-3, 2))

# A smaller sum of squared distances counts as this, so that kernel widths are never 0.
_TINY = 1e-30


def squared_distances(features: Any) -> Any:
    """``||x_i - x_j||²`` of all rows, ``(n, n)``, with exact zeros on the diagonal.

    Computed from inner products: of rows far from the origin subtract a common point first, or
    digits cancel. Rounding can make an entry slightly negative.
    """
    products = features @ features.t()
    norms = products.diagonal()
    return norms.unsqueeze(1) + norms - 2 * products


def gaussian(sq_dist: Any, variance: Any) -> Any:
    """``exp(-d² / (2 variance))`` of squared distances."""
    return torch.exp(sq_dist / (-2 * variance))


def multi_gaussian(features: Any) -> Any:
    """The sum of Gaussian kernels between all rows of ``(n, d)`` features, ``(n, n)``.

    Kernel ``a`` has the variance ``ALPHAS[a]`` times the mean of all squared distances, including
    those of rows to themselves; no gradient flows through it.
    """
    sq_dist = squared_distances(features - features.detach()[0])
    mean = sq_dist.detach().sum().clamp_min(_TINY) / sq_dist.numel()
    return sum(gaussian(sq_dist, alpha * mean) for alpha in ALPHAS)


@lru_cache(maxsize=16)
def _pair_weights(b: int, *, linear: bool, dtype: Any, device: Any) -> Any:
    """Weights ``(2b, 2b)`` by which the sum of a kernel matrix is the discrepancy plus 2 / (b - 1).

    A kernel is ``len(ALPHAS)`` on the diagonal whatever the features are, so weights there add a
    constant.
    """
    with torch.inference_mode(False):
        if linear:
            # Row i counts with row i + 1 of both domains, cyclically.
            after = (torch.arange(b) + 1) % b
            pairs = torch.cat((after, after + b, after + b, after))
            signs = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64).repeat_interleave(b)
            weights = torch.zeros(2 * b, 2 * b, dtype=torch.float64)
            rows = torch.arange(2 * b).repeat(2)
            weights.index_put_((rows, pairs), signs / b, accumulate=True)
            weights = (weights + weights.t()) / 2
        else:
            domain = torch.arange(2 * b) >= b
            same = (domain.unsqueeze(1) == domain).double()
            weights = same * (1 / (b * (b - 1)) + 1 / b**2) - 1 / b**2
        weights.fill_diagonal_(2 / (b - 1) / (2 * b * len(ALPHAS)))
        return weights.to(dtype=dtype, device=device)


def _discrepancy(kernel: Any, *, linear: bool) -> Any:
    b, dtype, device = len(kernel) // 2, kernel.dtype, kernel.device
    return (kernel * _pair_weights(b, linear=linear, dtype=dtype, device=device)).sum()


def mk_mmd(source: Any, target: Any, *, linear: bool = True) -> Any:
    """How far two samples are apart, by the kernel ``k`` of :func:`multi_gaussian`.

    The linear estimate is the mean over the rows ``i``, cyclically, of
    ``k(s_i, s_i+1) + k(t_i, t_i+1) - k(s_i, t_i+1) - k(s_i+1, t_i)``. The quadratic one is the mean
    of ``k`` over pairs of different source rows, plus that of different target rows, minus twice
    that of pairs of both. Each has 2 / (b - 1) added, as in the reference library.

    Args:
        source: ``(b, d)``.
        target: ``(b, d)``.
        linear: The first estimate; else the second.
    """
    return _discrepancy(multi_gaussian(torch.cat((source, target))), linear=linear)


def jmmd(features: Any, outputs: Any, *, linear: bool = False, sigma: float = 0.92) -> Any:
    """How far source and target are apart in features and predictions together.

    The estimates are those of :func:`mk_mmd`; the kernel is the product of :func:`multi_gaussian`
    of the features and ``exp(-||p - q||² / (2 sigma²))`` of the predictions.

    Args:
        features: Rows of the source, then as many of the target, ``(2b, d)``.
        outputs: Softmax outputs of the same rows, ``(2b, k)``.
        linear: The linear estimate, else the quadratic one.
        sigma: Width of the predictions' kernel.
    """
    kernel = multi_gaussian(features) * gaussian(squared_distances(outputs), sigma**2)
    return _discrepancy(kernel, linear=linear)


def class_confusion(logits: Any, temperature: float = 2.5) -> Any:
    """How much of a class's predictions goes to other classes, averaged over the classes.

    With ``p = softmax(z / T)`` and weights ``w = 1 + exp(-H(p))`` that favour confident rows and
    have no gradient, the class confusion is ``C = Pᵀ diag(w) P`` with rows divided by their sums,
    and the loss is the mean over the classes of what lies off its diagonal. Rows of ``P`` sum to
    1, so it is ``1 - mean_j (sum_i w_i p_ij²) / (sum_i w_i p_ij)``.

    Args:
        logits: Of the target, ``(b, k)``.
        temperature: ``T``.
    """
    p = (logits / temperature).softmax(1)
    w = 1 + torch.special.xlogy(p, p).sum(1).exp().detach()
    mass = (w @ p).clamp_min(torch.finfo(p.dtype).tiny)
    return 1 - ((w @ p.square()) / mass).mean()


def margin_disparity(
    source_logits: Any, source_adv: Any, target_logits: Any, target_adv: Any, *, margin: float = 4.0
) -> Any:
    """What the adversarial head minimises, to agree on the source and to disagree on the target.

    With ``y`` the class that the main head predicts and ``p`` the adversarial head's softmax,
    ``-margin mean_s log p[y] - mean_t log(1 - p[y] + 1e-6)``.

    Args:
        source_logits: Of the main head, ``(b, k)``.
        source_adv: Of the adversarial head.
        target_logits: Of the main head, for as many rows.
        target_adv: Of the adversarial head.
        margin: Weight of the agreement on the source.
    """
    agreement = functional.cross_entropy(source_adv, source_logits.argmax(1))
    p = target_adv.softmax(1)
    # 1 - p[y] as the sum of the other probabilities keeps its digits near p[y] = 1.
    others = p.scatter(1, target_logits.argmax(1, keepdim=True), 0).sum(1)
    return margin * agreement - (others + 1e-6).log().mean()


def stepwise_norm(features: Any, *, delta: float = 1.0, domains: int = 1) -> Any:
    """``mean (||f|| - (||f||* + delta))²`` of each domain, summed; ``||f||*`` has no gradient.

    The value of each is always ``delta²``; its gradient ``-2 delta f / (b ||f||)`` lengthens every
    row alike. A row of zeros has no direction and gets no gradient.

    Args:
        features: ``(n, d)``.
        delta: The step.
        domains: Number of domains, with ``b = n / domains`` rows each.
    """
    norms = torch.linalg.vector_norm(features, dim=1)
    return domains * (norms - norms.detach() - delta).square().mean()


def domain_loss(logits: Any, weights: Any = None) -> Any:
    """Binary cross-entropy of a discriminator that should give 1 for the source, 0 for the target.

    Args:
        logits: Before the sigmoid, ``(2b, 1)`` or ``(2b,)``, those of the source first.
        weights: ``(2b,)``, with mean 1; ``None`` is 1 for each.
    """
    wanted = torch.ones_like(logits).flatten()
    wanted[len(wanted) // 2 :] = 0
    return functional.binary_cross_entropy_with_logits(logits.flatten(), wanted, weights)


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, coefficient: float) -> Any:
        ctx.factor = -coefficient
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None


def reverse(x: Any, coefficient: float) -> Any:
    """``x`` itself, whose gradient is multiplied by ``-coefficient`` in the backward pass."""
    return _Reverse.apply(x, coefficient)


def warm_start(step: int, limit: float, warm_up: int) -> float:
    """A coefficient that grows with the steps from 0 to a limit: ``limit tanh(step / 2 warm_up)``.

    The reference writes it ``limit (2 / (1 + exp(-step / warm_up)) - 1)``.
    """
    return limit * math.tanh(0.5 * step / warm_up)
