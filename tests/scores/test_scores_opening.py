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


def test_a_suffix_in_common_does_not_make_names_alike(tmp_path):
    for name in ("et.npz", "one.npz"):
        (tmp_path / name).touch()
    with pytest.raises(FileError, match=r"nope.npz does not exist. Check the path"):
        read_scores(tmp_path / "nope.npz")


def test_of_names_that_are_alike_the_one_of_the_same_format_is_meant(tmp_path):
    for name in ("target.npz", "target.csv", "target.parquet"):
        (tmp_path / name).touch()
    with pytest.raises(FileError, match=r"Did you mean 'target.csv'"):
        read_scores(tmp_path / "targte.csv")
    with pytest.raises(FileError, match=r"Did you mean 'target.(npz|csv|parquet)'"):
        read_scores(tmp_path / "target.safetensors")


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(FileError, match=r"does not exist. Nor can its folder .*no be listed"):
        read_scores(tmp_path / "no" / "target.npz")


def test_a_file_taken_for_a_folder_is_said(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"1")
    with pytest.raises(FileError, match="does not exist"):
        read_scores(tmp_path / "x.npz" / "y.npz")


@pytest.mark.parametrize("name", ["x" * 5000 + ".npz", "a\0b.npz"])
def test_a_name_no_file_can_have_is_said(tmp_path, name):
    with pytest.raises(FileError, match=r"cannot be opened: (File name too long|embedded null)"):
        read_scores(tmp_path / name)


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


def test_a_table_with_tabs_is_told_to_have_commas(tmp_path):
    (tmp_path / "x.tsv").write_text("logit_0\tlogit_1\n1\t2\n")
    with pytest.raises(FileError, match=r"x.tsv must be separated by commas.*commas, as .csv"):
        read_scores(tmp_path / "x.tsv")


def test_a_file_that_may_not_be_read_is_said(tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", logits=np.zeros((1, 2)))

    def forbidden(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    with pytest.raises(FileError, match=r"x.npz may not be read: Permission denied"):
        read_scores(tmp_path / "x.npz")
