"""Backbones by name (with stand-ins for the packages), of modules and of the texts of models."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from absent_package import hide
from standin_hubs import Interpolation, sized, standin_torchvision, tiny
from torch import nn

from shiftcal.adaptation.network import Backbone, make_backbone
from shiftcal.errors import InputError, MissingExtra, UnknownName
from shiftcal.models import Preprocessing, TorchModel, as_model
from shiftcal.models.pytorch import torch_threads

SMALL = Preprocessing(resize=(20, 20))


PRESET = {"resize_size": [232], "crop_size": [224], "mean": [0.1] * 3, "std": [0.4] * 3}
PRESET |= {"interpolation": Interpolation.BILINEAR, "antialias": True}


LARGE = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 224, 224)).astype("float32"))


@pytest.fixture(autouse=True)
def one_thread():
    """Several wait for one another where processors are busy."""
    with torch_threads(1):
        yield


IMAGES = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 3, 20, 20)).astype(np.float32))


class Net(nn.Module):
    """A classifier of four classes with a layer of maps, one of vectors, and a head."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.maps = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6))
        self.act = nn.ReLU(inplace=True)
        self.vectors = nn.Linear(6, 5)
        self.head = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(5, 4))

    def forward(self, x):
        return self.head(self.vectors(self.act(self.maps(x)).mean(dim=(2, 3))))


def classifier():
    """What a text names: ``torch:test_backbones:classifier``."""
    return Net()


@pytest.fixture
def here(monkeypatch, request):
    monkeypatch.syspath_prepend(request.path.parent)
    return "torch:test_backbones:classifier?resize=20x20"


def close(made, wanted):
    np.testing.assert_allclose(made.detach(), wanted.detach(), atol=1e-6)


def test_a_resnet_is_torchvisions_with_its_first_weights_and_without_its_head(monkeypatch):
    published = sized(tiny(seed=5), 224).eval()
    modules = standin_torchvision(PRESET, published)
    models = modules["torchvision.models"]
    models.list_models = lambda **_: ["resnet50", "resnet101"]
    asked = []
    weights = models.get_model_weights("resnet50")
    monkeypatch.setattr(
        weights, "transforms", lambda self: asked.append(self.name) or SimpleNamespace(**PRESET)
    )
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    backbone = make_backbone("resnet50")
    # The newest weights, which torchvision takes by default, are not the reference's.
    assert asked == ["IMAGENET1K_V1"]
    assert len(models.calls) == 1
    assert (backbone.n_features, backbone.side, backbone.spec) == (4 * 28 * 28, 224, "resnet50")
    own = backbone.preprocessing
    assert (own.resize, own.crop, own.interpolation) == ((256, 256), 224, "bicubic")
    assert (own.mean, own.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    wanted = published[:-1](LARGE)
    np.testing.assert_allclose(backbone.module.eval()(LARGE).detach(), wanted.detach(), atol=1e-6)


def test_without_torchvision_it_is_named(monkeypatch):
    hide(monkeypatch, "torchvision")
    with pytest.raises(MissingExtra, match=r"needs torchvision.*pip install torchvision"):
        make_backbone("resnet101")


def test_the_real_networks_have_their_published_width():
    pytest.importorskip("torchvision", exc_type=ImportError)
    assert make_backbone("resnet50", pretrained=False).n_features == 2048


@pytest.mark.parametrize("side", [28, 32])
def test_the_network_for_digits_is_small_and_drawn_from_the_generator(side):
    torch.manual_seed(0)
    backbone = make_backbone("digits-cnn")
    assert (backbone.n_features, backbone.side, backbone.spec) == (512, 28, "digits-cnn")
    assert backbone.module(torch.zeros(2, 3, side, side)).shape == (2, 512)
    count = sum(p.numel() for p in backbone.module.parameters())
    assert count == 3 * 16 * 25 + 16 * 48 * 9 + 48 * 128 * 9 + 2 * (16 + 48 + 128)
    torch.manual_seed(0)
    assert torch.equal(
        next(make_backbone("digits-cnn").module.parameters()), next(backbone.module.parameters())
    )


def test_a_module_gives_its_output_as_features_and_is_copied():
    net = Net()
    backbone = make_backbone(net, preprocessing=SMALL)
    assert isinstance(backbone, Backbone)
    assert (backbone.n_features, backbone.side, backbone.spec) == (4, 20, None)
    net.eval()
    backbone.module.eval()
    close(backbone.module(IMAGES), net(IMAGES))
    before = [parameter.clone() for parameter in net.parameters()]
    with torch.no_grad():
        for parameter in backbone.module.parameters():
            parameter.add_(1)
    assert all(map(torch.equal, before, net.parameters()))


def test_a_text_gives_what_goes_into_the_last_linear_layer(here):
    backbone = make_backbone(here)
    assert (backbone.n_features, backbone.side) == (5, 20)
    assert backbone.spec == as_model(here).spec
    assert not any(p.shape == (4, 5) for p in backbone.module.parameters())
    net = Net().eval()
    wanted = net.vectors(net.act(net.maps(IMAGES)).mean(dim=(2, 3))).relu()
    close(backbone.module.eval()(IMAGES), wanted)
    assert make_backbone(as_model(here)).n_features == 5


def test_images_of_any_size_are_taken_where_none_is_said():
    backbone = make_backbone("cifar-resnet:20")
    assert (backbone.n_features, backbone.side) == (64, None)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (nn.Flatten(0), {"preprocessing": SMALL}, r"features must be a tensor \(n, d\)"),
        (nn.Linear(7, 3), {"preprocessing": SMALL}, r"failed on an image of 20 x 20 pixels"),
        (
            TorchModel(nn.Sequential(nn.Conv2d(3, 4, 20), nn.Flatten()), preprocessing=SMALL),
            {},
            "must end in a linear layer",
        ),
        (
            TorchModel(Net(), features_from="maps", preprocessing=SMALL),
            {},
            r"PyTorch module without features_from=.*--frozen",
        ),
        (lambda images: images.mean(axis=(2, 3)), {}, "got CallableModel.*--frozen"),
        (
            Net(),
            {"preprocessing": Preprocessing(resize=(20, 20), layout="nhwc")},
            "float32 with channels first; got float32 in layout nhwc",
        ),
    ],
)
def test_what_gives_no_features_raises(spec, options, message):
    with pytest.raises(InputError, match=message):
        make_backbone(spec, **options)


def test_an_unknown_name_raises_with_the_nearest():
    with pytest.raises(UnknownName, match=r"no backbone is called 'resnet5'\. Did you mean"):
        make_backbone("resnet5")
    with pytest.raises(UnknownName, match="such as timm:resnet50 or torch:package"):
        make_backbone("vgg")
    with pytest.raises(UnknownName, match="no kind of model is called 'tmm'"):
        make_backbone("tmm:resnet50")
