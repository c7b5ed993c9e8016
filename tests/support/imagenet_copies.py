"""Miniature copies of ImageNet and its relatives in the layouts they are published in."""

from __future__ import annotations

import functools
import io
import json

import numpy as np
from PIL import Image
from scipy.io import savemat

# 1,000 made-up wnids; the one at place i is n1000000i with steps of seven.
WNIDS = [f"n{10_000_000 + 7 * i:08d}" for i in range(1000)]


def write_image(file, value):
    """A grey JPEG of 16 x 16 pixels whose value says which one it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), value, np.uint8)).save(file, "JPEG", quality=95)


def write_class_index(file):
    """imagenet_class_index.json."""
    file.write_text(json.dumps({str(i): [wnid, f"name {i}"] for i, wnid in enumerate(WNIDS)}))


def write_meta(file, order):
    """meta.mat: ILSVRC2012_ID i is the wnid order[i - 1]; three synsets with children follow."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_meta(tuple(order)))


@functools.cache
def _meta(order):
    """The structure is the official one: a column of structs with these eight fields."""
    fields = ["ILSVRC2012_ID", "WNID", "words", "gloss"]
    fields += ["num_children", "children", "wordnet_height", "num_train_images"]
    rows = [
        (i, wnid, f"words {i}", f"gloss {i}", 0, np.zeros((0, 0)), 0, 1300)
        for i, wnid in enumerate(order, start=1)
    ]
    rows += [
        (1001 + i, f"n0000000{i}", "parent", "a parent", 2, np.array([[1.0, 2.0]]), 1, 0)
        for i in range(3)
    ]
    synsets = np.empty((len(rows), 1), [(name, object) for name in fields])
    for i, row in enumerate(rows):
        synsets[i, 0] = row
    out = io.BytesIO()
    savemat(out, {"synsets": synsets}, do_compression=True)
    return out.getvalue()
