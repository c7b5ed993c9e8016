"""Models as text."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from shiftcal.errors import FileError, InputError
from shiftcal.models import (
    CallableModel,
    ExportedModel,
    OnnxModel,
    Preprocessing,
    SklearnModel,
    Spec,
    TorchModel,
    TorchScriptModel,
    as_model,
    parse_spec,
)
from shiftcal.models.model import Model
from shiftcal.models.resolve import KINDS, TAKEN, plain_value

IMAGES = np.random.default_rng(2).integers(0, 256, (5, 32, 32, 3), np.uint8)

FACTORIES = """
import torch
from torch import nn

from shiftcal.models import Preprocessing

given = {}


def tiny(width=4, bias=True, scale=1.0, name="none"):
    given.update(width=width, bias=bias, scale=scale, name=name)
    torch.manual_seed(7)
    return nn.Sequential(nn.Conv2d(3, width, 32, bias=bias), nn.Flatten(), nn.Linear(width, 3))


def prepared():
    network = tiny()
    network.preprocessing = Preprocessing(crop=32, mean=(0.5, 0.5, 0.5))
    return network


def broken():
    raise KeyError("no such thing")


def nothing():
    return 3


class Nets:
    @staticmethod
    def inner():
        return tiny()


number = 5
"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
    (tmp_path / "spec_factories.py").write_text(FACTORIES)
    (tmp_path / "spec_broken.py").write_text("x = 1\nraise OSError('on import')\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("spec_factories", "spec_broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("onnx:model.onnx", ("onnx", "model.onnx", {})),
        ("a/b.onnx", ("onnx", "a/b.onnx", {})),
        ("b.pt2?batch_size=3", ("export", "b.pt2", {"batch_size": "3"})),
        ("B.PT", ("torchscript", "B.PT", {})),
        ("C:\\nets\\a.onnx", ("onnx", "C:\\nets\\a.onnx", {})),
        ("onnx:C:\\nets\\a.onnx", ("onnx", "C:\\nets\\a.onnx", {})),
        ("torch:my.mod:make?a=1&b=x%26y", ("torch", "my.mod:make", {"a": "1", "b": "x&y"})),
        ("hf:microsoft/resnet-50", ("hf", "microsoft/resnet-50", {})),
        ("onnx:what%3F.onnx?mean=1,2,3", ("onnx", "what?.onnx", {"mean": "1,2,3"})),
        ("cifar-resnet:20?weights=a+b.th", ("cifar-resnet", "20", {"weights": "a+b.th"})),
        ("  timm:resnet50 ", ("timm", "resnet50", {})),
    ],
)
def test_a_text_is_taken_apart(text, wanted):
    spec = parse_spec(text)
    assert (spec.kind, spec.target, dict(spec.options)) == wanted


@given(
    kind=st.sampled_from(sorted(KINDS)),
    target=st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda t: t.strip() == t),
    options=st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), st.text(), max_size=3),
)
def test_the_text_of_a_spec_gives_the_spec_again(kind, target, options):
    made = Spec(kind, target, options)
    again = parse_spec(str(made))
    assert (again.kind, again.target, dict(again.options)) == (kind, target, options)


@given(st.text())
def test_any_other_text_is_an_error_of_the_input(text):
    try:
        spec = parse_spec(text)
    except InputError:
        return
    assert spec.kind in KINDS


