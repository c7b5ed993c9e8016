"""Running a corruption over a batch: keys, plan, blocks, threads."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions._keys import stream_keys
from shiftcal.corruptions.base import Corruption
from shiftcal.numerics._threads import share

# Most bytes of images a thread takes at a time. Taking them costs some 20 microseconds, and Ctrl-C
# waits for them to be done.
BLOCK_BYTES = 1 << 20
# Parts a batch is cut into for every thread at least, so that none waits long for another.
_PARTS = 4

# Corruptions and settings whose kernels are loaded.
_WARM: set[tuple[type[Corruption], Any]] = set()

# Raised when the pixels of a corruption change, so that old and new ones are not mixed.
GENERATOR = 1

TABLES = {"cifar": 32, "tiny-imagenet": 64, "imagenet": 224}


@functools.lru_cache(maxsize=256)
def table_for(height: int, width: int) -> str:
    """The table whose image size is nearest to the shorter side, in ratio.

    The published sizes are 32, 64 and 224 pixels, so sides up to 45 have the CIFAR table, up to
    119 that of Tiny-ImageNet, and larger ones that of ImageNet.
    """
    side = min(height, width)
    return min(TABLES, key=lambda name: abs(np.log(TABLES[name] / side)))


def run(
    corruption: Corruption,
    images: Images,
    out: Images,
    *,
    severity: int,
    table: str,
    seed: int,
    first_index: int,
    threads: int,
) -> None:
    """Corrupt ``images`` ``(n, height, width, 3)`` into ``out``, contiguous and of that shape."""
    if severity == 0:
        out[...] = images
        return
    n, height, width = images.shape[:3]
    plan_of = corruption.setting(severity, table=table)
    make = _plan if corruption.keeps_plan else _plan.__wrapped__
    plan = make(corruption, plan_of, height, width)
    keys = stream_keys(
        seed=seed,
        corruption=corruption.name,
        severity=severity,
        indices=np.arange(first_index, first_index + n, dtype=np.int64),
    )
    images = _to_read(images)

    def work(start: int) -> None:
        part = slice(start, start + step)
        corruption._apply(images[part], out[part], plan, keys[part])

    step = max(1, min(BLOCK_BYTES // (height * width * 3), n // (_PARTS * threads)))
    starts = range(0, n, step)
    if starts and (type(corruption), plan_of) not in _WARM:
        # The first images are done by this thread alone: they import and compile kernels, and
        # Ctrl-C during an import in one thread can leave the others waiting for it forever.
        work(0)
        _WARM.add((type(corruption), plan_of))
        starts = starts[1:]
    if not corruption.parallel or threads == 1 or len(starts) < 2:
        for start in starts:
            work(start)
        return
    share(work, starts, threads=min(threads, len(starts)))


@functools.lru_cache(maxsize=64)
def _plan(corruption: Corruption, setting: Any, height: int, width: int) -> Any:
    return corruption._plan(setting, height, width)


def _to_read(images: Images) -> Images:
    view = np.ascontiguousarray(images).view()
    view.flags.writeable = False
    return view
