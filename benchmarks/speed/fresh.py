"""What a new process costs: the first call with its imports, commands, and the size of an install.

shiftcal runs from a wheel in ``.venv-fresh``, made by the part ``install``; peers in this
environment. Every figure is the median of fresh processes, ours and the peers' in turn.
"""

from __future__ import annotations

import functools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from temperature import draw
from timing import run

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-fresh"
OURS, ROUNDS = str(VENV / "bin" / "python"), 5
DATA = "import numpy as np; z, y, p, c, r = (np.load(f'{name}.npy') for name in 'zypcr'); "
TEMPERATURE = {
    "shiftcal": "import shiftcal as sc; sc.TS().fit(z, y)",
    "scikit-learn": "from sklearn.calibration import _TemperatureScaling as T; T().fit(z, y)",
    "netcal": "from netcal.scaling import TemperatureScaling as T; "
    "T().fit(p, y, tensorboard=False)",
    "torch, L-BFGS in 1/T": "from temperature import torch_lbfgs; torch_lbfgs(z, y)()",
    "(numpy and the data alone)": "",
}
ECE = {
    "shiftcal": "import shiftcal as sc; sc.ece(c, r)",
    "scikit-learn, curve only": "from sklearn.calibration import calibration_curve as f; "
    "f(r, c, n_bins=15, strategy='quantile')",
    "netcal": "from netcal.metrics import ECE; "
    "ECE(15, equal_intervals=False, detection=True).measure(c, r.astype(int))",
    "torchmetrics (equal width)": "import torch; "
    "from torchmetrics.functional.classification import binary_calibration_error as f; "
    "f(torch.from_numpy(c.astype('f4')), torch.from_numpy(r.astype(int)), n_bins=15)",
    "(numpy and the data alone)": "",
}
CORRUPT = """
import sys, time, numpy as np, shiftcal as sc
image = np.random.default_rng(0).integers(0, 256, (int(sys.argv[2]),) * 2 + (3,), dtype=np.uint8)
times = [time.perf_counter()]
for _ in "12":
    sc.corrupt(image, sys.argv[1], severity=3)
    times.append(time.perf_counter())
print(2 * times[1] - times[0] - times[2])
"""


def process(*command: str, folder: str) -> tuple[float, float, str]:
    """Wall time and processor time of a process, and what it prints."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    path = {"PYTHONPATH": str(ROOT / "benchmarks" / "speed")}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, check=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stdout


def calls(codes: dict[str, str], n: int) -> dict[str, tuple[float, float]]:
    """Medians of wall and processor time of a process that does one call on ``n`` rows."""
    with tempfile.TemporaryDirectory() as folder:
        z, y = draw(n, 10)
        p = np.exp(z.astype(np.float64))
        p /= p.sum(axis=1, keepdims=True)
        arrays = {"z": z, "y": y, "p": p, "c": p.max(axis=1), "r": p.argmax(axis=1) == y}
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
        found: dict[str, list[tuple[float, float]]] = {tool: [] for tool in codes}
        for _ in range(ROUNDS):
            for tool, code in codes.items():
                python = OURS if tool == "shiftcal" else sys.executable
                found[tool].append(process(python, "-c", DATA + code, folder=folder)[:2])
    return {tool: medians(times) for tool, times in found.items()}


def medians(times: list[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
    return wall, cpu


def corruptions() -> dict[str, dict[str, float]]:
    """Seconds by which the first call of a process takes longer than the second."""
    import shiftcal as sc

    def extra(name: str, side: int) -> float:
        command = (OURS, "-c", CORRUPT, name, str(side))
        return statistics.median(float(process(*command, folder="/")[2]) for _ in "123")

    return {
        name: {str(side): extra(name, side) for side in (32, 224)}
        for name in sc.corruptions.names()
    }


def commands() -> dict[str, tuple[float, float]]:
    """Of ``shiftcal --help``, ``compare`` on six sets of 5,000 rows, and the demo."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        sets = []
        for i in range(6):
            logits, labels = draw(5_000, 10)
            logits += i * np.random.default_rng(i).standard_normal(logits.shape)
            np.savez(f"{folder}/s{i}.npz", logits=logits, labels=labels)
            sets += ["--surrogate" if i < 5 else "--target", f"s{i}.npz"]
        lines = {
            "shiftcal --help": (ROUNDS, "--help"),
            "shiftcal compare, six sets of 5,000 x 10": (ROUNDS, "compare", *sets),
            "shiftcal demo": (1, "demo", "-o", "demo"),
        }
        for name, (rounds, *command) in lines.items():
            times = [
                process(OURS, "-m", "shiftcal", *command, folder=folder) for _ in range(rounds)
            ]
            found[name] = medians([t[:2] for t in times])
    return found


def install() -> float:
    """Megabytes of the core from a wheel, without ``.pyc``, which are made afterwards."""
    bench = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bench}:{os.environ['PATH']}"}  # where meson is

    def pip(*command: str) -> None:
        program = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        subprocess.run((*program, *command), check=True, env=environment)

    with tempfile.TemporaryDirectory() as folder:
        pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, str(ROOT))
        (wheel,) = map(str, Path(folder).iterdir())
        subprocess.run((sys.executable, "-m", "venv", "--clear", "--without-pip", VENV), check=True)
        pip("--python", OURS, "install", "--no-compile", wheel)
        size = sum(file.stat().st_size for file in (VENV / "lib").rglob("*") if file.is_file())
        pip("--python", OURS, "install", f"{wheel}[report]")  # for the demo
    subprocess.run((OURS, "-m", "compileall", "-q", VENV / "lib"), check=False)
    return size / 1e6


def table(title: str, found: dict[str, list[float]]) -> str:
    ours = found.get("shiftcal", [0])[0]
    lines = [f"| {title} | wall, s | processor, s | |", "|---|---|---|---|"]
    for name, (wall, cpu) in found.items():
        ratio = f"{wall / ours:.1f}x" if ours and name[0] not in "s(" else ""
        lines.append(f"| {name} | {wall:.2f} | {cpu:.2f} | {ratio} |")
    return "\n".join(lines)


def page(found: dict) -> str:
    parts = [
        "# What a new process costs",
        f"Medians of {ROUNDS} processes, each from its start to its end: Python, imports, reading "
        "the data, one call. Written by `fresh.py`.",
        *(table(part, found[part]) for part in CALLS),
        table("command", found["commands"]),
        f"The core and all it depends on take {found['install']:.0f} MB, without `.pyc` files.",
        "## The first corruption of a process",
        "Milliseconds by which the first call on an image takes longer than the second, imports of "
        "what corruptions need included.",
        "| corruption | 32 px | 224 px |\n|---|---|---|\n"
        + "\n".join(
            f"| {name} | {1e3 * row['32']:.0f} | {1e3 * row['224']:.0f} |"
            for name, row in found["corruptions"].items()
        ),
    ]
    return "\n\n".join(parts)


CALLS = {
    "temperature of (5,000, 10)": (TEMPERATURE, 5_000),
    "temperature of (50,000, 10)": (TEMPERATURE, 50_000),
    "ECE of 50,000": (ECE, 50_000),
    "ECE of 1,000,000": (ECE, 1_000_000),
}
if __name__ == "__main__":
    parts = {name: functools.partial(calls, *what) for name, what in CALLS.items()}
    others = {"commands": commands, "corruptions": corruptions}
    run("fresh", {"install": install, **parts, **others}, page)