ADAPTERS = {
    "onnx": OnnxModel,
    "torchscript": TorchScriptModel,
    "export": ExportedModel,
    "sklearn": SklearnModel,
    "python": CallableModel,
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_options_of_a_kind_are_those_its_adapter_has(kind):
    adapter = ADAPTERS.get(kind, TorchModel)
    known = set(inspect.signature(adapter).parameters) | set(inspect.signature(Model).parameters)
    # These two are done by other means where an adapter does not take them.
    assert set(TAKEN[kind][0]) - {"threads", "device"} <= known


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("nan", "nan"),
        ("1_0", "1_0"),
        ("", ""),
        ("x", "x"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_values_for_a_factory_are_numbers_truth_values_or_text(text, value):
    made = plain_value(text)
    assert made == value
    assert type(made) is type(value)


def test_a_factory_is_called_with_the_options_that_are_nobody_elses(factories):
    text = "torch:spec_factories:tiny?width=6&bias=false&scale=0.5&name=me&batch_size=2"
    model = as_model(text + "&channels_last=true&mean=0.5&std=0.25,0.5,1")
    import spec_factories

    assert spec_factories.given == {"width": 6, "bias": False, "scale": 0.5, "name": "me"}
    assert isinstance(model, TorchModel)
    assert (model.batch_size, model.channels_last) == (2, True)
    assert model.preprocessing == Preprocessing(mean=(0.5,) * 3, std=(0.25, 0.5, 1.0))
    assert model.spec == text + "&channels_last=true&mean=0.5&std=0.25,0.5,1"
    assert model.logits(IMAGES).shape == (5, 3)
    assert str(factories) not in sys.path


def test_weights_go_into_what_the_factory_makes(factories):
    torch.manual_seed(1)
    other = nn.Sequential(nn.Conv2d(3, 4, 32), nn.Flatten(), nn.Linear(4, 3))
    save_file(other.state_dict(), "w.safetensors")
    model = as_model("torch:spec_factories:tiny?weights=w.safetensors")
    np.testing.assert_array_equal(model.logits(IMAGES), as_model(other).logits(IMAGES))
    with pytest.raises(
        FileError, match=r"w.safetensors does not hold the weights of the network of spec_fac"
    ):
        as_model("torch:spec_factories:tiny?weights=w.safetensors&width=5")
    with pytest.raises(FileError, match=r"none.pt must be a file of weights"):
        as_model("torch:spec_factories:tiny?weights=none.pt")


def test_options_reach_the_adapter():
    model = as_model("cifar-resnet:20?batch_size=auto&output=probabilities&memory_budget=1000000")
    assert (model.batch_size, model.output, model.memory_budget) == (None, "probabilities", 10**6)
    model = as_model("cifar-resnet:20?features_from=layer3&precision=bfloat16&n_classes=7")
    assert (model.features_from, model.precision) == ("layer3", "bfloat16")
    assert as_model("cifar-resnet:20?device=cpu").preprocessing.mean == (0.485, 0.456, 0.406)


def test_options_beside_the_text_are_taken_and_none_may_be_said_twice():
    mine = Preprocessing(mean=(0.1, 0.2, 0.3))
    model = as_model("cifar-resnet:20", preprocessing=mine, classes=list("abcdefghij"))
    assert model.preprocessing == mine
    assert model.classes == tuple("abcdefghij")
    assert model.spec is None  # the text alone would make another
    with pytest.raises(InputError, match="set once; got batch_size in cifar-resnet:20"):
        as_model("cifar-resnet:20?batch_size=3", batch_size=4)
    with pytest.raises(InputError, match="set once; got preprocessing"):
        as_model("cifar-resnet:20?crop=3", preprocessing=mine)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:FutureWarning")
def test_plain_paths_and_texts_of_files_give_the_same_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 32), nn.Flatten(), nn.Linear(4, 3)).eval()
    torch.jit.save(torch.jit.trace(network, torch.zeros(2, 3, 32, 32)), "net.pt")
    (tmp_path / "odd?crop=3.pt").write_bytes((tmp_path / "net.pt").read_bytes())
    wanted = as_model(network, preprocessing=Preprocessing()).logits(IMAGES)
    for text in ("net.pt", "torchscript:net.pt?batch_size=2", "odd?crop=3.pt"):
        model = as_model(text)
        np.testing.assert_allclose(model.logits(IMAGES), wanted, rtol=1e-4, atol=1e-4)
        assert model.spec is not None
        np.testing.assert_allclose(
            as_model(model.spec).logits(IMAGES), wanted, rtol=1e-3, atol=1e-3
        )
    assert as_model(tmp_path / "net.pt").spec == f"torchscript:{tmp_path}/net.pt"
    assert as_model(network).spec is None
