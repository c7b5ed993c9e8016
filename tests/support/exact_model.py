"""A model whose logits are exact in every batch size, and that counts what it is given."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np

from shiftcal.models import as_model
from shiftcal.surrogates.build import build_bank, conditions_of

WEIGHTS = np.array([[3, -1, 0, 2], [-2, 4, 1, 0], [1, 0, -3, 2]], np.float64)


class Exact:
    """Four logits from sums of pixels: whole numbers over 2**k, the same in any order."""

    def __init__(self):
        self.calls = []

    def __call__(self, batch):
        self.calls.append(len(batch))
        return logits_of(batch)

    @property
    def seen(self):
        return sum(self.calls)


def logits_of(batch):
    sums = batch.astype(np.float64).sum(axis=(1, 2)) - 127 * batch.shape[1] * batch.shape[2]
    return (sums @ WEIGHTS / 1024).astype(np.float32)


def features_of(batch):
    return batch.astype(np.float32)[:, 0, 0, :]


def exact(function=None, *, key="exact-v1", batch_size=8, **options):
    """The model, made of a function of raw pixels; the function is its attribute."""
    return as_model(function or Exact(), raw=True, key=key, batch_size=batch_size, **options)


def labelled(n, *, seed=0, size=(12, 10)):
    """Images and labels of four classes."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, *size, 3), dtype=np.uint8), rng.integers(0, 4, n)


IMAGES, LABELS = labelled(20, seed=9, size=(16, 16))


class Fails(Exact):
    def __init__(self, after):
        super().__init__()
        self.after = after

    def __call__(self, batch):
        if len(self.calls) == self.after:
            raise RuntimeError("no more")
        return super().__call__(batch)


def built(folder, model=None, *, images=IMAGES, labels=LABELS, corruption="pixelate",
          severities=(1, 2), **options):  # fmt: skip
    model = model or exact()
    done = build_bank(
        model,
        images,
        folder,
        labels=labels,
        conditions=conditions_of(corruption, severities),
        **{"shard_size": 8, **options},
    )
    return done, model.function.seen


def files(folder):
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in Path(folder).rglob("*")}


def part_note(shard, of, first, stop, n_images, *, key="job-1", **more):
    """What a file says of its part."""
    told = {"shard": shard, "of": of, "first": first, "stop": stop, "n_images": n_images}
    return np.array(json.dumps({**told, "key": key, **more}))


def write_parts(folder, cuts, *, key="job-1", **arrays):
    """``part-1.npz`` and so on, cut at rows ``cuts``; arrays of one row per image are cut too."""
    n = len(arrays["logits"])
    ends = [0, *cuts, n]
    paths = []
    for i, (first, stop) in enumerate(itertools.pairwise(ends), start=1):
        note = part_note(i, len(ends) - 1, first, stop, n, key=key)
        own = {
            name: array if name == "classes" else array[first:stop]
            for name, array in arrays.items()
        }
        path = folder / f"part-{i}.npz"
        np.savez(path, **own, part=note, origin=np.array('{"key": "any"}'))
        paths.append(path)
    return paths
