"""Fit, ECE, corruptions and scoring against an earlier commit, call by call in the same run.

    python benchmarks/speed/earlier.py COMMIT PYTHON

PYTHON is the interpreter of an environment that has what the commit depends on, but not shiftcal
itself: an editable install would win over the commit's sources. For the last commit with numba,
with the packages of this environment:

    python -m venv old
    python -c "import numpy; print(numpy.__path__[0][:-6])" > old/lib/python3.11/site-packages/a.pth
    old/bin/pip install --no-deps numba llvmlite
    python benchmarks/speed/earlier.py 08e5c03 old/bin/python

Each version runs in a process of its own. The two take turns, so that a change of the machine's
speed hits both; a ratio is the median of the ratios of neighbouring calls.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 15
SIZES = {"32 px": (200, 32), "224 px": (8, 224)}


def tasks() -> dict[str, object]:
    """Name of each task and the call that is timed."""
    import shiftcal as sc
    from shiftcal import corruptions

    rng = np.random.default_rng(0)
    calls: dict[str, object] = {}
    for n, k in ((5_000, 10), (50_000, 10), (50_000, 100)):
        z = 2.5 * rng.standard_normal((n, k), dtype=np.float32)
        y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        calls[f"fit, TS ({n:,}, {k})"] = lambda z=1.7 * z, y=y: sc.TS().fit(z, y)
    confidence = rng.beta(5, 1, 1_000_000)
    correct = rng.random(1_000_000) < confidence
    for binning in ("width", "size"):
        calls[f"ECE, equal {binning}, 1 million"] = lambda b=binning: sc.ece(
            confidence, correct, binning=b
        )
    for size, (n, side) in SIZES.items():
        images = rng.integers(0, 256, (n, side, side, 3), dtype=np.uint8)
        for name in corruptions.names():
            calls[f"corruption, {size}, {name}"] = lambda name=name, images=images: sc.corrupt(
                images, name, severity=3, seed=0, threads=1
            )
    images = rng.integers(0, 256, (4_096, 32, 32, 3), dtype=np.uint8)
    weights = rng.standard_normal((3, 10))

    def model(x: np.ndarray) -> np.ndarray:
        return x.mean(axis=(2, 3)) @ weights

    calls["scoring, a function of means, 4,096 images"] = lambda: sc.score(
        model, images, progress=False
    )
    import torch

    from shiftcal.models import cifar_resnet

    torch.set_num_threads(1)
    network = cifar_resnet(20)
    calls["scoring, ResNet-20, 4,096 images"] = lambda: sc.score(network, images, progress=False)
    return calls


def worker() -> None:
    """Mean time of three calls or more, in at least 20 ms, for every line of standard input."""
    warnings.simplefilter("ignore")
    calls = tasks()
    print(json.dumps(list(calls)), flush=True)
    for line in sys.stdin:
        start, count = time.perf_counter(), 0
        while (passed := time.perf_counter() - start) < 0.02 or count < 3:
            calls[line.strip()]()
            count += 1
        print(passed / count, flush=True)


def main(commit: str, python: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", folder, commit], check=True, capture_output=True)
        try:
            ratios = compare((python, Path(folder)), (sys.executable, ROOT))
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)
    groups: dict[str, list[float]] = {}
    for name, ratio in ratios.items():
        group = name.rpartition(", ")[0] if name.startswith("corruption") else name
        groups.setdefault(group, []).append(ratio)
    from timing import RESULTS, circumstances

    result = {**circumstances(), "commit": commit, "time now / time then": ratios}
    (RESULTS / "earlier.json").write_text(json.dumps(result, indent=1) + "\n")
    for name, values in groups.items():
        mean = statistics.geometric_mean(values)
        print(f"{name}: {mean:.3f} (worst {max(values):.3f})")


def compare(*versions: tuple[str, Path]) -> dict[str, float]:
    """Time of the second version, interpreter and sources, divided by that of the first."""
    workers = [
        subprocess.Popen(
            [python, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tree / "src"), "SHIFTCAL_CACHE": ""},
        )
        for python, tree in versions
    ]

    def ask(process: subprocess.Popen[str], name: str) -> float:
        process.stdin.write(name + "\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    names, _ = (json.loads(process.stdout.readline()) for process in workers)
    ratios = {}
    for name in names:
        for process in workers:
            ask(process, name)
        rounds = []
        for turn in range(ROUNDS):
            order = (0, 1) if turn % 2 else (1, 0)
            times = {i: ask(workers[i], name) for i in order}
            rounds.append(times[1] / times[0])
        ratios[name] = round(statistics.median(rounds), 4)
    for process in workers:
        process.communicate()
    return ratios


if __name__ == "__main__":
    worker() if sys.argv[1] == "--worker" else main(*sys.argv[1:])
