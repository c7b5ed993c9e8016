"""What is said of a path before anything in the file is read."""

from __future__ import annotations

import os

import numpy as np
import pytest

from shiftcal.errors import FileError
from shiftcal.scores import read_scores


def test_a_missing_file_is_said_with_the_nearest_name(tmp_path):
    np.savez(tmp_path / "target.npz", logits=np.zeros((1, 2)))
    with pytest.raises(FileError, match=r"targte.npz does not exist. Did you mean 'target.npz'"):
        read_scores(tmp_path / "targte.npz")
    with pytest.raises(FileError, match=r"other.csv does not exist. Check the path"):
        read_scores(tmp_path / "other.csv")


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "bank.npz").mkdir()
    with pytest.raises(FileError, match=r"bank.npz is a folder; name one scores file in it"):
        read_scores(tmp_path / "bank.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(FileError, match="is not a regular file; save the scores to a file"):
        read_scores(tmp_path / "x.npz")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet", ".safetensors"])
def test_an_empty_file_is_refused(tmp_path, suffix):
    (tmp_path / f"x{suffix}").touch()
    with pytest.raises(FileError, match=f"x{suffix} is empty; write it again"):
        read_scores(tmp_path / f"x{suffix}")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("x.parq", "Did you mean '.parquet'"),
        ("x.safetensor", "Did you mean '.safetensors'"),
        ("x.pt", "There are: .npz, .npy, .csv, .parquet, .safetensors"),
        ("x", "There are"),
    ],
)
def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path, name, hint):
    (tmp_path / name).write_bytes(b"1")
    with pytest.raises(FileError, match=rf"{name} must end in the suffix of its format.*{hint}"):
        read_scores(tmp_path / name)
