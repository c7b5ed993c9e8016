"""Stand-ins for timm and torchvision: the few calls shiftcal makes, from their documented API.

Not those packages: nothing here has weights, and a name that shiftcal does not call is absent.
"""

from __future__ import annotations

import enum
from types import ModuleType, SimpleNamespace

import torch
from torch import nn


def tiny(n_classes=4, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 4, 8, 8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(n_classes))


def sized(network, side):
    """The network after one pass, which gives its last layer its size."""
    with torch.no_grad():
        network(torch.zeros(1, 3, side, side))
    return network


def standin_timm(settings, published=None):
    """``timm`` with one network, ``resnet50``, whose data configuration is ``settings``."""
    timm, data = ModuleType("timm"), ModuleType("timm.data")
    timm.calls = []

    def create_model(model_name, pretrained=False, **kwargs):
        timm.calls.append((model_name, pretrained))
        network = sized(tiny(seed=1), settings["input_size"][1])
        if pretrained:
            network.load_state_dict(published.state_dict())
        network.pretrained_cfg = dict(settings)
        return network.train()

    def resolve_data_config(args=None, pretrained_cfg=None, model=None, **kwargs):
        return dict(model.pretrained_cfg)

    def list_models(filter="", **kwargs):
        return ["resnet50"]

    timm.is_model = lambda model_name: model_name.split(".")[0] == "resnet50"
    timm.list_models = list_models
    timm.create_model = create_model
    data.resolve_data_config = resolve_data_config
    timm.data = data
    return {"timm": timm, "timm.data": data}


class Interpolation(enum.Enum):
    """As ``torchvision.transforms.InterpolationMode``."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


def standin_torchvision(preset, published):
    """``torchvision`` with one classifier, ``resnet50``, and one set of weights."""
    torchvision, models = ModuleType("torchvision"), ModuleType("torchvision.models")
    models.calls = []

    class Weights(enum.Enum):
        IMAGENET1K_V1 = SimpleNamespace(url="https://example.org/resnet50.pth")
        DEFAULT = IMAGENET1K_V1

        @property
        def meta(self):
            return {"categories": ["cat", "dog", "eel", "fox"]}

        @property
        def url(self):
            return self.value.url

        def transforms(self):
            return SimpleNamespace(**preset)

        def get_state_dict(self, *args, **kwargs):
            models.calls.append(kwargs)
            return published.state_dict()

    def get_model(name, **config):
        assert config == {"weights": None}
        return sized(tiny(seed=1), preset["crop_size"][0]).train()

    def list_models(module=None, **kwargs):
        return ["resnet50"]

    def get_model_weights(name):
        return Weights

    models.list_models = list_models
    models.get_model_weights = get_model_weights
    models.get_model = get_model
    torchvision.models = models
    return {"torchvision": torchvision, "torchvision.models": models}
