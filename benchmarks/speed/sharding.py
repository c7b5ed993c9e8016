"""What statistics of scores cost: making them, keeping them, merging a thousand parts of a job.

A part is 50,000 rows of 1,000 classes in half precision, mapped from the disk: one corruption at
one severity of ImageNet-C. Figures per million rows are these times twenty.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import Timing, circumstances, extra_memory, listed, measure, write

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


def statistics_timings(folder: Path, facts: dict[str, object]) -> list[Timing]:
    """Seconds per part; facts get the sizes, the memory, and how near the temperature is."""
    found = []
    for n, k in ((ROWS, 1_000), (1_000_000, 10)):
        z, y = mapped(folder, n, k)
        size = f"{n:,} x {k:,}"
        ScoreStatistics.of_rows(z[:100], y[:100])  # compiled
        facts[f"memory_of_statistics_{k}"] = extra_memory(lambda z=z, y=y: whole(z, y))
        statistics = whole(z, y)
        statistics.write(folder / "one.json")
        facts[f"bytes_of_a_file_{k}"] = (folder / "one.json").stat().st_size
        exact = Temperature().fit(z, y).temperature_
        facts[f"temperature_off_by_{k}"] = abs(statistics.temperature / exact - 1)
        for tool, work in {
            "statistics with labels": lambda z=z, y=y: whole(z, y).temperature,
            "statistics without labels": lambda z=z: whole(z, None).mean_confidence,
        }.items():
            found.append(measure(tool, size, work))
            print(found[-1], file=sys.stderr)
    return found


def whole(z: np.ndarray, y: np.ndarray | None) -> ScoreStatistics:
    return ScoreStatistics.of_rows(z, y)


def merging_timings(folder: Path, facts: dict[str, object]) -> list[Timing]:
    """Seconds for all parts: of statistics, and of scores that are copied to one file."""
    z, y = draw(ROWS, 1_000)
    statistics = whole(z, y)
    paths = []
    for i in range(PARTS):
        part = Part(i + 1, PARTS, i * ROWS, (i + 1) * ROWS, PARTS * ROWS, "job")
        paths.append(folder / f"part-{i + 1}.json")
        statistics.write(paths[-1], part=part)
    total = merge_statistics(find_parts(paths))
    facts["rows_merged_as_statistics"] = total.n
    facts["bytes_of_the_merged_file"] = written(folder / "all.json", total)
    many = measure("statistics", f"{PARTS:,} parts", lambda: merge_statistics(find_parts(paths)).n)
    step = ROWS // SCORE_PARTS
    scores = []
    for i in range(SCORE_PARTS):
        own = slice(i * step, (i + 1) * step)
        note = Part(i + 1, SCORE_PARTS, own.start, own.stop, ROWS, "job")._asdict()
        scores.append(folder / f"scores-{i + 1}.npz")
        np.savez(scores[-1], logits=z[own], labels=y[own], part=np.array(json.dumps(note)))
    parts = find_parts(scores)
    out = folder / "all.npz"
    facts["memory_of_merging_scores"] = extra_memory(lambda: merge_scores(parts, out))
    copied = measure("scores, judged on the way", f"{SCORE_PARTS} parts of {step:,} x 1,000",
                     lambda: merge_scores(parts, out).n)  # fmt: skip
    return [many, copied]


def written(path: Path, statistics: ScoreStatistics) -> int:
    statistics.write(path)
    return path.stat().st_size


def report(facts: dict[str, object], made: list[Timing], merged: list[Timing]) -> str:
    rows = "".join(
        f"| {t.tool} | {t.size} | {t.wall:.2f} ± {t.mad:.2f} | {t.cpu:.2f} | "
        f"{t.cpu * 1e6 / rows_of(t):.1f} |\n"
        for t in made
    )
    merges = "".join(
        f"| {t.tool} | {t.size} | {t.wall:.2f} ± {t.mad:.2f} | {t.cpu:.2f} |\n" for t in merged
    )
    return f"""# Statistics of shards

Rows in half precision, mapped from the disk. Seconds of wall time, median ± median deviation, and
of processor time, over all threads. Written by `sharding.py`.

## Making them

| what | rows x classes | wall, s | processor, s | processor, s per million rows |
|---|---|---|---|---|
{rows}
- File of a part: {kilobytes(facts["bytes_of_a_file_1000"])} of 1,000 classes,
  {kilobytes(facts["bytes_of_a_file_10"])} of 10.
- Memory beside the mapped rows: {megabytes(facts["memory_of_statistics_1000"])} at most, the rows
  that were just read among it.
- The temperature differs from that of `Temperature`, which works in single precision here, by
  {facts["temperature_off_by_1000"]:.1e} and {facts["temperature_off_by_10"]:.1e}, relative.

## Merging them

| what | parts | wall, s | processor, s |
|---|---|---|---|
{merges}
- {facts["rows_merged_as_statistics"]:,} rows were in the {PARTS:,} parts; the merged file has
  {kilobytes(facts["bytes_of_the_merged_file"])}.
- Merging scores took {megabytes(facts["memory_of_merging_scores"])} of memory.

## Circumstances

{listed(facts)}
"""


def rows_of(timing: Timing) -> int:
    return int(timing.size.partition(" ")[0].replace(",", ""))


def kilobytes(size: int) -> str:
    return f"{size / 1e3:.0f} kB"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def main() -> None:
    facts: dict[str, object] = circumstances()
    facts["threads"] = os.environ.get("OMP_NUM_THREADS", "all")
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        made = statistics_timings(Path(folder), facts)
        merged = merging_timings(Path(folder), facts)
    facts["seconds_of_this_benchmark"] = round(time.perf_counter() - begin)
    write("sharding", facts, [*made, *merged], report(facts, made, merged))


if __name__ == "__main__":
    main()
