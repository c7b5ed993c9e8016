"""Networks of timm, with a stand-in for the package; see tests/support/standin_hubs.py."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from absent_package import hide
from hostile_files import trap
from standin_hubs import sized, standin_timm, tiny

from shiftcal.errors import FileError, InputError, MissingExtra
from shiftcal.models import Preprocessing, as_model
from shiftcal.models.hubs import timm_preprocessing as preprocessing_of

SETTINGS = {
    "input_size": (3, 32, 32),
    "interpolation": "bicubic",
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
    "crop_pct": 0.95,
    "crop_mode": "center",
}
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 40, 50, 3), np.uint8)


def install(monkeypatch, modules):
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def published():
    return sized(tiny(seed=5), 32).eval()


def test_the_network_comes_with_its_weights_and_its_preprocessing(monkeypatch, published):
    modules = standin_timm(SETTINGS, published)
    install(monkeypatch, modules)
    model = as_model("timm:resnet50.a1_in1k?batch_size=2")
    assert modules["timm"].calls == [("resnet50.a1_in1k", True)]
    assert model.preprocessing == Preprocessing(
        resize=33, crop=32, interpolation="bicubic", mean=SETTINGS["mean"], std=SETTINGS["std"]
    )
    wanted = as_model(published, preprocessing=model.preprocessing, batch_size=2).logits(IMAGES)
    np.testing.assert_array_equal(model.logits(IMAGES), wanted)
    assert not model.module.training


def test_weights_of_a_file_are_used_instead_and_nothing_is_fetched(
    monkeypatch, published, tmp_path
):
    modules = standin_timm(SETTINGS)
    install(monkeypatch, modules)
    torch.save(published.state_dict(), tmp_path / "w.pth")
    model = as_model(f"timm:resnet50?weights={tmp_path}/w.pth&crop=none&resize=32x32")
    assert modules["timm"].calls == [("resnet50", False)]
    wanted = as_model(published, preprocessing=model.preprocessing).logits(IMAGES)
    np.testing.assert_array_equal(model.logits(IMAGES), wanted)
    mark = tmp_path / "mark"
    (tmp_path / "bad.pth").write_bytes(trap(mark))
    with pytest.raises(FileError, match="holds more than tensors"):
        as_model(f"timm:resnet50?weights={tmp_path}/bad.pth")
    assert not mark.exists()


def test_unknown_names_and_a_missing_package_are_told(monkeypatch, published):
    install(monkeypatch, standin_timm(SETTINGS, published))
    with pytest.raises(InputError, match="timm has no network 'resnet5'; the nearest: resnet50"):
        as_model("timm:resnet5")
    hide(monkeypatch, "timm")
    with pytest.raises(MissingExtra, match=r"timm:resnet50 needs timm.*Run: pip install timm$"):
        as_model("timm:resnet50")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"crop_mode": "border"}, r"timm:x has crop_mode = 'border'.*cannot be expressed"),
        ({"input_size": (1, 32, 32)}, r"input_size = \(1, 32, 32\)"),
        ({"input_size": (3, 32, 48)}, r"input_size = \(3, 32, 48\)"),
        ({"interpolation": "random"}, "interpolation = 'random'"),
        ({"interpolation": "lanczos"}, "interpolation = 'lanczos'"),
    ],
)
def test_what_cannot_be_expressed_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        preprocessing_of(SETTINGS | change, name="timm:x")


def test_the_real_package_gives_the_same_through_its_own_transforms(tmp_path):
    timm = pytest.importorskip("timm", exc_type=ImportError)
    from PIL import Image

    torch.manual_seed(0)
    network = timm.create_model("resnet18", pretrained=False).eval()
    torch.save(network.state_dict(), tmp_path / "w.pth")
    settings = timm.data.resolve_model_data_config(network)
    transform = timm.data.create_transform(**settings, is_training=False)
    with torch.no_grad():
        wanted = network(torch.stack([transform(Image.fromarray(image)) for image in IMAGES]))
    model = as_model(f"timm:resnet18?weights={tmp_path}/w.pth&batch_size=5")
    np.testing.assert_allclose(model.logits(IMAGES), wanted.numpy(), atol=1e-4)
