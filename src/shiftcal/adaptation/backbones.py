"""Backbones: networks from images to features, by name, as the text of a model or as a module."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shiftcal.adaptation.losses import nn, torch
from shiftcal.errors import InputError, MissingExtra, ShiftcalError, UnknownName, require_package
from shiftcal.models import Model, TorchModel, as_model
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.resolve import Spec, must_be_named, stored_spec
from shiftcal.registry import suggest

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


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
    def side(self) -> int | None:
        """Height and width of the images it takes; ``None`` if they are taken as they come."""
        return side_of(self.preprocessing)


def side_of(preprocessing: Preprocessing) -> int | None:
    """Height and width of images after preprocessing, if these are the same for all."""
    if preprocessing.crop is not None:
        return preprocessing.crop
    sides = preprocessing.resize
    return sides[0] if isinstance(sides, tuple) and sides[0] == sides[1] else None


def reference_preprocessing(
    *, mean: tuple[float, ...] = IMAGENET_MEAN, std: tuple[float, ...] = IMAGENET_STD
) -> Preprocessing:
    """What the reference library evaluates with.

    The whole image is brought to 256 x 256, whatever its proportion, by Pillow's default, bicubic;
    of that the centre of 224 x 224 is taken.
    """
    return Preprocessing(resize=(256, 256), crop=224, interpolation="bicubic", mean=mean, std=std)


# Digits are taken whole: MNIST is 28 pixels high and wide, USPS 16.
PREPROCESSING = Preprocessing(
    resize=(28, 28), interpolation="bicubic", mean=(0.5,) * 3, std=(0.5,) * 3
)


def digits_cnn() -> Any:
    """Three convolutions, for colour images of 28 to 32 pixels; 64,000 parameters, 512 features.

    Each is followed by batch normalisation, ReLU and the largest of every 2 x 2. A stride in the
    place of the pooling is three times as fast, and source-only loses a third of its accuracy on
    digits in colour. The last maps are pooled to 2 x 2, so that where a stroke is still counts.
    Weights are drawn from torch's generator.
    """
    return nn.Sequential(
        *_layer(3, 16, 5),
        nn.MaxPool2d(2),
        *_layer(16, 48, 3),
        nn.MaxPool2d(2),
        *_layer(48, 128, 3),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
    )


def _layer(n_in: int, n_out: int, width: int) -> tuple[Any, ...]:
    convolution = nn.Conv2d(n_in, n_out, width, padding=width // 2, bias=False)
    return convolution, nn.BatchNorm2d(n_out), nn.ReLU()


# Where nothing says how large images are: those of CIFAR and of ImageNet.
_SIDES = (32, 224)


def tried(module: Any, preprocessing: Preprocessing) -> Any:
    """What a module gives for a black image, in evaluation mode; it is left in the mode it was in.

    The image is as large as the preprocessing says, or else as the module takes.

    Raises:
        InputError: If the module fails.
    """
    said = side_of(preprocessing)
    sides = _SIDES if said is None else (said,)
    first = next(iter(module.parameters()), torch.zeros(()))
    why = ""
    for side in sides:
        image = torch.zeros((1, preprocessing.channels, side, side), device=first.device)
        try:
            with _evaluated(module):
                return module(image)
        except ShiftcalError:
            raise
        except Exception as error:  # a module raises what it likes
            why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    told = " and of ".join(f"{side} x {side}" for side in sides)
    raise InputError(
        f"the backbone failed on an image of {told} pixels: {why}. Say the size that it takes in "
        "its preprocessing: resize and crop."
    )


def leave_out_unused(module: Any, features: Any) -> None:
    """Train no parameter that has no part in the features, such as those of layers behind them.

    They would have no gradient, for which processes that train together wait.

    Args:
        module: The backbone.
        features: What it gave, with the graph that leads there.
    """
    wanted = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not wanted:
        return
    slopes = torch.autograd.grad(features.sum(), wanted, allow_unused=True)
    for parameter, slope in zip(wanted, slopes, strict=True):
        parameter.requires_grad_(slope is not None)


@contextmanager
def _evaluated(module: Any) -> Iterator[None]:
    """In evaluation mode meanwhile, so that no statistics of batches change."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


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


def _resnet(name: str, pretrained: bool) -> tuple[Any, Preprocessing]:
    """From torchvision, or else from timm: the same network with the same weights.

    They are those of torchvision's first version, which the reference library starts from, and not
    the newer ones that torchvision takes by default.
    """
    for package, weights in _PLACES.items():
        try:
            return _from_hub(package, name, weights if pretrained else None), (
                reference_preprocessing()
            )
        except (MissingExtra, ModuleNotFoundError) as error:  # timm is nothing without torchvision
            missing = error
    raise MissingExtra(
        f"{name} needs torchvision or timm, and neither can be imported. Run: pip install "
        "torchvision"
    ) from missing


_PLACES = {"torchvision": "torchvision:{}?weights=IMAGENET1K_V1", "timm": "timm:{}.tv_in1k"}


