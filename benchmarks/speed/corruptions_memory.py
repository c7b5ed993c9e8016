"""Memory that corrupting a file of 10 GB takes: the largest resident size of a fresh process.

The file is mapped into memory and holds 70,000 images of 224 pixels; it is sparse, so that making
it costs nothing. The result is written in full: 10.5 GB have to be free.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import in_fresh_process, run

import shiftcal as sc

SHAPE = (70_000, 224, 224, 3)
# One that needs little beside the image, and the two that need most.
NAMES = ("contrast", "snow", "elastic_transform")


def once(name: str, folder: str) -> dict[str, float]:
    source, out = Path(folder) / "in.npy", Path(folder) / "out.npy"
    if not source.exists():
        np.lib.format.open_memmap(source, mode="w+", dtype=np.uint8, shape=SHAPE).flush()
    begin = time.perf_counter()
    images = np.load(source, mmap_mode="r")
    sc.corrupt(images, name, severity=3, out=out, progress=False)
    seconds = time.perf_counter() - begin
    assert out.stat().st_size >= images.nbytes
    out.unlink()
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return {"gigabytes": images.nbytes / 1e9, "megabytes": peak / 1024, "seconds": seconds}


def peaks() -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        return {name: json.loads(in_fresh_process(__file__, name, folder)) for name in NAMES}


def page(found: dict) -> str:
    rows = "\n".join(
        f"| {name} | {row['gigabytes']:.1f} | {row['megabytes']:.0f} | {row['seconds']:.0f} |"
        for name, row in found["peak"].items()
    )
    return (
        "# Memory of corrupting a mapped file\n\n"
        "Largest resident size of a fresh process, everything included, two threads. Most of the "
        "time is the disk's. Written by `corruptions_memory.py`.\n\n"
        f"| corruption | file, GB | peak, MB | seconds |\n|---|---|---|---|\n{rows}"
    )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(once(sys.argv[1], sys.argv[2])))
    else:
        run("corruptions_memory", {"peak": peaks}, page)
