"""Small sets of images in the layouts that others write, made without the code under test."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image


def draw_images(n, height=11, width=9, *, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def encode(image, kind="PNG"):
    held = io.BytesIO()
    Image.fromarray(image).save(held, kind)
    return held.getvalue()


def write_images(folder, images, names):
    """Lossless files, so that what is read can be compared pixel by pixel."""
    for image, name in zip(images, names, strict=True):
        file = Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encode(image))


def write_tar(path, members):
    """``members`` are (name, bytes) or ready TarInfo objects without data."""
    with tarfile.open(path, "w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            name, data = member
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def features(names):
    label = {"_type": "Value", "dtype": "int64"}
    if names is not None:
        label = {"names": list(names), "_type": "ClassLabel"}
    return {"image": {"_type": "Image"}, "label": label}


def hf_table(images, labels, names=None, *, told=True):
    """A table as Hugging Face's library lays it out."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = [{"bytes": encode(image), "path": None} for image in images]
    table = pa.table({"image": pa.array(cells, kind), "label": pa.array(labels, pa.int64())})
    if told:
        note = json.dumps({"info": {"features": features(names)}})
        table = table.replace_schema_metadata({"huggingface": note})
    return table
