"""Time and memory of ``shiftcal apply`` and others on large tables, against pyarrow alone.

``python benchmarks/speed/tables.py [ROWS ...]`` (default 1, 10 and 100 million) writes
``results/tables.json``. Tables are Parquet with 5 logits in float32, and a label where one is
needed. Every command is a process of its own, start included. The baseline reads the table and
writes what ``apply`` wrote, with ``pyarrow.parquet.read_table`` and ``write_table``. Processor time
is of all threads. Where the system lets us limit the memory of a process (control groups, version
1, as root), the last row is ``apply`` again with that limit; it must write the same bytes.
"""

from __future__ import annotations

import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time
from operator import itemgetter
from pathlib import Path

import numpy as np
from timing import RESULTS, circumstances

K = 5
COMMANDS = {
    "apply rehearsal": "apply rehearsal.json target.parquet -o out.parquet",
    "apply realign": "apply realign.json target.parquet -o realign.parquet",
    "apply rehearsal, labels": "apply rehearsal.json labelled.parquet -o labelled-out.parquet",
    "apply rehearsal, accuracy": "apply rehearsal.json target.parquet -o kept.parquet "
    "--target-accuracy 0.95",
    "evaluate": "evaluate labelled.parquet --resamples 0",
    "estimate rehearsed": "estimate bank target.parquet --estimator rehearsed",
    "compare rehearsal": "compare bank target.parquet --method rehearsal --resamples 0",
}
# Of the largest table.
FEW = ("apply rehearsal", "apply rehearsal, labels", "evaluate", "estimate rehearsed")
LIMIT_MB = 300
# Rows drawn and written at one time.
CHUNK = 10_000_000
# Prints seconds and processor seconds of start and reading, and of writing what apply wrote.
BASELINE = """
import time
began = time.perf_counter()
import pyarrow.parquet as parquet
parquet.read_table("target.parquet")
read = time.perf_counter() - began, time.process_time()
table = parquet.read_table("out.parquet")
began = time.perf_counter(), time.process_time()
parquet.write_table(table, "again.parquet")
print(read[0] + time.perf_counter() - began[0], read[1] + time.process_time() - began[1])
"""


def draw(n: int, strength: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n)
    logits = rng.standard_normal((n, K), dtype=np.float32)
    logits[np.arange(n), labels] += 2.5 * strength
    return 3 * logits, labels


def make(folder: Path, n: int) -> None:
    """The bank, the methods, and a table of ``n`` rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import shiftcal as sc

    sets = [sc.SurrogateSet(*draw(2000, 1.3, seed=1), "clean", None, 0)]
    for seed in range(5):  # as many corruptions as Realign needs
        sets += [
            sc.SurrogateSet(*draw(2000, s, seed=seed), f"fading {seed}, {s}", f"fading {seed}", i)
            for i, s in enumerate((1.1, 0.9, 0.7, 0.5), 1)
        ]
    bank = sc.SurrogateBank(sets)
    bank.save(folder / "bank")
    for name in ("rehearsal", "realign"):
        sc.methods.get(name)().fit(bank).save(folder / f"{name}.json")
    kinds = [(f"logit_{i}", pa.float32()) for i in range(K)]
    with (
        pq.ParquetWriter(folder / "target.parquet", pa.schema(kinds)) as bare,
        pq.ParquetWriter(
            folder / "labelled.parquet", pa.schema([("label", pa.int64()), *kinds])
        ) as labelled,
    ):
        for start in range(0, n, CHUNK):
            logits, labels = draw(min(n - start, CHUNK), 0.8, seed=2 + start)
            columns = {f"logit_{i}": logits[:, i] for i in range(K)}
            bare.write_table(pa.table(columns))
            labelled.write_table(pa.table({"label": labels, **columns}))


def limited(folder: Path, call: list[str]) -> dict[str, float] | None:
    """The same with little memory; ``None`` where that cannot be had."""
    group = Path("/sys/fs/cgroup/memory") / f"shiftcal-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT_MB << 20))
    except OSError:
        return None
    words = ["/bin/sh", "-c", f'echo $$ > {group}/tasks; exec "$@"', "sh", *call]
    found = measured(words, folder)
    group.rmdir()
    same = filecmp.cmp(folder / "out.parquet", folder / "limited.parquet", shallow=False)
    assert same
    return found


def measured(words: list[str], folder: Path) -> dict[str, float]:
    """Seconds, processor seconds and the largest resident size of a process."""
    begun = time.perf_counter()
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    actions = [(os.POSIX_SPAWN_DUP2, log, 1)]
    here = Path.cwd()
    os.chdir(folder)
    pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
    os.chdir(here)
    os.close(log)
    _, status, used = os.wait4(pid, 0)
    assert status == 0, words
    found = {"seconds": time.perf_counter() - begun, "cpu": used.ru_utime + used.ru_stime}
    return {**found, "resident_mb": used.ru_maxrss / 1024}


def main(sizes: list[int]) -> None:
    path = RESULTS / "tables.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for n in sizes:
        rows = {}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            # In another process: a child counts the memory that its parent had.
            subprocess.run([sys.executable, __file__, "make", name, str(n)], check=True)
            for label, words in COMMANDS.items():
                if n > CHUNK and label not in FEW:
                    continue
                call = [sys.executable, "-m", "shiftcal", *words.split(), "--quiet"]
                rows[label] = measured(call, folder)
                print(n, label, rows[label], flush=True)
            call = [sys.executable, "-m", "shiftcal", *COMMANDS["apply rehearsal"].split()]
            call[call.index("out.parquet")] = "limited.parquet"
            if found_limited := limited(folder, [*call, "--quiet"]):
                rows[f"apply rehearsal in {LIMIT_MB} MB"] = found_limited
                print(n, "limited", found_limited, flush=True)
            # In turns, the best of each: the machine may have other work.
            apply = [sys.executable, "-m", "shiftcal", *COMMANDS["apply rehearsal"].split()]
            alone = [sys.executable, "-c", BASELINE]
            for _ in range(1 if n > CHUNK else 5):
                again = measured([*apply, "--quiet"], folder)
                done = subprocess.run(alone, cwd=name, stdout=subprocess.PIPE, check=True)
                read = dict(zip(("seconds", "cpu"), map(float, done.stdout.split()), strict=True))
                for label, row in (("apply rehearsal", again), ("pyarrow alone", read)):
                    rows[label] = min(rows.get(label, row), row, key=itemgetter("seconds"))
        ours, theirs = rows["apply rehearsal"], rows["pyarrow alone"]
        ratio = {f"apply / pyarrow, {key}": ours[key] / theirs[key] for key in theirs}
        found[f"{n:,}"] = {"commands": rows, **ratio, **circumstances()}
        print(n, theirs, ratio, flush=True)
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make(Path(sys.argv[2]), int(sys.argv[3]))
        sys.exit()
    main([int(word) for word in sys.argv[1:]] or [1_000_000, 10_000_000, 100_000_000])
