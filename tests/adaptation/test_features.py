"""Frozen backbones and their features: computed once, and read row by row."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from one_layer import one_layer
from onnx_resnet import mean_colour_onnx
from two_domains import Counting, colour_features, colour_model, domains, drawn, write_domain

from shiftcal import corrupt
from shiftcal.adaptation import Frozen, frozen_features
from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.models import TorchModel

N = 24
PIXELS = drawn(N, seed=5)[0]
IMAGES = as_image_set(PIXELS)


def test_features_are_the_models_own_clean_and_corrupted(tmp_path):
    frozen = frozen_features(colour_model(), IMAGES, tmp_path / "f", severities=(1, 3))
    for severity in (0, 1, 3):
        pixels = corrupt(PIXELS, "pixelate", severity=severity) if severity else PIXELS
        np.testing.assert_array_equal(frozen.features(severity), colour_features(pixels)[1])
    assert frozen.corruption == "pixelate"
    assert isinstance(frozen.features(), np.memmap)
    other = pickle.loads(pickle.dumps(frozen))
    np.testing.assert_array_equal(other.features(), frozen.features())
    assert Frozen.open(tmp_path / "f").identity == frozen.identity


def test_what_is_there_is_not_computed_again_and_labels_do_not_count(tmp_path):
    counting, (source, _) = Counting(), domains(N)
    for images, severities, seen in (
        (source, (), N),
        (source.relabelled(None), (2,), 2 * N),
        (source, (2,), 2 * N),
    ):
        frozen_features(colour_model(counting), images, tmp_path / "f", severities=severities)
        assert counting.seen == seen


def whole(**options):
    """A classifier on top of one layer."""
    body = one_layer()
    network = torch.nn.Sequential(
        body, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4)
    )
    network.preprocessing = body.preprocessing
    return TorchModel(network, key="whole", **options)


@pytest.mark.parametrize("backbone", [one_layer(), whole(), whole(features_from="0")])
def test_a_module_gives_what_it_returns_and_a_classifier_what_its_head_takes(tmp_path, backbone):
    module = one_layer().eval()
    with torch.inference_mode():
        expected = module.layers(torch.from_numpy(module.preprocessing.apply(PIXELS)))
    frozen = frozen_features(backbone, IMAGES, tmp_path / "f", severities=())
    np.testing.assert_allclose(frozen.features(), expected.mean((2, 3)), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:left out")
def test_bad_input_raises(tmp_path):
    frozen = frozen_features(colour_model(), IMAGES, tmp_path / "f", severities=(1,))
    with pytest.raises(FileError, match="no features of pixelate at severity 4"):
        frozen.features(4)
    with pytest.raises(FileError, match="is not a bank folder"):
        Frozen.open(tmp_path)
    with pytest.raises(FileError, match="holds a bank with the model"):
        frozen_features(colour_model(key="v2"), IMAGES, tmp_path / "f", severities=())
    (tmp_path / "f" / "clean.npz").write_bytes(b"PK nothing")
    with pytest.raises(FileError, match=r"clean\.npz could not be read"):
        frozen.features()
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    with pytest.raises(InputError, match="must give features"):
        frozen_features(str(tmp_path / "net.onnx"), IMAGES, tmp_path / "f")
    write_domain(tmp_path / "images", *drawn(9))
    (tmp_path / "images" / "bee" / "001.png").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"must be readable to be trained on; bee/001\.png"):
        frozen_features(colour_model(), tmp_path / "images", tmp_path / "g", severities=())
