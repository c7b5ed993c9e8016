"""Features alone, such as those of the training samples, whose scores nobody needs."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal._checks import check_features
from shiftcal._types import Floats
from shiftcal.errors import FileError, InputError
from shiftcal.scores import npy, npz
from shiftcal.scores._opening import find
from shiftcal.scores._read import read_scores


def read_features(path: str | os.PathLike[str]) -> Floats:
    """The features ``(n, d)`` in a file.

    A ``.npy`` file whose name ends in ``features`` or ``feature`` is one array of them; an
    ``.npz`` file holds them under ``features`` and need hold nothing else; any other file is a
    scores file that has features.

    Raises:
        FileError: If the file cannot be read, or has no features that can be used.
    """
    file = find(path)
    features = _features_in(file)
    if features is None:
        raise FileError(
            f"{file} has no features. Save them under the name 'features', as an array (n, d)."
        )
    try:
        return check_features(features, name="features")
    except InputError as error:
        raise FileError(f"{file}: {error}") from error


def _features_in(file: Path) -> Floats | None:
    if file.suffix.lower() == ".npz":
        return npz.read_member(file, "features")
    if file.suffix.lower() == ".npy" and npy.holds_features(file):
        return npy.read_array(file)
    return read_scores(file).features
