"""A real network, two cameras of which one is noisy: one choice for each is better than one."""

from __future__ import annotations

import numpy as np
import pytest
from cifar_net import cifar_images

import shiftcal as sc
from shiftcal.grouping import GroupedCalibration

CALIBRATION, TARGET = 500, 400


@pytest.fixture(scope="module")
def network(shared_data):
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from onnx_resnet import resnet20_onnx

    (weights,) = (shared_data / "cifar10-resnet-weights").glob("resnet20*.th")
    made = sc.models.as_model(sc.models.cifar_resnet(20, weights=weights))
    state = {name: value.numpy() for name, value in made.module.state_dict().items()}
    return sc.models.as_model(resnet20_onnx(state), preprocessing=made.preprocessing)


@pytest.mark.slow
def test_two_corruptions_of_real_images_are_better_calibrated_by_group(
    shared_data, network, tmp_path
):
    images, labels = cifar_images(shared_data, CALIBRATION + TARGET)
    bank = sc.SurrogateBank.synthesize(
        network,
        images[:CALIBRATION],
        labels[:CALIBRATION],
        corruption="pixelate",
        out=tmp_path / "bank",
    )
    method = sc.SAC().fit(bank)
    seen = images[CALIBRATION:]
    parts = [
        sc.score(network, sc.corrupt(seen, corruption, severity=severity)).logits()
        for corruption, severity in (("brightness", 1), ("gaussian_noise", 5))
    ]
    z, y = np.concatenate(parts), np.tile(labels[CALIBRATION:], 2)
    groups = np.repeat(["bright", "noisy"], TARGET)
    right = z.argmax(axis=1) == y
    method.adapt(z)
    grouped = GroupedCalibration(method)
    grouped.adapt(z, groups)
    one, each = (
        np.mean([sc.ece(c[groups == g], right[groups == g]) for g in ("bright", "noisy")])
        for c in (method.confidence(z), grouped.confidence(z, groups))
    )
    assert each < one
