"""Parts of a job as ``shiftcal score --shard i/n`` writes them."""

from __future__ import annotations

import itertools
import json

import numpy as np


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
