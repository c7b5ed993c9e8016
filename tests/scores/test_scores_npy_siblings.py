"""Siblings of a .npy file that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.errors import FileError
from shiftcal.scores import read_scores


def test_two_spellings_of_one_part_are_refused(tmp_path):
    np.save(tmp_path / "x_logits.npy", np.array([[1.0, -2.0]]))
    np.save(tmp_path / "x_labels.npy", np.array([0]))
    np.save(tmp_path / "x_label.npy", np.array([1]))
    with pytest.raises(FileError, match=r"both x_labels\.npy and x_label\.npy .* only one can"):
        read_scores(tmp_path / "x_logits.npy")
