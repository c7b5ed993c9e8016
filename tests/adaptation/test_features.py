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
from shiftcal.adaptation.features import (
    FeatureModel,
    Frozen,
    as_feature_model,
    frozen_features,
)
from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.models import TorchModel, as_model

N = 24
IMAGES = drawn(5, size=20)[0]


@pytest.fixture(scope="module")
def images():
    return as_image_set(drawn(N, seed=5)[0])


def test_features_are_the_models_own_clean_and_corrupted(tmp_path, images):
    frozen = frozen_features(colour_model(), images, tmp_path / "f", severities=(1, 3))
    pixels = drawn(N, seed=5)[0]
    for which, expected in (
        ("clean", pixels),
        (0, pixels),
        (1, corrupt(pixels, "pixelate", severity=1)),
        (3, corrupt(pixels, "pixelate", severity=3)),
    ):
        np.testing.assert_array_equal(frozen.features(which), colour_features(expected)[1])
    assert (len(frozen), frozen.n_features, frozen.corruption) == (N, 6, "pixelate")
    assert len({frozen.key(which) for which in ("clean", 1, 3)}) == 3


def test_what_is_there_is_not_computed_again(tmp_path, images):
    counting = Counting()
    frozen_features(colour_model(counting), images, tmp_path / "f", severities=())
    assert counting.seen == N
    frozen_features(colour_model(counting), images, tmp_path / "f", severities=(2,))
    assert counting.seen == 2 * N
    frozen_features(colour_model(counting), images, tmp_path / "f", severities=(2,))
    assert counting.seen == 2 * N


def test_labels_do_not_count(tmp_path):
    counting = Counting()
    source, _ = domains(N)
    frozen_features(colour_model(counting), source, tmp_path / "f", severities=())
    frozen_features(colour_model(counting), source.relabelled(None), tmp_path / "f", severities=())
    assert counting.seen == N


def test_one_array_is_left_on_disk_and_travels_to_other_processes(tmp_path, images):
    frozen = frozen_features(colour_model(), images, tmp_path / "f", severities=())
    assert isinstance(frozen.features(), np.memmap)
    other = pickle.loads(pickle.dumps(frozen))
    np.testing.assert_array_equal(other.features(), frozen.features())
    opened = Frozen.open(tmp_path / "f")
    assert opened.identity == frozen.identity


def test_the_identity_names_model_and_images(tmp_path, images):
    first = frozen_features(colour_model(), images, tmp_path / "a", severities=()).identity
    model = colour_model(key="colours-v2")
    second = frozen_features(model, images, tmp_path / "b", severities=()).identity
    third = frozen_features(colour_model(), domains(N)[0], tmp_path / "c", severities=()).identity
    assert first["fingerprint"] != second["fingerprint"]
    assert first["images"] == second["images"] != third["images"]


def test_an_onnx_file_with_features_is_a_backbone(tmp_path, images):
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    text = f"{tmp_path / 'net.onnx'}?features_from=x"
    frozen = frozen_features(text, images, tmp_path / "f", severities=())
    expected = drawn(N, seed=5)[0].mean(axis=(1, 2), dtype=np.float64) / 255
    np.testing.assert_allclose(frozen.features(), expected, rtol=1e-5)  # sums in float32


def test_another_model_is_refused_in_the_same_folder(tmp_path, images):
    frozen_features(colour_model(), images, tmp_path / "f", severities=())
    with pytest.raises(FileError, match="holds a bank with the model"):
        frozen_features(colour_model(key="v2"), images, tmp_path / "f", severities=())


def test_a_model_without_features_is_refused(tmp_path, images):
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    with pytest.raises(InputError, match="must give features"):
        frozen_features(str(tmp_path / "net.onnx"), images, tmp_path / "f")
    plain = as_model(lambda batch: colour_features(batch)[0], raw=True, key="plain")
    with pytest.raises(InputError, match="must give features"):
        frozen_features(plain, images, tmp_path / "f")


def test_severities_that_are_not_there_are_told(tmp_path, images):
    frozen = frozen_features(colour_model(), images, tmp_path / "f", severities=(1,))
    with pytest.raises(FileError, match="no features of pixelate at severity 4"):
        frozen.features(4)
    with pytest.raises(FileError, match="is not a bank folder"):
        Frozen.open(tmp_path)


@pytest.mark.filterwarnings("ignore:left out")
def test_an_image_that_cannot_be_read_is_an_error_that_names_it(tmp_path):
    write_domain(tmp_path / "images", *drawn(9))
    (tmp_path / "images" / "bee" / "001.png").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"must be readable to be trained on; 1 .*bee/001\.png"):
        frozen_features(colour_model(), tmp_path / "images", tmp_path / "f", severities=())


def test_a_damaged_file_is_told(tmp_path, images):
    frozen = frozen_features(colour_model(), images, tmp_path / "f", severities=())
    (tmp_path / "f" / "clean.npz").write_bytes(b"PK nothing")
    with pytest.raises(FileError, match=r"clean\.npz could not be read"):
        frozen.features()


def features_of(module):
    """Features of the images, layer by layer."""
    x = torch.from_numpy(module.preprocessing.apply(IMAGES))
    with torch.inference_mode():
        return module.eval().layers(x).mean(dim=(2, 3)).numpy()


def test_a_model_that_gives_features_is_one():
    model = as_feature_model(colour_model())
    made = model.outputs(IMAGES)
    np.testing.assert_array_equal(made.features, colour_features(IMAGES)[1])
    assert made.logits.shape == (5, 2)
    assert as_feature_model(model) is model


def test_a_module_gives_what_it_returns_averaged_over_positions():
    made = as_feature_model(one_layer()).outputs(IMAGES)
    np.testing.assert_allclose(made.features, features_of(one_layer()), rtol=1e-5, atol=1e-6)


def test_a_classifier_is_taken_without_its_last_layer_or_up_to_one_that_is_named():
    body = one_layer()
    whole = torch.nn.Sequential(
        body, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4)
    )
    whole.preprocessing = body.preprocessing
    for model in (TorchModel(whole), TorchModel(whole, features_from="0")):
        made = as_feature_model(model).outputs(IMAGES)
        np.testing.assert_allclose(made.features, features_of(one_layer()), rtol=1e-5, atol=1e-6)


def test_options_and_identity_are_those_of_the_model():
    inner = colour_model(batch_size=3)
    model = FeatureModel(inner)
    assert (model.batch_size, model.engine) == (3, inner.engine)
    assert model.preprocessing == inner.preprocessing
    assert model.fingerprint not in (None, inner.fingerprint)
    assert model.fingerprint != FeatureModel(colour_model(key="v2")).fingerprint
    assert FeatureModel(as_model(colour_features, raw=True)).fingerprint is None
    assert as_feature_model(one_layer()).fingerprint == as_feature_model(one_layer()).fingerprint
    assert as_feature_model(one_layer()).fingerprint != as_feature_model(one_layer(4)).fingerprint
