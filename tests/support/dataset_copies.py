"""Small copies of data sets in the formats that they are published in."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

NAMES = ["airplane", "automobile", "bird", "cat", "deer"]
NAMES += ["dog", "frog", "horse", "ship", "truck"]


def drawn(n, seed):
    """Images (n, 32, 32, 3) of noise."""
    return np.random.default_rng(seed).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def as_rows(images):
    """Red, then green, then blue values of every image: (n, 3072)."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)


class _Python2(pickle._Pickler):
    """Writes bytes the way Python 2 wrote its text, as the official batches have it."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def _save_text(self, text):
        if len(text) < 256:
            self.write(pickle.SHORT_BINSTRING + bytes([len(text)]) + text)
        else:
            self.write(pickle.BINSTRING + struct.pack("<i", len(text)) + text)
        self.memoize(text)

    dispatch[bytes] = _save_text


def python2_pickle(thing):
    """Protocol 2, with the module names of numpy of that time."""
    out = io.BytesIO()
    _Python2(out, 2).dump(thing)
    return out.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def batch_dict(images, labels, title=b"testing batch 1 of 1"):
    """What a python batch holds."""
    return {
        b"batch_label": title,
        b"labels": list(labels),
        b"data": as_rows(images),
        b"filenames": [b"picture_s_%06d.png" % i for i in range(len(images))],
    }


def write_python_batches(folder, test, train=()):
    """test_batch of (images, labels), data_batch_1 ... of more such pairs, and batches.meta."""
    folder.mkdir(parents=True)
    (folder / "test_batch").write_bytes(python2_pickle(batch_dict(*test)))
    for i, pair in enumerate(train, start=1):
        (folder / f"data_batch_{i}").write_bytes(python2_pickle(batch_dict(*pair)))
    meta = {
        b"num_cases_per_batch": 10000,
        b"label_names": [name.encode() for name in NAMES],
        b"num_vis": 3072,
    }
    (folder / "batches.meta").write_bytes(python2_pickle(meta))


def publish(monkeypatch, folder):
    """Let the batches below a folder be the published ones."""
    from shiftcal.datasets.catalog.cifar import BATCHES

    for file in folder.rglob("*_batch*"):
        digest = hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()
        monkeypatch.setitem(BATCHES, file.name, digest)


# 1,000 made-up wnids; the one at place i is n1000000i with steps of seven.
WNIDS = [f"n{10_000_000 + 7 * i:08d}" for i in range(1000)]


def write_image(file, value):
    """A grey JPEG of 16 x 16 pixels whose value says which one it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), value, np.uint8)).save(file, "JPEG", quality=95)


def write_class_index(file):
    """imagenet_class_index.json."""
    file.write_text(json.dumps({str(i): [wnid, f"name {i}"] for i, wnid in enumerate(WNIDS)}))


def write_pictures(root: Path, paths: list[str], *, height: int = 10, width: int = 12) -> Path:
    """One picture at each path below ``root``; the ``i``-th is evenly grey, ``10 * i``."""
    for i, path in enumerate(paths):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((height, width, 3), 10 * i % 256, np.uint8)).save(file)
    return root
