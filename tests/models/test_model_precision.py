"""Reduced precision, and how often two models agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cifar_net import cifar_images
from onnx_resnet import resnet20_onnx
from torch import nn

from shiftcal.errors import InputError, UnknownName
from shiftcal.models import TorchModel, agreement, as_model, cifar_resnet

IMAGES = np.random.default_rng(29).integers(0, 256, (40, 16, 16, 3), np.uint8)


@pytest.fixture
def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5)).eval()


@pytest.fixture
def undecided(small):
    """All but equal logits, which few digits cannot tell apart."""
    with torch.no_grad():
        small[3].weight.mul_(0.05)
        small[3].bias.copy_(torch.arange(5) * 1e-5 + 1)
    return small


def test_the_agreement_is_that_of_batches_1_2_4_8(undecided):
    model = TorchModel(undecided, precision="bfloat16", min_agreement=0, batch_size=5)
    assert model.agreement is None
    z = model.logits(IMAGES)  # batches 1 to 8
    rows = np.concatenate([np.arange(5 * n - 5, 5 * n) for n in (1, 2, 4, 8)])
    same = z.argmax(axis=1) == TorchModel(undecided).logits(IMAGES).argmax(axis=1)
    assert 0 < np.mean(same[rows]) < 1
    assert model.agreement == pytest.approx(np.mean(same[rows]))


class WorseInTheLight(nn.Module):
    """In few digits it turns its logits round, but for dark images."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        z = x.mean(dim=(2, 3)) * self.scale + torch.tensor([0.0, 1.0, 2.0])
        few = torch.is_autocast_enabled(x.device.type)
        return -z if few and x.mean() > 0.1 else z


def test_what_goes_wrong_after_the_first_batch_is_noticed():
    model = TorchModel(WorseInTheLight(), precision="bfloat16", batch_size=40)
    assert model.logits(np.zeros((120, 16, 16, 3), np.uint8)).shape == (120, 3)
    assert model.agreement == 1
    with pytest.raises(InputError, match=r"it does for 0.6667 of 120"):  # batches 1, 2 and 4
        model.logits(IMAGES)


def test_too_little_agreement_is_an_error_with_both_numbers_every_time(undecided):
    model = TorchModel(undecided, precision="bfloat16")
    for _ in range(3):
        with pytest.raises(
            InputError,
            match=r"images 0 to 39.*in bfloat16 .* least 0.99 .* it does for 0.\d+ of (40|80|120)",
        ):
            model.logits(IMAGES)
        assert model.agreement < 0.99
    assert TorchModel(undecided, precision="bfloat16", min_agreement=0).logits(IMAGES).shape


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"precision": "float8"}, UnknownName, "precision must be one of"),
        ({"precision": "float16", "min_agreement": 2}, InputError, "min_agreement .* at most 1"),
        ({"min_agreement": -0.1}, InputError, "min_agreement must be a number of at least 0"),
    ],
)
def test_wrong_precisions_are_refused(small, options, error, message):
    with pytest.raises(error, match=message):
        TorchModel(small, **options)


@pytest.mark.slow
def test_bfloat16_agrees_with_float32_on_the_published_resnet20(shared_data):
    file = shared_data / "cifar10-resnet-weights" / "resnet20-12fca82f.th"
    network = cifar_resnet(20, weights=file)
    images, _ = cifar_images(shared_data, 20)
    reduced = as_model(network, precision="bfloat16", min_agreement=0.9, batch_size=20)
    assert agreement(network, reduced, images) == pytest.approx(reduced.agreement)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    exported = as_model(resnet20_onnx(weights), preprocessing=network.preprocessing)
    assert agreement(exported, network, images) == 1


def test_agreement_counts_equal_classes():
    images = np.zeros((4, 8, 8, 3), np.uint8)
    images[:3, ..., 0] = 255
    red = as_model(lambda b: b[:, :2, 0, 0] * 9 - 4)
    assert agreement(red, lambda b: np.tile([3.0, 1.0], (len(b), 1)), images) == 1.0
    assert agreement(red, lambda b: np.tile([1.0, 3.0], (len(b), 1)), images) == 0.0
    assert agreement(red, lambda b: 4 - b[:, :2, 0, 0] * 9, images) == 0.25
    with pytest.raises(InputError, match="same classes; got 2 and 3"):
        agreement(red, lambda b: b[:, :, 0, 0] * 9 - 4, images)
