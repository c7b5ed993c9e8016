"""A process that scores so many images made up on the fly: ``python many_images.py N OUT``.

It prints the most memory it had taken, in bytes, before it began and at the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from shiftcal.datasets import ImageSet
from shiftcal.models import as_model
from shiftcal.scoring import score_file

SIDE, SHARD = 8, 4096


class MadeUp(ImageSet):
    """Images of one shade each, with names as long as those of ImageNet-C."""

    def __init__(self, n):
        super().__init__(n, name="made up", labels=np.arange(n) % 3)

    def _image(self, index):
        return self._images(np.array([index]))[0]

    def _images(self, indices):
        shades = (indices % 251).astype(np.uint8)[:, None, None, None]
        return np.broadcast_to(shades, (len(indices), SIDE, SIDE, 3))

    def _stored(self, index):
        return index.to_bytes(8, "little")

    def ids(self, indices):
        return [f"fog/5/n{i % 1000:08d}/ILSVRC2012_val_{i:08d}.JPEG" for i in map(int, indices)]


def _pixels(batch):
    return batch[:, 0, 0, :].astype(np.float32)


def _most():
    # Not ru_maxrss, which begins with what the process that started this one has.
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _main(n, out):
    model = as_model(_pixels, raw=True, key="pixels", batch_size=1024)
    # Once over few images: what is loaded, and what a shard takes, does not count.
    for count, target in ((2 * SHARD, Path(out, "few.npz")), (int(n), Path(out, "many.npz"))):
        images = MadeUp(count)
        before = _most()
        for _ in range(2):  # the second time the file is finished, and its statistics are wanted
            score_file(
                model, images, target, shard_size=SHARD, statistics=target.with_suffix(".json")
            )
    sys.stdout.write(f"{before} {_most()}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
