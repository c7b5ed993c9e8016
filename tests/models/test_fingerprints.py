"""Fingerprints: the same for the same model, another for any other."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx_resnet import mean_colour_onnx, resnet20_onnx
from sklearn.linear_model import LogisticRegression
from torch import nn

from shiftcal.errors import FileError
from shiftcal.models import (
    CallableModel,
    OnnxModel,
    Preprocessing,
    SklearnModel,
    TorchModel,
    TorchScriptModel,
    cifar_resnet,
)

FREE = ["n", 3, "h", "w"]


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 7), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))


def test_a_copy_of_a_module_has_the_same_and_running_it_changes_nothing(network):
    model = TorchModel(network)
    before = model.fingerprint
    assert len(before) == 64
    assert TorchModel(copy.deepcopy(network).eval()).fingerprint == before
    model.logits(np.zeros((2, 8, 8, 3), np.uint8))
    assert model.fingerprint == before
    assert TorchModel(network, batch_size=3, channels_last=True).fingerprint == before
    assert TorchModel(network, preprocessing=Preprocessing(crop=4)).fingerprint == before


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net[0].weight.data.view(-1)[5:6].add_(1e-3),
        lambda net: net[1].running_mean.add_(1),
        lambda net: setattr(net[1], "eps", 1e-3),
        lambda net: setattr(net, "3", nn.Linear(16, 4)),
        lambda net: setattr(net[0], "stride", (2, 2)),
        lambda net: setattr(net, "scale", 2.0),
        lambda net: net.half(),
        lambda net: net.register_buffer("unsaved", torch.zeros(2), persistent=False),
    ],
)
def test_whatever_is_changed_in_a_module_changes_it(network, change):
    model = TorchModel(network)
    before = model.fingerprint
    change(network)
    assert model.fingerprint != before


def test_options_that_decide_the_outputs_are_part_of_it(network):
    options = [
        {},
        {"precision": "bfloat16"},
        {"precision": "float16"},
        {"features_from": "2"},
        {"features_from": "1"},
        {"output": "probabilities"},
    ]
    assert len({TorchModel(network, **given).fingerprint for given in options}) == len(options)


def test_the_code_of_a_module_is_part_of_it():
    class Net(nn.Module):
        def forward(self, x):
            return x.mean(dim=(2, 3))

    one = TorchModel(Net()).fingerprint

    class Net(nn.Module):
        def forward(self, x):
            return x.amax(dim=(2, 3))

    assert TorchModel(Net()).fingerprint != one


def test_it_is_the_same_in_another_process(network, tmp_path):
    torch.save(network.state_dict(), tmp_path / "w.pt")
    code = """
