"""Models go to other processes, and use the threads they are told to use."""

from __future__ import annotations

import os
import pickle

import cloudpickle
import numpy as np
import pytest
import torch
from onnx_resnet import resnet20_onnx
from sklearn.linear_model import LogisticRegression
from torch import nn

from shiftcal.models import (
    CallableModel,
    ExportedModel,
    OnnxModel,
    SklearnModel,
    TorchModel,
    cifar_resnet,
)

IMAGES = np.random.default_rng(31).integers(0, 256, (6, 32, 32, 3), np.uint8)


def red_and_green(batch):
    return batch[:, :2].mean(axis=(2, 3)) * 9 - 4


def first_pixels(batch):
    return batch[:, 0, :2, 0]


@pytest.fixture
def make(tmp_path):
    torch.manual_seed(8)
    network = cifar_resnet(20)
    file = resnet20_onnx({name: value.numpy() for name, value in network.state_dict().items()})
    (tmp_path / "net.onnx").write_bytes(file)
    small = nn.Sequential(nn.Conv2d(3, 4, 8, 8), nn.Flatten(), nn.Linear(64, 5)).eval()
    exported = torch.export.export(small, (torch.zeros(2, 3, 32, 32),))
    torch.export.save(exported, tmp_path / "net.pt2")
    rng = np.random.default_rng(2)
    fitted = LogisticRegression().fit(rng.normal(size=(60, 2)), rng.integers(0, 3, 60))
    return {
        "onnx bytes": lambda: OnnxModel(file, features_from="Flatten71", threads=1),
        "onnx path": lambda: OnnxModel(tmp_path / "net.onnx", batch_size=4),
        "torch": lambda: TorchModel(network, features_from="layer2", classes=list("abcdefghij")),
        "exported": lambda: ExportedModel(tmp_path / "net.pt2"),
        "scikit-learn": lambda: SklearnModel(fitted, features=first_pixels),
        "function": lambda: CallableModel(red_and_green, key="v1"),
    }


KINDS = ["onnx bytes", "onnx path", "torch", "exported", "scikit-learn", "function"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [pickle, cloudpickle])
def test_what_comes_back_gives_the_same(make, kind, how, tmp_path, monkeypatch):
    model = make[kind]()
    model.spec = "made:of?this"
    wanted = model.outputs(IMAGES)
    data = how.dumps(model)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    other = pickle.loads(data)
    made = other.outputs(IMAGES)
    np.testing.assert_array_equal(made.logits, wanted.logits)
    if wanted.features is not None:
        np.testing.assert_array_equal(made.features, wanted.features)
    for name in ("fingerprint", "engine", "spec", "preprocessing", "classes", "batch_size"):
        assert getattr(other, name) == getattr(model, name)
    # Batches of other sizes may differ in the last digit.
    assert other.size_of_batches(IMAGES) == model.size_of_batches(IMAGES)


def test_a_relative_path_is_found_from_another_folder(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    models = [OnnxModel("net.onnx"), ExportedModel("net.pt2")]
    wanted = [model.logits(IMAGES) for model in models]
    data = pickle.dumps(models)
    monkeypatch.chdir(os.sep)
    for model, z in zip(pickle.loads(data), wanted, strict=True):
        np.testing.assert_array_equal(model.logits(IMAGES), z)


def test_torch_has_the_threads_it_was_told_only_while_it_runs(tmp_path):
    seen = []

    class Net(nn.Module):
        def forward(self, x):
            seen.append(torch.get_num_threads())
            return x.mean((2, 3))

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        model = TorchModel(Net(), batch_size=6)
        wanted = model.logits(IMAGES)
        model.use_threads(1)
        np.testing.assert_array_equal(model.logits(IMAGES), wanted)
        assert torch.get_num_threads() == 2
        assert seen == [2, 1]
    finally:
        torch.set_num_threads(before)
