"""Fingerprints: the same for the same model, another for any other."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx_resnet import mean_colour_onnx, resnet20_onnx
from pytorchcv.model_provider import get_model
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
    assert TorchModel(network, precision="float32").fingerprint == before
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
        lambda net: setattr(net, "_scale", 2.0),
        lambda net: setattr(net, "table", {"scale": [1, (2, 3.0)]}),
        lambda net: setattr(net, "loose", torch.ones(2)),
        lambda net: setattr(net, "array", np.arange(3)),
        lambda net: setattr(net, "norm", functools.partial(torch.flatten, start_dim=1)),
        lambda net: setattr(net, "act", lambda x: x * 2),
        lambda net: setattr(net, "forward", net[0].forward),
        lambda net: net.register_forward_hook(lambda _m, _i, out: out * 2),
        lambda net: net[1].register_forward_pre_hook(lambda _m, inputs: (inputs[0] * 2,)),
    ],
)
def test_whatever_is_changed_in_a_module_changes_it(network, change):
    model = TorchModel(network)
    before = model.fingerprint
    change(network)
    assert model.fingerprint != before


@pytest.mark.parametrize("key", [None, "v1"])
def test_options_that_decide_the_outputs_are_part_of_it(network, key):
    options = [
        {},
        {"precision": "bfloat16"},
        {"precision": "float16"},
        {"features_from": "2"},
        {"features_from": "1"},
        {"output": "probabilities"},
    ]
    made = {TorchModel(network, key=key, **given).fingerprint for given in options}
    assert len(made) == len(options)


def test_the_code_of_a_module_is_part_of_it():
    class Net(nn.Module):
        def forward(self, x):
            return x.mean(dim=(2, 3))

    one = TorchModel(Net()).fingerprint

    class Net(nn.Module):
        def forward(self, x):
            return x.amax(dim=(2, 3))

    assert TorchModel(Net()).fingerprint != one


SCALE, TABLE = 1.0, {"shift": [0.0]}


def scaled(x):
    return x * SCALE


def scaled_and_shifted(x, by=1.0):
    return scaled(x) * by + TABLE["shift"][0]


class Calling(nn.Module):
    """Its forward calls a function of this file, which calls another, which reads a global."""

    power = 1

    def __init__(self, by=2.0):
        super().__init__()
        self.own = lambda x: x * by

    def forward(self, x):
        return self.own(scaled_and_shifted(x.mean(dim=(2, 3))) ** self.power)


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(sys.modules[__name__], "SCALE", 2.0),
        lambda patch: patch.setitem(TABLE, "shift", [1.0]),
        lambda patch: patch.setattr(sys.modules[__name__], "scaled", lambda x: x * 3),
        lambda patch: patch.setattr(scaled_and_shifted, "__defaults__", (2.0,)),
        lambda patch: patch.setattr(Calling, "power", 2),
    ],
)
def test_what_the_code_of_a_module_calls_and_reads_is_part_of_it(change, monkeypatch):
    model = TorchModel(Calling())
    before = model.fingerprint
    assert TorchModel(Calling()).fingerprint == before is not None
    assert TorchModel(Calling(by=3.0)).fingerprint != before
    change(monkeypatch)
    assert model.fingerprint not in (None, before)
    monkeypatch.undo()
    assert model.fingerprint == before


def test_hooks_count_and_their_numbers_do_not(network):
    def double(_module, _inputs, output):
        return output * 2

    before = TorchModel(network).fingerprint
    made = []
    for _ in range(2):  # a hook's number is another every time
        handle = network.register_forward_hook(double)
        made.append(TorchModel(network).fingerprint)
        handle.remove()
    assert made[0] == made[1] != before
    assert TorchModel(network).fingerprint == before


def test_what_cannot_be_told_makes_it_unknown(network, tmp_path):
    with (tmp_path / "open").open("w") as stream:
        network.log = stream
        assert TorchModel(network).fingerprint is None
        assert TorchModel(network, key="v1").fingerprint


def test_a_module_may_hold_itself(network):
    before = TorchModel(network).fingerprint
    network.table = {"self": [network]}
    made = TorchModel(network).fingerprint
    assert made not in (None, before)
    assert TorchModel(copy.deepcopy(network)).fingerprint == made


NETWORKS = {
    "recurrent": lambda: nn.LSTM(4, 5, 2),
    "attention": lambda: nn.MultiheadAttention(8, 2),
    "transformer": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2),
    "lists": lambda: nn.ModuleList([nn.ModuleDict({"a": nn.PReLU()}), nn.GroupNorm(2, 4)]),
    "parametrized": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)),
    "traced by fx": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU())),
    "ours": lambda: cifar_resnet(20),
    "pytorchcv": lambda: get_model("mobilenetv2_w1"),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("kind", NETWORKS)
def test_networks_of_every_kind_have_one(kind):
    module = NETWORKS[kind]()
    made = TorchModel(module).fingerprint
    assert made is not None
    assert TorchModel(copy.deepcopy(module).eval()).fingerprint == made
    with torch.no_grad():
        next(module.parameters()).add_(1)
    assert TorchModel(module).fingerprint not in (None, made)


def test_a_network_of_transformers_has_one():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(
        num_hidden_layers=1, image_size=16, patch_size=8, hidden_act="gelu", **sizes
    )
    network = transformers.ViTForImageClassification(config)
    made = TorchModel(network).fingerprint
    assert made is not None
    assert TorchModel(copy.deepcopy(network)).fingerprint == made
    network.config.hidden_act = "relu"
    assert TorchModel(network).fingerprint != made


def test_code_of_this_project_and_its_globals_are_the_same_in_another_process(tmp_path):
    (tmp_path / "nets.py").write_text(
        "from torch import nn\n"
        "KINDS = {'a', 'b', 'c'}\n"
        "def pick(x, kinds=frozenset('xyz')):\n    return x if 'a' in KINDS else -x\n"
        "class Net(nn.Module):\n"
        "    act = staticmethod(lambda x: pick(x))\n"
        "    def forward(self, x):\n        return self.act(x).mean((2, 3))\n"
    )
    code = (
        "import nets; from shiftcal.models import TorchModel as T; print(T(nets.Net()).fingerprint)"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert len(made) == 1
    assert made != {"None"}


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
    assert early.fingerprint == late.fingerprint == kept  # of what was loaded
    assert OnnxModel(path).fingerprint != kept
    with pytest.raises(FileError, match=r"a.onnx must stay as it was .* Make the model anew"):
        early.use_threads(1)


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


def test_weights_beside_an_onnx_file_are_those_that_were_loaded(in_two_files, tmp_path):
    kept, late = OnnxModel(in_two_files).fingerprint, OnnxModel(in_two_files)
    data = pickle.dumps(late)
    weights = bytearray((tmp_path / "net.bin").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "net.bin").write_bytes(weights)
    assert late.fingerprint == kept
    with pytest.raises(FileError, match=r"net.onnx must stay as it was"):
        pickle.loads(data)


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


def pixels_times(factor):
    def features(batch):
        return batch[:, 0, :2, 0] * factor

    return features


def test_features_count_with_what_they_close_over_and_read(monkeypatch):
    rng = np.random.default_rng(1)
    fitted = LogisticRegression().fit(rng.normal(size=(60, 2)), rng.integers(0, 3, 60))

    def scaled_pixels(batch):
        return first_pixels(batch) * SCALE

    functions = [
        pixels_times(1),
        pixels_times(2),
        lambda b: b[:, 0, :2, 0],
        lambda b: b[:, 1, :2, 0],
        functools.partial(np.reshape, shape=(-1, 2)),
        scaled_pixels,
    ]
    made = [SklearnModel(fitted, features=one).fingerprint for one in functions]
    assert len({*made, None}) == len(made) + 1
    assert SklearnModel(fitted, features=pixels_times(2)).fingerprint == made[1]
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    assert SklearnModel(fitted, features=scaled_pixels).fingerprint != made[-1]


def test_options_count_with_a_key_too(network, tmp_path):
    rng = np.random.default_rng(1)
    fitted = LogisticRegression().fit(rng.normal(size=(60, 2)), rng.integers(0, 3, 60))
    file = mean_colour_onnx(FREE)
    pairs = [
        (SklearnModel, fitted, {"scores": "predict_proba"}),
        (SklearnModel, fitted, {"return_features": True}),
        (OnnxModel, file, {"features_from": "x"}),
        (CallableModel, first_pixels, {"output": "probabilities"}),
    ]
    for kind, thing, options in pairs:
        plain, other = kind(thing, key="v1"), kind(thing, key="v1", **options)
        assert plain.fingerprint != other.fingerprint
        assert kind(thing, key="v1", **options).fingerprint == other.fingerprint


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
    assert TorchModel(network, channels_last=True).engine.endswith("channels_last")
    assert SklearnModel(fitted).engine == f"scikit-learn {sklearn.__version__}"
    assert CallableModel(first_pixels).engine == "CallableModel"


def test_every_execution_provider_is_named():
    model = OnnxModel(mean_colour_onnx(FREE))

    class Session:
        def get_providers(self):
            return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    model.session = Session()
    assert model.engine.endswith(" CUDAExecutionProvider, CPUExecutionProvider")
