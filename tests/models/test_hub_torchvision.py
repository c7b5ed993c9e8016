"""Networks of torchvision, with a stand-in for the package; see tests/support/standin_hubs.py."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hostile_files import trap
from standin_hubs import Interpolation, sized, standin_torchvision, tiny

from shiftcal.errors import FileError, InputError
from shiftcal.models import Preprocessing, as_model
from shiftcal.models.hubs import torchvision_preprocessing as preprocessing_of

PRESET = {
    "resize_size": [36],
    "crop_size": [32],
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "interpolation": Interpolation.BILINEAR,
    "antialias": True,
}
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 40, 50, 3), np.uint8)


@pytest.fixture
def published():
    return sized(tiny(seed=5), 32).eval()


@pytest.fixture
def models(monkeypatch, published):
    modules = standin_torchvision(PRESET, published)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["torchvision.models"]


@pytest.mark.parametrize("query", ["", "&weights=IMAGENET1K_V1"])
def test_the_network_comes_with_weights_preprocessing_and_classes(models, published, query):
    model = as_model(f"torchvision:resnet50?batch_size=2{query}")
    assert models.calls == [{"progress": False, "check_hash": True, "weights_only": True}]
    assert model.preprocessing == Preprocessing(
        resize=36, crop=32, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
    )
    assert model.classes == ("cat", "dog", "eel", "fox")
    wanted = as_model(published, preprocessing=model.preprocessing, batch_size=2).logits(IMAGES)
    np.testing.assert_array_equal(model.logits(IMAGES), wanted)
    assert not model.module.training


def test_weights_of_a_file_are_used_instead_and_nothing_is_fetched(models, published, tmp_path):
    torch.save(published.state_dict(), tmp_path / "w.pth")
    model = as_model(f"torchvision:resnet50?weights={tmp_path}/w.pth")
    assert models.calls == []
    wanted = as_model(published, preprocessing=model.preprocessing).logits(IMAGES)
    np.testing.assert_array_equal(model.logits(IMAGES), wanted)
    mark = tmp_path / "mark"
    (tmp_path / "bad.pth").write_bytes(trap(mark))
    with pytest.raises(FileError, match="holds more than tensors"):
        as_model(f"torchvision:resnet50?weights={tmp_path}/bad.pth")
    assert not mark.exists()
    with pytest.raises(FileError, match="there is no file of that name"):
        as_model("torchvision:resnet50?weights=IMAGENET1K_V9")


def test_unknown_names_are_told(models):
    with pytest.raises(InputError, match="no network 'resnet5'; the nearest: resnet50"):
        as_model("torchvision:resnet5")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"crop_size": [32, 48]}, r"torchvision:x has crop_size = \[32, 48\]"),
        ({"resize_size": [32, 48]}, r"resize_size = \[32, 48\]"),
        ({"interpolation": Interpolation.NEAREST}, "interpolation = 'nearest'"),
    ],
)
def test_what_cannot_be_expressed_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        preprocessing_of(SimpleNamespace(**PRESET | change), name="torchvision:x")
