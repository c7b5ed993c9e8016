"""Features beside logits: of a layer, of an output, of a function."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx_resnet import resnet20_onnx
from torch import nn

from shiftcal.errors import InputError
from shiftcal.models import OnnxModel, TorchModel, as_model, cifar_resnet

IMAGES = np.random.default_rng(23).integers(0, 256, (9, 32, 32, 3), np.uint8)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(4)
    return cifar_resnet(20)


@pytest.fixture(scope="module")
def file(network):
    return resnet20_onnx({name: value.numpy() for name, value in network.state_dict().items()})


def last_maps(network, images):
    """What enters the pooling of the ResNet, computed without hooks."""
    x = torch.from_numpy(network.preprocessing.apply(images))
    with torch.no_grad():
        x = torch.relu(network.bn1(network.conv1(x)))
        return network.layer3(network.layer2(network.layer1(x))).numpy()


def test_features_of_a_layer_are_its_mean_over_positions(network):
    model = as_model(network, features_from="layer3", batch_size=4)
    made = model.outputs(IMAGES)
    wanted = last_maps(network, IMAGES).mean(axis=(2, 3))
    assert made.features.shape == (9, 64)
    np.testing.assert_allclose(made.features, wanted, atol=1e-5)
    np.testing.assert_array_equal(made.logits, as_model(network, batch_size=4).logits(IMAGES))
    assert as_model(network).outputs(IMAGES).features is None


def test_hooks_are_gone_afterwards_also_when_the_module_raises(network):
    hooks = network.layer2._forward_hooks
    as_model(network, features_from="layer2").outputs(IMAGES)
    assert not hooks

    class Interrupted(nn.Module):
        def __init__(self, error):
            super().__init__()
            self.inner, self.error = nn.Flatten(), error

        def forward(self, x):
            self.inner(x)
            raise self.error

    for error, seen in [(ZeroDivisionError("no"), InputError), (KeyboardInterrupt(), None)]:
        broken = Interrupted(error)
        with pytest.raises(seen or KeyboardInterrupt):
            TorchModel(broken, features_from="inner", batch_size=4).outputs(IMAGES)
        assert not broken.inner._forward_hooks


def test_a_layer_that_does_not_run_or_gives_other_shapes_is_refused():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.idle, self.rows = nn.Linear(3, 3), nn.Flatten(start_dim=2)

        def forward(self, x):
            return self.rows(x).mean(dim=2)

    with pytest.raises(InputError, match=r"images 0 to 8.*layer that runs; 'idle' did not"):
        TorchModel(Idle(), features_from="idle").outputs(IMAGES)
    with pytest.raises(InputError, match=r"'rows' has shape \(9, 3, 1024\). Name another layer"):
        TorchModel(Idle(), features_from="rows").outputs(IMAGES)
    with pytest.raises(InputError, match="Did you mean 'rows'"):
        TorchModel(Idle(), features_from="row")


@pytest.mark.parametrize("batch", ["n", 4])
def test_a_tensor_inside_an_onnx_file_gives_what_the_layer_gives(network, batch):
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    file = resnet20_onnx(weights, batch=batch)
    pooled = next(name for name in names_of(file) if name.startswith("GlobalAveragePool"))
    before = names_of(file)[names_of(file).index(pooled) - 1]
    wanted = last_maps(network, IMAGES).mean(axis=(2, 3))
    for name in (pooled, before):
        model = OnnxModel(file, features_from=name, preprocessing=network.preprocessing)
        made = model.outputs(IMAGES)
        np.testing.assert_allclose(made.features, wanted, atol=1e-4)
        np.testing.assert_allclose(made.logits, as_model(network).logits(IMAGES), atol=1e-4)


def names_of(file):
    import onnx

    return [o for node in onnx.load_model_from_string(file).graph.node for o in node.output]
