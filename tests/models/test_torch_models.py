"""PyTorch modules, TorchScript files and the CIFAR ResNets."""

from __future__ import annotations

import pickle
import zipfile

import numpy as np
import pytest
import torch
from cifar_net import cifar_images, resnet20
from torch import nn

from shiftcal.errors import FileError, InputError
from shiftcal.models import TorchModel, TorchScriptModel, as_model, cifar_resnet

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


@pytest.mark.parametrize("channels_last", [False, True])
def test_logits_are_those_of_the_module(small, channels_last):
    model = as_model(small, channels_last=channels_last, batch_size=5)
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


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:FutureWarning")
def test_a_torchscript_file_gives_what_the_module_gives(small, tmp_path):
    path = tmp_path / "net.pt"
    torch.jit.save(torch.jit.script(small), path)
    model = as_model(path, batch_size=5)
    assert isinstance(model, TorchScriptModel)
    np.testing.assert_allclose(model.logits(IMAGES), by_hand(small, IMAGES), atol=1e-5)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileError, match=r"net.pt"):
        as_model(path)


class Trap:
    """Unpickling this leaves a mark."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (str(self.mark), "w"))


def traps(tmp_path):
    mark = tmp_path / "mark"
    bare, saved, forged = (tmp_path / f"{name}.pt" for name in ("bare", "saved", "forged"))
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
        with pytest.raises(FileError, match=rf"{file.name}"):
            as_model(file)
        with pytest.raises(FileError, match="holds more than tensors, which is never loaded"):
            cifar_resnet(20, weights=file)
    assert not mark.exists()
    pickle.loads(files[0].read_bytes()).close()
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
