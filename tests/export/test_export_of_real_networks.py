"""Real networks and classifiers, taken out and compared with shiftcal."""

from __future__ import annotations

import copy

import numpy as np
import onnxruntime
import pytest
import torch
from cifar_net import cifar_images, resnet20_module
from onnx_resnet import resnet20_onnx
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from shiftcal import SurrogateBank, corrupt, ece, methods
from shiftcal.export import CalibratedClassifier, CalibratedModule, to_onnx
from shiftcal.models import as_model, cifar_resnet

N = 200


@pytest.fixture(scope="module")
def resnet(shared_data):
    return cifar_resnet(20, weights=shared_data / "cifar10-resnet-weights" / "resnet20-12fca82f.th")


@pytest.fixture(scope="module")
def experiment(shared_data, resnet):
    """SAC adapted to contrast 4, the preprocessed target images and their labels."""
    images, labels = cifar_images(shared_data, 2 * N)
    model = as_model(resnet, batch_size=200)
    harder = [corrupt(images[:N], "contrast", severity=s, seed=0) for s in (3, 4, 5)]
    ladder = [images[:N], *harder]
    bank = SurrogateBank.from_arrays([model.logits(one) for one in ladder], labels[:N])
    target = corrupt(images[N:], "contrast", severity=4, seed=1)
    method = methods.get("sac")().fit(bank)
    method.adapt(model.logits(target))
    return method, resnet.preprocessing.apply(target), labels[N:]


def test_a_resnet_in_onnx_tells_the_confidences_of_sac(resnet, experiment, tmp_path):
    method, pixels, labels = experiment
    weights = {name: value.numpy() for name, value in resnet.state_dict().items()}
    (tmp_path / "resnet.onnx").write_bytes(resnet20_onnx(weights))
    made = to_onnx(method, tmp_path / "resnet.onnx", tmp_path / "out.onnx", check=pixels[:32])
    assert method.selection_.index > 0
    assert made.temperature == method.selection_.temperature > 1
    session = onnxruntime.InferenceSession(str(made.path))
    parts = [session.run(None, {"images": part}) for part in np.array_split(pixels, 4)]
    logits, probs, confidence = (np.concatenate(one) for one in zip(*parts, strict=True))
    wanted = method.predict_proba(logits)
    np.testing.assert_allclose(probs, wanted, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(probs.argmax(axis=1), logits.argmax(axis=1))
    right = logits.argmax(axis=1) == labels
    raw = torch.softmax(torch.from_numpy(logits), 1).amax(1).numpy()
    assert ece(confidence, right) < ece(raw, right)  # how much less is SAC's matter, not ours


def test_a_resnet_in_torch_tells_the_confidences_of_sac(shared_data, experiment):
    method, pixels, _ = experiment
    network = resnet20_module(shared_data)
    module = CalibratedModule(network, method).eval()
    x = torch.from_numpy(pixels[:16])
    with torch.inference_mode():
        found = module(x).numpy()
        wanted = method.predict_proba(network(x).numpy())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


class Network(ClassifierMixin, BaseEstimator):
    """A network that was trained elsewhere, as scikit-learn has classifiers."""

    classes_ = np.array([f"class {c}" for c in range(10)])

    def __init__(self, network):
        self.network = network

    def decision_function(self, X):
        with torch.inference_mode():
            return self.network(torch.from_numpy(X)).numpy()


def test_a_resnet_in_scikit_learn_tells_the_confidences_of_sac(shared_data, experiment):
    method, pixels, labels = experiment
    network = Network(resnet20_module(shared_data).eval())
    made = CalibratedClassifier(network, method)
    again = clone(made)
    logits = network.decision_function(pixels)
    wanted = method.predict_proba(logits)
    for one in (made, again):
        np.testing.assert_allclose(one.predict_proba(pixels), wanted, rtol=0, atol=1e-6)
        assert one.score(pixels, network.classes_[labels]) == (logits.argmax(1) == labels).mean()
    chosen = again.adapt(pixels[::2])
    other = copy.deepcopy(method)
    assert chosen.temperature == other.adapt(logits[::2]).temperature