def _from_hub(package: str, name: str, weights: str | None) -> Any:
    if weights is not None:
        return as_model(weights.format(name)).module  # type: ignore[attr-defined]
    if package == "timm":
        timm = require_package("timm", package="timm", needed_by=name)
        return timm.create_model(name, pretrained=False)
    models = require_package("torchvision.models", package="torchvision", needed_by=name)
    return models.get_model(name, weights=None)


def _efficientnet_lite0(name: str, pretrained: bool) -> tuple[Any, Preprocessing]:
    from shiftcal.models.architectures import efficientnet_lite, preprocessing

    if pretrained:
        network = efficientnet_lite(0)
    else:
        package = require_package(
            "efficientnet_lite_pytorch", package="efficientnet-lite-pytorch", needed_by=name
        )
        network = package.EfficientNet.from_name(name)
    own = preprocessing(224)
    return network, reference_preprocessing(mean=own.mean, std=own.std)


# Name -> what makes the classifier, with its weights or without, and its preprocessing.
CLASSIFIERS: Mapping[str, Callable[[str, bool], tuple[Any, Preprocessing]]] = MappingProxyType(
    {"resnet50": _resnet, "resnet101": _resnet, "efficientnet-lite0": _efficientnet_lite0}
)


NAMES = (*CLASSIFIERS, "digits-cnn")
# Names whose published weights are downloaded.
_DOWNLOADED = ("resnet50", "resnet101")


def make_backbone(
    spec: Any, *, pretrained: bool = True, preprocessing: Preprocessing | None = None
) -> Backbone:
    """A network from images to features, to be trained further.

    Args:
        spec: ``"resnet50"`` or ``"resnet101"``, of torchvision or timm; ``"efficientnet-lite0"``;
            ``"digits-cnn"``. Or the text of a classifier, as for :func:`as_model`: features are
            what its layer ``features_from`` gives, averaged over positions, or else what goes into
            its last linear layer. Or a PyTorch module, whose output is the features; a copy of it
            is trained.
        pretrained: Whether a bare name comes with its published weights. A text says its own.
        preprocessing: What images go through when the network is evaluated. By default what the
            model says, and for bare names and modules that say nothing what the reference library
            does: 256 x 256, its centre of 224 x 224, and ImageNet's mean and deviation.

    Raises:
        UnknownName: If nothing has that name.
        MissingExtra: If a package is not installed.
        InputError: If gradients cannot go through the model, or it gives no features.
    """
    if isinstance(spec, str) and spec in NAMES:
        return _named(spec, pretrained, preprocessing)
    if isinstance(spec, str) and re.fullmatch(r"[\w-]+", spec):
        raise UnknownName(
            f"no backbone is called {spec!r}. {suggest(spec, NAMES)} Others are named as models "
            "are, such as timm:resnet50 or torch:package.module:factory."
        )
    if isinstance(spec, nn.Module):
        carried = getattr(spec, "preprocessing", None)
        if preprocessing is None and isinstance(carried, Preprocessing):
            preprocessing = carried
        return _whole(copy.deepcopy(spec), preprocessing or reference_preprocessing(), None)
    return _of_model(as_model(spec), preprocessing)


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


def _named(name: str, pretrained: bool, preprocessing: Preprocessing | None) -> Backbone:
    if name == "digits-cnn":
        return _whole(digits_cnn(), preprocessing or PREPROCESSING, name)
    network, own = CLASSIFIERS[name](name, pretrained)
    return _headless(network, preprocessing or own, name)


def _of_model(model: Model, preprocessing: Preprocessing | None) -> Backbone:
    if not isinstance(model, TorchModel):
        raise InputError(
            "a backbone must be a PyTorch module, through which gradients go; got "
            f"{type(model).__name__}. Such a model gives frozen features, on which heads can be "
            "trained: frozen=True, on the command line --frozen."
        )
    # What is named in a module of the user's is the user's.
    network = copy.deepcopy(model.module)
    preprocessing = preprocessing or model.preprocessing
    if model.features_from is None:
        return _headless(network, preprocessing, model.spec)
    _check_numbers(preprocessing)
    module = Features(network, model.features_from)
    with torch.enable_grad():
        features = tried(module, preprocessing)
        leave_out_unused(module, features)
    return Backbone(module.train(), int(features.shape[1]), preprocessing, model.spec)


def _whole(network: Any, preprocessing: Preprocessing, spec: str | None) -> Backbone:
    _check_numbers(preprocessing)
    module = Features(network)
    with torch.no_grad():
        n_features = int(tried(module, preprocessing).shape[1])
    return Backbone(module.train(), n_features, preprocessing, spec)


def _headless(network: Any, preprocessing: Preprocessing, spec: str | None) -> Backbone:
    _check_numbers(preprocessing)
    network, n_features = without_head(network, preprocessing)
    return Backbone(Features(network).train(), n_features, preprocessing, spec)


def _check_numbers(preprocessing: Preprocessing) -> None:
    if (preprocessing.layout, preprocessing.dtype) != ("nchw", "float32"):
        raise InputError(
            "a backbone must take images as float32 with channels first; got "
            f"{preprocessing.dtype} in layout {preprocessing.layout}. Leave out dtype and layout."
        )
