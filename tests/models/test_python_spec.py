"""Models named as ``python:package.module:function``."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from shiftcal.models import CallableModel, Preprocessing, SklearnModel, as_model

IMAGES = np.random.default_rng(3).integers(0, 256, (6, 10, 8, 3), np.uint8)

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
number = 3
text = "cifar-resnet:20"
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
    wanted = ((IMAGES[:, 1:9] / 255 - 0.5) / 0.25).mean(axis=(1, 2)) * 3 + 0.125
    np.testing.assert_allclose(model.logits(IMAGES), wanted, atol=1e-5)  # float32 pixels
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
    rows = (IMAGES / np.float32(255)).reshape(6, -1)
    np.testing.assert_allclose(
        fitted.logits(IMAGES), python_spec_module.fitted.decision_function(rows), rtol=1e-6
    )
    changed = as_model(f"{module}:fitted?std=0.5").preprocessing
    assert changed == Preprocessing(std=(0.5,) * 3, layout="nhwc")


def test_a_torch_module_is_taken_with_its_preprocessing(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    (tmp_path / "python_spec_net.py").write_text(
        "from shiftcal.models import cifar_resnet\n\nnet = cifar_resnet(20)\n"
    )
    monkeypatch.chdir(tmp_path)
    model = as_model("python:python_spec_net:net?resize=32&key=net-v1")
    sys.modules.pop("python_spec_net")
    assert type(model).__name__ == "TorchModel"
    assert (model.preprocessing.resize, model.preprocessing.mean[0]) == (32, 0.485)
