"""Two small domains of coloured images, the target darker and tinted, and models of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from stored_images import write_images

from shiftcal.datasets import as_image_set
from shiftcal.models import as_model

CLASSES = ("ant", "bee", "cat")
# Strong colours, one a class; a domain mixes them with noise of its own.
COLOURS = np.array([[200, 60, 60], [60, 200, 60], [60, 60, 200]], np.float64)


def drawn(n, *, shift=0.0, seed=0, size=16):
    """Images and labels of three classes; ``shift`` moves all colours the same way."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    colours = COLOURS[labels] + rng.normal(0, 25, (n, 3)) + shift * np.array([60.0, -30.0, -30.0])
    pixels = colours[:, None, None, :] + rng.normal(0, 30, (n, size, size, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8), labels


def domains(n=60, *, size=16):
    """Source and target as image sets in memory."""
    return tuple(
        as_image_set(images, labels=labels, classes=CLASSES)
        for images, labels in (
            drawn(n, seed=1, size=size),
            drawn(n, shift=0.7, seed=2, size=size),
        )
    )


def write_domain(folder, images, labels, classes=CLASSES):
    """One folder a class, as most data sets are laid out."""
    names = [f"{classes[label]}/{i:03d}.png" for i, label in enumerate(labels)]
    write_images(folder, images, names)


def colour_features(batch):
    """Six features of raw pixels, beside three logits: what channels are on average, and vary."""
    values = batch.astype(np.float32) / 255
    means, spreads = values.mean(axis=(1, 2)), values.std(axis=(1, 2))
    return 10 * means, np.concatenate([means, spreads], axis=1)


class Counting:
    """The same, and how many images it was given."""

    def __init__(self):
        self.seen = 0

    def __call__(self, batch):
        self.seen += len(batch)
        return colour_features(batch)


def colour_model(function=colour_features, *, key="colours-v1", batch_size=16):
    return as_model(function, raw=True, key=key, batch_size=batch_size)


def arrays_of(folder):
    """Everything a finished run holds, by file and array, but for what differs between runs.

    Archives have the time in them, and ``adapt.json`` the speed.
    """
    found = {}
    for file in sorted(Path(folder).rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.suffix == ".npz":
            with np.load(file) as archive:
                found |= {f"{name}/{key}": archive[key].tobytes() for key in archive.files}
        elif file.suffix in (".safetensors", ".csv"):
            found[name] = file.read_bytes()
    return found
