"""Features in a file of their own."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.errors import FileError
from shiftcal.scores import Scores, read_features, write_scores

F = np.arange(12.0).reshape(4, 3)
Z = np.array([[1.0, -2.0]] * 4)


def test_an_npz_needs_hold_nothing_else(tmp_path):
    np.savez(tmp_path / "train.npz", features=F)
    np.testing.assert_array_equal(read_features(tmp_path / "train.npz"), F)


@pytest.mark.parametrize("name", ["train_features.npy", "train_feature.npy", "features.npy"])
def test_a_npy_named_so_is_the_array(tmp_path, name):
    np.save(tmp_path / name, F)
    np.testing.assert_array_equal(read_features(tmp_path / name), F)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".safetensors"])
def test_a_scores_file_gives_its_features(tmp_path, suffix):
    path = tmp_path / f"train{suffix}"
    write_scores(path, Scores(Z, "logits", features=F))
    np.testing.assert_array_equal(read_features(path), F)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"logits": Z}, "has no features"),
        ({"features": F[0]}, r"train\.npz: features must have shape \(n, d\)"),
        ({"features": np.where(F == 7, np.nan, F)}, "row 2 holds nan"),
        ({"features": np.array([["a"]])}, "must be real numbers"),
    ],
)
def test_what_is_not_features_is_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "train.npz", **arrays)
    with pytest.raises(FileError, match=words):
        read_features(tmp_path / "train.npz")


def test_pickled_and_truncated_files_are_refused(tmp_path):
    path = tmp_path / "train.npz"
    np.savez(path, features=np.array([{"a": 1}], dtype=object))
    with pytest.raises(FileError, match="pickled"):
        read_features(path)
    np.savez(path, features=F)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match="could not be read"):
        read_features(path)
