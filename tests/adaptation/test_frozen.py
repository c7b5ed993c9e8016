"""Frozen features: computed once, whatever gives them, and read row by row."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from two_domains import Counting, colour_features, colour_model, domains, drawn, write_domain

from shiftcal import corrupt
from shiftcal.adaptation.frozen import Frozen, frozen_features
from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.models import as_model

N = 24


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


def test_logits_that_nobody_asks_for_take_no_room(tmp_path, images):
    def wide(batch):
        return np.tile(colour_features(batch)[0], 300), colour_features(batch)[1]

    frozen = frozen_features(colour_model(wide), images, tmp_path / "f", severities=())
    size = (tmp_path / "f" / "clean.npz").stat().st_size
    assert size < N * 6 * 4 + N * 2 * 4 + N * 8 + 2_000
    np.testing.assert_array_equal(frozen.features(), colour_features(drawn(N, seed=5)[0])[1])


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
    with pytest.raises(InputError, match="was not asked for any"):
        frozen_features(str(tmp_path / "net.onnx"), images, tmp_path / "f")
    plain = as_model(lambda batch: colour_features(batch)[0], raw=True, key="plain")
    with pytest.raises(InputError, match="gives none beside its logits"):
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
    with pytest.raises(FileError, match=r"clean\.npz could not be read: .* Make it again"):
        frozen.features()
