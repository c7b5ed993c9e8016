"""Models as text."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx_resnet import mean_colour_onnx
from safetensors.torch import save_file
from torch import nn

from shiftcal.errors import FileError, InputError
from shiftcal.models import (
    CallableModel,
    Preprocessing,
    SklearnModel,
    Spec,
    TorchModel,
    as_model,
    parse_spec,
)
from shiftcal.models.resolve import KINDS

IMAGES = np.random.default_rng(2).integers(0, 256, (5, 32, 32, 3), np.uint8)

FACTORIES = """
import torch
from torch import nn

given = {}


def tiny(width=4, bias=True, scale=1.0, name="none"):
    given.update(width=width, bias=bias, scale=scale, name=name)
    torch.manual_seed(7)
    return nn.Sequential(nn.Conv2d(3, width, 32, bias=bias), nn.Flatten(), nn.Linear(width, 3))


"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
    (tmp_path / "spec_factories.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("spec_factories", None)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("onnx:model.onnx", ("onnx", "model.onnx", {})),
        ("b.pt2?batch_size=3", ("export", "b.pt2", {"batch_size": "3"})),
        ("onnx:C:\\nets\\a.onnx", ("onnx", "C:\\nets\\a.onnx", {})),
        ("torch:my.mod:make?a=1&b=x%26y", ("torch", "my.mod:make", {"a": "1", "b": "x&y"})),
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


def test_a_factory_is_called_with_the_options_that_are_nobody_elses(factories):
    text = "torch:spec_factories:tiny?width=6&bias=false&scale=0.5&name=me&batch_size=2"
    model = as_model(text + "&mean=0.5&std=0.25,0.5,1")
    import spec_factories

    assert spec_factories.given == {"width": 6, "bias": False, "scale": 0.5, "name": "me"}
    assert isinstance(model, TorchModel)
    assert model.batch_size == 2
    assert model.preprocessing == Preprocessing(mean=(0.5,) * 3, std=(0.25, 0.5, 1.0))
    assert model.spec == text + "&mean=0.5&std=0.25,0.5,1"
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


def test_plain_paths_and_texts_of_files_give_the_same_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 32), nn.Flatten(), nn.Linear(4, 3)).eval()
    torch.export.save(torch.export.export(network, (torch.zeros(2, 3, 32, 32),)), "net.pt2")
    (tmp_path / "odd?crop=3.pt2").write_bytes((tmp_path / "net.pt2").read_bytes())
    wanted = as_model(network, preprocessing=Preprocessing()).logits(IMAGES)
    for text in ("net.pt2", "export:net.pt2?batch_size=2", "odd?crop=3.pt2"):
        model = as_model(text)
        np.testing.assert_allclose(model.logits(IMAGES), wanted, rtol=1e-4, atol=1e-4)
        again = as_model(model.spec)
        np.testing.assert_allclose(again.logits(IMAGES), wanted, rtol=1e-3, atol=1e-3)
    assert as_model(tmp_path / "net.pt2").spec == f"export:{tmp_path}/net.pt2"
    assert as_model(network).spec is None


SMALL = np.random.default_rng(1).integers(0, 256, (3, 16, 16, 3), np.uint8)


def test_a_model_is_made_again_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "odd 100%?").mkdir()
    (tmp_path / "odd 100%?" / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "odd 100%?")
    made = [as_model(text) for text in ("net.onnx", "onnx:net.onnx?batch_size=2")]
    monkeypatch.chdir(tmp_path / "elsewhere")
    for model in made:
        again = as_model(model.spec)
        assert (again.spec, again.batch_size) == (model.spec, model.batch_size)
        np.testing.assert_array_equal(again.logits(SMALL), model.logits(SMALL))


FEW = np.random.default_rng(3).integers(0, 256, (6, 10, 8, 3), np.uint8)

MODULE = """
import numpy as np
from sklearn.linear_model import LogisticRegression

from shiftcal.models import as_model

seen = []


def means(batch):
    seen.append((batch.dtype.name, batch.shape))
    axes = (2, 3) if batch.shape[1] == 3 else (1, 2)
    return batch.astype(float).mean(axis=axes) * 3 + 0.125


class Inside:
    means = staticmethod(means)


ready = as_model(means, key="ready-v1", batch_size=5)
X = np.random.default_rng(0).random((30, 240))
fitted = LogisticRegression().fit(X, np.arange(30) % 3)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "python_spec_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield "python:python_spec_module"
    sys.modules.pop("python_spec_module", None)


def test_a_function_takes_preprocessed_batches(module):
    model = as_model(f"{module}:means?key=means-v1&batch_size=4&crop=8&mean=0.5&std=0.25")
    assert isinstance(model, CallableModel)
    assert model.preprocessing == Preprocessing(crop=8, mean=(0.5,) * 3, std=(0.25,) * 3)
    wanted = ((FEW[:, 1:9] / 255 - 0.5) / 0.25).mean(axis=(1, 2)) * 3 + 0.125
    np.testing.assert_allclose(model.logits(FEW), wanted, atol=1e-5)  # float32 pixels
    import python_spec_module

    assert python_spec_module.seen == [("float32", (4, 3, 8, 8)), ("float32", (2, 3, 8, 8))]
    assert model.fingerprint == as_model(f"{module}:Inside.means?key=means-v1").fingerprint
    assert model.fingerprint != as_model(f"{module}:means?key=means-v2").fingerprint
    assert as_model(f"{module}:means").fingerprint is None
    assert model.spec == f"{module}:means?key=means-v1&batch_size=4&crop=8&mean=0.5&std=0.25"


def test_models_and_fitted_classifiers_are_taken_too(module):
    model = as_model(f"{module}:ready")
    import python_spec_module

    assert (model.key, model.batch_size, model.spec) == ("ready-v1", 5, f"{module}:ready")
    assert python_spec_module.ready.spec is None
    fitted = as_model(f"{module}:fitted?batch_size=2")
    assert isinstance(fitted, SklearnModel)
    assert fitted.preprocessing.layout == "nhwc"
    rows = (FEW / np.float32(255)).reshape(6, -1)
    np.testing.assert_allclose(
        fitted.logits(FEW),
        python_spec_module.fitted.decision_function(rows),
        rtol=1e-6,
    )
    changed = as_model(f"{module}:fitted?std=0.5").preprocessing
    assert changed == Preprocessing(std=(0.5,) * 3, layout="nhwc")
