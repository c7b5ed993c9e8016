"""``meta.mat`` of ImageNet's development kit: which class its numbers stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.errors import FileError

# The real one has less than 2 MB; a compressed one that is larger is meant to fill memory.
_MOST_BYTES = 1 << 24


def read_meta(file: Path) -> dict[int, str]:
    """The wnid of every ``ILSVRC2012_ID`` that is a class, a synset without children.

    Raises:
        FileError: If it is damaged, or not that file.
    """
    if file.stat().st_size > _MOST_BYTES:
        raise FileError(f"{file} is larger than any meta.mat of ImageNet.")
    from scipy.io import loadmat

    try:
        rows: Any = np.atleast_1d(loadmat(file, squeeze_me=True)["synsets"])
        return {
            int(row["ILSVRC2012_ID"]): str(row["WNID"])
            for row in rows
            if int(row["num_children"]) == 0
        }
    except Exception as error:  # a damaged file raises anything
        reason = " ".join(str(error).split())[:200]
        raise FileError(
            f"{file} could not be read as the meta.mat of ImageNet's development kit ({reason}). "
            "Unpack ILSVRC2012_devkit_t12.tar.gz again."
        ) from error
