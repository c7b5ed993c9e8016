"""Networks that are called by a bare name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from shiftcal._optional import require_package
from shiftcal.adaptation.backbones.base import reference_preprocessing
from shiftcal.errors import MissingExtra
from shiftcal.models import as_model
from shiftcal.models.preprocessing import Preprocessing


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
    from shiftcal.models.architectures.efficientnet_lite import efficientnet_lite, preprocessing

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
