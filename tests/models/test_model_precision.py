"""Reduced precision, and how often two models agree."""

from __future__ import annotations

import numpy as np
import pytest
from cifar_net import cifar_images
from onnx_resnet import resnet20_onnx

from shiftcal.errors import InputError
from shiftcal.models import agreement, as_model, cifar_resnet


@pytest.mark.slow
def test_bfloat16_agrees_with_float32_on_the_published_resnet20(shared_data):
    file = shared_data / "cifar10-resnet-weights" / "resnet20-12fca82f.th"
    network = cifar_resnet(20, weights=file)
    images, _ = cifar_images(shared_data, 20)
    reduced = as_model(network, precision="bfloat16")
    assert agreement(network, reduced, images) >= 0.9
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
