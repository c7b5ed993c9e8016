"""Fingerprints: the same for the same model, another for any other, none for unknown code."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import onnx
import pytest
import torch
from onnx_resnet import mean_colour_onnx
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional

from shiftcal.errors import FileError, InputError
from shiftcal.models import (
    CallableModel,
    ExportedModel,
    GroupedModel,
    OnnxModel,
    Preprocessing,
    SklearnModel,
    TorchModel,
    as_model,
)

IMAGES = np.zeros((2, 8, 8, 3), np.uint8)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 7), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))


class Own(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))


def test_what_changes_no_output_changes_no_fingerprint(network):
    model = TorchModel(network)
    before = model.fingerprint
    model.logits(IMAGES)
    assert len(before) == 64
    for other in (
        model,
        TorchModel(copy.deepcopy(network).eval()),
        TorchModel(network, batch_size=3),
        TorchModel(network, preprocessing=Preprocessing(crop=4)),
        pickle.loads(pickle.dumps(model)),
    ):
        assert other.fingerprint == before


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net[0].weight.data.view(-1)[5:6].add_(1e-3),
        lambda net: net[1].running_mean.add_(1),
        lambda net: setattr(net[1], "eps", 1e-3),
        lambda net: setattr(net[0], "stride", (2, 2)),
        lambda net: net.register_buffer("unsaved", torch.zeros(2), persistent=False),
        lambda net: setattr(net[0], "activation", functional.gelu),
        lambda net: setattr(net[2], "forward", net[0].forward),
        lambda net: setattr(net[2], "forward", lambda x: x),
    ],
)
def test_whatever_changes_an_output_changes_it(network, change):
    model = TorchModel(network)
    before = model.fingerprint
    change(network)
    assert model.fingerprint != before


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.append(Own()),
        lambda net: net.register_forward_hook(lambda _m, _i, out: out * 2),
        lambda net: net[1].register_forward_pre_hook(lambda _m, inputs: inputs),
    ],
)
def test_hooks_and_classes_of_users_have_one_only_by_a_key(network, change):
    change(network)
    assert TorchModel(network).fingerprint is None
    assert TorchModel(network, key="a").fingerprint == TorchModel(Own(), key="a").fingerprint
    assert TorchModel(network, key="a").fingerprint != TorchModel(network, key="b").fingerprint


@pytest.mark.parametrize("key", [None, "v1"])
def test_options_that_decide_the_outputs_are_part_of_it(network, key):
    options = [
        {},
        {"features_from": "2"},
        {"features_from": "1"},
        {"output": "probabilities"},
    ]
    assert len({TorchModel(network, key=key, **one).fingerprint for one in options}) == 4


def test_functions_and_classifiers_in_memory_need_a_key():
    classifier = LogisticRegression().fit(np.eye(192)[:4], [0, 1, 0, 1])
    for make, thing in ((CallableModel, len), (SklearnModel, classifier)):
        assert make(thing).fingerprint is None
        assert make(thing, key="a").fingerprint == make(thing, key="a").fingerprint is not None
    by_scores = {
        SklearnModel(classifier, key="a", scores=name).fingerprint
        for name in ("decision_function", "predict_proba")
    }
    assert len(by_scores) == 2
    with pytest.raises(InputError, match="key must be a name"):
        CallableModel(len, key="")


def test_a_skops_file_has_that_of_the_file(tmp_path):
    skops = pytest.importorskip("skops.io")
    rows = np.eye(192)[:4]
    for name, labels in (("a", [0, 1, 0, 1]), ("b", [0, 1, 1, 1])):
        skops.dump(LogisticRegression().fit(rows, labels), tmp_path / f"{name}.skops")
    a, b = as_model(tmp_path / "a.skops"), as_model(tmp_path / "b.skops")
    assert a.fingerprint == as_model(tmp_path / "a.skops").fingerprint
    assert None is not a.fingerprint != b.fingerprint is not None
    assert as_model(tmp_path / "a.skops", features=lambda b: b).fingerprint is None


def test_groups_are_part_of_it_and_need_that_of_the_model(network):
    groups = {"a": [0], "b": [1, 2]}, {"a": [0, 1], "b": [2]}
    made = {GroupedModel(TorchModel(network), one).fingerprint for one in groups}
    assert len({*made, TorchModel(network).fingerprint}) == 3
    assert GroupedModel(CallableModel(len), groups[0]).fingerprint is None


def test_weights_in_other_files_are_part_of_it(tmp_path):
    network = onnx.load_model_from_string(mean_colour_onnx(["n", 3, "h", "w"]))
    weights = np.ones((1, 4), np.float32)
    network.graph.initializer.append(onnx.numpy_helper.from_array(weights, "unused"))
    onnx.save_model(
        network,
        tmp_path / "net.onnx",
        save_as_external_data=True,
        location="net.data",
        size_threshold=0,
    )
    before = OnnxModel(tmp_path / "net.onnx").fingerprint
    content = (tmp_path / "net.data").read_bytes()
    (tmp_path / "net.data").write_bytes(content[:-1] + b"\1")
    assert OnnxModel(tmp_path / "net.onnx").fingerprint != before


@pytest.mark.parametrize("kind", ["onnx", "export"])
def test_a_file_that_has_changed_is_not_opened_again(tmp_path, kind, network):
    if kind == "onnx":
        file = tmp_path / "net.onnx"
        file.write_bytes(mean_colour_onnx(["n", 3, "h", "w"]))
        model = OnnxModel(file)
        other = mean_colour_onnx(["n", 3, 8, 8])
    else:
        file, second = tmp_path / "net.pt2", tmp_path / "second.pt2"
        for part, place in ((network.eval(), file), (network[:2], second)):
            torch.export.save(torch.export.export(part, (torch.zeros(2, 3, 8, 8),)), place)
        model, other = ExportedModel(file), second.read_bytes()
    stored = pickle.dumps(model)
    assert pickle.loads(stored).fingerprint == model.fingerprint
    file.write_bytes(other)
    with pytest.raises(FileError, match="must stay as it was"):
        pickle.loads(stored)
