"""Miniature copies of ImageNet and its relatives in the layouts they are published in."""

from __future__ import annotations

import json

import numpy as np
from PIL import Image

# 1,000 made-up wnids; the one at place i is n1000000i with steps of seven.
WNIDS = [f"n{10_000_000 + 7 * i:08d}" for i in range(1000)]


def write_image(file, value):
    """A grey JPEG of 16 x 16 pixels whose value says which one it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), value, np.uint8)).save(file, "JPEG", quality=95)


def write_class_index(file):
    """imagenet_class_index.json."""
    file.write_text(json.dumps({str(i): [wnid, f"name {i}"] for i, wnid in enumerate(WNIDS)}))
