"""What statistics of scores cost: making them, keeping them, merging a thousand parts of a job.

A part is 50,000 rows of 1,000 classes in half precision, mapped from the disk: one corruption at
one severity of ImageNet-C. Figures per million rows are these times twenty.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import numpy as np
from timing import Timing, extra_memory, measure, run, timings

from shiftcal.maps import Temperature
from shiftcal.scoring.statistics import (
    Part,
    ScoreStatistics,
    find_parts,
    merge_scores,
    merge_statistics,
)

ROWS = 50_000
PARTS = 1_000
SCORE_PARTS = 10


def draw(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a model that is too sure by a factor of 1.7, in half precision."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, k, n)
    logits = rng.standard_normal((n, k), dtype=np.float32)
    logits[np.arange(n), labels] += np.log(k) / 2
    return (1.7 * np.log(k) / 2 * logits).astype(np.float16), labels


def mapped(folder: Path, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    path = folder / f"{n}x{k}.npy"
    logits, labels = draw(n, k)
    np.save(path, logits)
    return np.load(path, mmap_mode="r"), labels


def making(n: int, k: int) -> dict[str, object]:
    """Timings, sizes, memory, and how near the temperature is."""
    with tempfile.TemporaryDirectory() as name:
        folder, size = Path(name), f"{n:,} x {k:,}"
        z, y = mapped(folder, n, k)
        statistics = ScoreStatistics.of_rows(z, y)
        statistics.write(folder / "one.json")
        exact = Temperature().fit(z, y).temperature_
        work = {
            "statistics with labels": lambda: ScoreStatistics.of_rows(z, y).temperature,
            "statistics without labels": lambda: ScoreStatistics.of_rows(z, None).mean_confidence,
        }
        return {
            "memory": extra_memory(lambda: ScoreStatistics.of_rows(z, y)),
            "bytes": (folder / "one.json").stat().st_size,
            "off": abs(statistics.temperature / exact - 1),
            "timings": [measure(tool, size, one, threads=2) for tool, one in work.items()],
        }


def merging() -> dict[str, object]:
    """Of statistics, and of scores that are copied to one file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        z, y = draw(ROWS, 1_000)
        statistics = ScoreStatistics.of_rows(z, y)
        paths = []
        for i in range(PARTS):
            part = Part(i + 1, PARTS, i * ROWS, (i + 1) * ROWS, PARTS * ROWS, "job")
            paths.append(folder / f"part-{i + 1}.json")
            statistics.write(paths[-1], part=part)
        total = merge_statistics(find_parts(paths))
        total.write(folder / "all.json")
        step = ROWS // SCORE_PARTS
        scores = []
        for i in range(SCORE_PARTS):
            own = slice(i * step, (i + 1) * step)
            note = Part(i + 1, SCORE_PARTS, own.start, own.stop, ROWS, "job")._asdict()
            scores.append(folder / f"scores-{i + 1}.npz")
            np.savez(scores[-1], logits=z[own], labels=y[own], part=np.array(json.dumps(note)))
        parts, out = find_parts(scores), folder / "all.npz"
        return {
            "rows": total.n,
            "bytes": (folder / "all.json").stat().st_size,
            "memory": extra_memory(lambda: merge_scores(parts, out)),
            "timings": [
                measure(
                    "statistics",
                    f"{PARTS:,} parts",
                    lambda: merge_statistics(find_parts(paths)).n,
                    threads=2,
                ),
                measure(
                    "scores, judged on the way",
                    f"{SCORE_PARTS} parts of {step:,} x 1,000",
                    lambda: merge_scores(parts, out).n,
                    threads=2,
                ),
            ],
        }


def row(t: Timing) -> str:
    return f"| {t.tool} | {t.size} | {t.wall:.2f} ± {t.mad:.2f} | {t.cpu:.2f} |"


def page(found: dict) -> str:
    large, many, merged = (found[part] for part in PARTS_OF_RUN)
    made = [t for part in (large, many) for t in timings(part["timings"])]
    rows = [
        f"{row(t)} {t.cpu * 1e6 / int(t.size.partition(' ')[0].replace(',', '')):.1f} |"
        for t in made
    ]
    return f"""# Statistics of shards

Rows in half precision, mapped from the disk. Seconds of wall time, median ± median deviation, and
of processor time, over two threads. Written by `sharding.py`.

## Making them

| what | rows x classes | wall, s | processor, s | processor, s per million rows |
|---|---|---|---|---|
{chr(10).join(rows)}

- File of a part: {large["bytes"] / 1e3:.0f} kB of 1,000 classes,
  {many["bytes"] / 1e3:.0f} kB of 10.
- Memory beside the mapped rows: {large["memory"] / 1e6:.0f} MB at most, the rows
  that were just read among it.
- The temperature differs from that of `Temperature`, which works in single precision here, by
  {large["off"]:.1e} and {many["off"]:.1e}, relative.

## Merging them

| what | parts | wall, s | processor, s |
|---|---|---|---|
{chr(10).join(row(t) for t in timings(merged["timings"]))}

- {merged["rows"]:,} rows were in the {PARTS:,} parts; the merged file has
  {merged["bytes"] / 1e3:.0f} kB.
- Merging scores took {merged["memory"] / 1e6:.0f} MB of memory."""


PARTS_OF_RUN = {
    f"{ROWS}x1000": functools.partial(making, ROWS, 1_000),
    "1Mx10": functools.partial(making, 1_000_000, 10),
    "merging": merging,
}
if __name__ == "__main__":
    run("sharding", PARTS_OF_RUN, page)
