"""Small image files in the layout of a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def write_pictures(root: Path, paths: list[str], *, height: int = 10, width: int = 12) -> Path:
    """One picture at each path below ``root``; the ``i``-th is evenly grey, ``10 * i``."""
    for i, path in enumerate(paths):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((height, width, 3), 10 * i, np.uint8)).save(file)
    return root