import sys, torch
from torch import nn
from shiftcal.models import TorchModel
net = nn.Sequential(nn.Conv2d(3, 4, 7), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))
net.load_state_dict(torch.load(sys.argv[1], weights_only=True))
print(TorchModel(net).fingerprint)
"""
    given = [sys.executable, "-c", code, str(tmp_path / "w.pt")]
    made = subprocess.run(given, capture_output=True, text=True, check=True).stdout.strip()
    assert made == TorchModel(network).fingerprint


def test_weights_of_every_precision_are_read(network):
    for kind in (torch.bfloat16, torch.float16, torch.float64):
        assert TorchModel(copy.deepcopy(network).to(kind)).fingerprint


def test_a_module_whose_weights_are_not_made_yet_has_none():
    assert TorchModel(nn.Sequential(nn.Flatten(), nn.LazyLinear(3))).fingerprint is None


def test_that_of_an_onnx_file_is_that_of_its_bytes_and_outputs(tmp_path):
    one, other = mean_colour_onnx(FREE), mean_colour_onnx(["n", 3, 8, 8])
    assert OnnxModel(one).fingerprint == OnnxModel(one, threads=1).fingerprint
    assert OnnxModel(one).fingerprint != OnnxModel(other).fingerprint
    assert OnnxModel(one).fingerprint != OnnxModel(one, features_from="x").fingerprint
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for path in paths:
        path.write_bytes(one)
    assert OnnxModel(paths[0]).fingerprint == OnnxModel(str(paths[1])).fingerprint


def test_a_file_that_changes_under_a_model_is_noticed(tmp_path):
    path = tmp_path / "a.onnx"
    path.write_bytes(mean_colour_onnx(FREE))
    early, late = OnnxModel(path), OnnxModel(path)
    kept = early.fingerprint
    path.write_bytes(mean_colour_onnx(["n", 3, 8, 8]))
    assert early.fingerprint == kept  # of what was loaded, and read once
    with pytest.raises(FileError, match=r"a.onnx must stay as it was .* Load it again"):
        _ = late.fingerprint
    assert OnnxModel(path).fingerprint != kept


@pytest.fixture
def in_two_files(tmp_path):
    torch.manual_seed(1)
    weights = {name: value.numpy() for name, value in cifar_resnet(20).state_dict().items()}
    network = onnx.load_model_from_string(resnet20_onnx(weights))
    onnx.save_model(network, tmp_path / "net.onnx", save_as_external_data=True, location="net.bin")
    return tmp_path / "net.onnx"


def test_weights_beside_an_onnx_file_are_part_of_it(in_two_files, tmp_path):
    one, same = (OnnxModel(in_two_files).fingerprint for _ in range(2))
    assert one == same
    weights = bytearray((tmp_path / "net.bin").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "net.bin").write_bytes(weights)
    assert OnnxModel(in_two_files).fingerprint != one


def test_a_network_in_two_files_gives_features_too(in_two_files):
    name = onnx.load(in_two_files).graph.node[-2].output[0]
    images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), np.uint8)
    made = OnnxModel(in_two_files, features_from=name).outputs(images)
    assert made.features.shape == (2, 64)
    np.testing.assert_allclose(made.logits, OnnxModel(in_two_files).logits(images), atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:FutureWarning")
def test_that_of_torchscript_is_that_of_the_file(network, tmp_path):
    made = []
    for name in ("a.pt", "b.pt"):
        torch.jit.script(network.eval()).save(tmp_path / name)
        made.append(TorchScriptModel(tmp_path / name))
        with torch.no_grad():
            network[0].weight.add_(1)
    assert made[0].fingerprint != made[1].fingerprint
    assert made[0].fingerprint == TorchScriptModel(tmp_path / "a.pt").fingerprint


def first_pixels(batch):
    return batch[:, 0, :2, 0]


def last_pixels(batch):
    return batch[:, -1, :2, 0]


def test_that_of_a_classifier_is_made_of_what_it_learned_and_its_features():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    one, other = LogisticRegression().fit(x, y), LogisticRegression().fit(x[:50], y[:50])
    made = [
        SklearnModel(one, features=first_pixels),
        SklearnModel(other, features=first_pixels),
        SklearnModel(one, features=last_pixels),
        SklearnModel(one, features=first_pixels, scores="predict_proba"),
        SklearnModel(one, features=first_pixels, return_features=True),
        SklearnModel(one),
    ]
    assert len({model.fingerprint for model in made}) == len(made)
    again = SklearnModel(LogisticRegression().fit(x, y), features=first_pixels)
    assert again.fingerprint == made[0].fingerprint
    one.fit(x[:40], y[:40])
    assert made[0].fingerprint != again.fingerprint
    assert SklearnModel(one, features=lambda b: b[:, 0, :2, 0]).fingerprint is None
    assert SklearnModel(one, features=np.ravel).fingerprint is None


def test_a_function_has_none_unless_it_is_given_a_name():
    assert CallableModel(first_pixels).fingerprint is None
    one, other = (CallableModel(first_pixels, key=key).fingerprint for key in ("v1", "v2"))
    assert one != other
    assert CallableModel(last_pixels, key="v1").fingerprint == one


@pytest.mark.parametrize("key", ["", 3])
def test_a_key_that_is_no_name_is_refused(key):
    with pytest.raises(ValueError, match="key must be a name; got"):
        CallableModel(first_pixels, key=key)


def test_engines_are_named_with_their_versions(network):
    import onnxruntime
    import sklearn

    fitted = LogisticRegression().fit(np.eye(3), [0, 1, 2])
    version = torch.__version__.partition("+")[0]
    wanted = f"onnxruntime {onnxruntime.__version__} CPUExecutionProvider"
    assert OnnxModel(mean_colour_onnx(FREE)).engine == wanted
    assert TorchModel(network).engine == f"torch {version}"
    assert TorchModel(network.to("meta")).engine == f"torch {version} meta"
    assert SklearnModel(fitted).engine == f"scikit-learn {sklearn.__version__}"
    assert CallableModel(first_pixels).engine == "CallableModel"
