"""Networks of pytorchcv."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hostile_files import Trap
from safetensors.torch import save_file

from shiftcal.errors import FileError, InputError
from shiftcal.models import as_model
from shiftcal.models import hubs as hub

# Newer versions cannot be imported without torchvision.
provider = pytest.importorskip("pytorchcv.model_provider", exc_type=ImportError)
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return provider.get_model("resnet20_cifar10").eval()


def by_hand(network, images):
    mean, std = np.array([0.4914, 0.4822, 0.4465]), np.array([0.2023, 0.1994, 0.2010])
    pixels = ((images / 255 - mean) / std).astype(np.float32)
    with torch.no_grad():
        return network(torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())).numpy()


def test_a_network_of_cifar_is_given_what_it_was_trained_with(network, tmp_path):
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    model = as_model(f"pytorchcv:resnet20_cifar10?weights={tmp_path}/w.safetensors")
    np.testing.assert_allclose(model.logits(IMAGES), by_hand(network, IMAGES), atol=1e-4)


def test_published_weights_are_fetched_by_the_package_and_read_here(network, tmp_path, monkeypatch):
    file = tmp_path / "published.pth"
    torch.save(network.state_dict(), file)

    def get_model_file(model_name):
        assert model_name == "resnet20_cifar10"
        return str(file)

    monkeypatch.setattr(hub._pytorchcv_store(), "get_model_file", get_model_file)
    model = as_model("pytorchcv:resnet20_cifar10")
    np.testing.assert_allclose(model.logits(IMAGES), by_hand(network, IMAGES), atol=1e-4)
    mark = tmp_path / "mark"
    torch.save({"a": Trap(mark)}, file)
    with pytest.raises(FileError, match="holds more than tensors, which is never loaded"):
        as_model("pytorchcv:resnet20_cifar10")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "resize", "crop"), [("resnet10", 256, 224), ("resnet20_cifar100", None, None)]
)
def test_sizes_follow_the_data_set(tmp_path, name, resize, crop):
    save_file(provider.get_model(name).state_dict(), tmp_path / "w.safetensors")
    settings = as_model(f"pytorchcv:{name}?weights={tmp_path}/w.safetensors").preprocessing
    assert (settings.resize, settings.crop) == (resize, crop)
    assert settings.mean[0] == (0.485 if crop else 0.4914)


def test_networks_trained_with_something_else_must_be_told_what(tmp_path):
    torch.manual_seed(0)
    network = provider.get_model("efficientnet_b0c")
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    text = f"pytorchcv:efficientnet_b0c?weights={tmp_path}/w.safetensors"
    with pytest.raises(
        InputError, match=r"preprocessing of pytorchcv:efficientnet_b0c.* not known"
    ):
        as_model(text)
    model = as_model(text + "&resize=256&crop=224&mean=0.5&std=0.5")
    assert model.preprocessing.mean == (0.5, 0.5, 0.5)
    plain = as_model(text, preprocessing=model.preprocessing)
    assert plain.preprocessing == model.preprocessing
