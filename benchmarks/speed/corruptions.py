"""The nineteen corruptions at 32 and 224 pixels: shiftcal and its peers, image for image.

One thread each, on the same images, in turn: ours in this process, every peer in a process of its
own environment (see ``peers/``). A figure is the median time of an image, averaged over the five
severities. Given the word ``text``, only writes the text again, from the stored results.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import RESULTS, circumstances, in_fresh_process, listed, write

import shiftcal as sc

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = {
    "imagecorruptions": ROOT / ".venv-peers-imagecorruptions",
    "imaug": ROOT / ".venv-peers-others",
    "albumentations": ROOT / ".venv-peers-others",
}
BATCH = {32: 5000, 224: 100}
MANY = {32: 12_000, 224: 250}  # for two threads: some 50 ms, so that waking them is little
# Where Albumentations' transform is the same operation; elsewhere it has another of that name,
# such as adding a constant for brightness, and is compared apart.
SAME = frozenset(
    {
        "gaussian_noise", "shot_noise", "gaussian_blur", "defocus_blur", "glass_blur", "zoom_blur",
        "spatter", "elastic_transform", "pixelate", "jpeg_compression",
    }
)  # fmt: skip
# Released, its glass blur is a Python loop of several seconds an image at 224 pixels.
HOPELESS = {("imagecorruptions", "glass_blur", 224)}
LEAST = {32: 30, 224: 12}


def photographs(side: int, n: int) -> np.ndarray:
    """Pieces of the two photographs that come with scikit-learn, ``(n, side, side, 3)``."""
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(3)
    sources = load_sample_images().images
    pieces = []
    for _ in range(n):
        image = sources[rng.integers(len(sources))]
        top = rng.integers(image.shape[0] - side)
        left = rng.integers(image.shape[1] - side)
        pieces.append(image[top : top + side, left : left + side])
    return np.stack(pieces)


class Peer:
    """A peer's process, asked one thing at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        python = PEERS[name] / "bin" / "python"
        self.process = subprocess.Popen(
            [str(python), str(HERE / "peers" / "worker.py"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def seconds(self, name: str, severity: int, images: Path, *, side: int) -> float | None:
        """Median seconds an image takes, or None if it has no such corruption."""
        if (self.name, name, side) in HOPELESS:
            return None
        task = {"name": name, "severity": severity, "images": str(images), "seconds": 0.15}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} failed at {name}, severity {severity}")
        return json.loads(answer)


def ours(images: np.ndarray, name: str, severity: int, **options) -> float:
    """Median seconds an image takes in a batch."""
    sc.corrupt(images[:2], name, severity=severity, **options)
    times, start = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < 0.15 and len(times) < 200):
        begin = time.perf_counter()
        sc.corrupt(images, name, severity=severity, **options)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / len(images)


def one_by_one(images: np.ndarray, name: str, severity: int) -> float:
    """Median seconds an image takes when every call has one image."""
    times = []
    for index in range(40):
        image = images[index % len(images)]
        begin = time.perf_counter()
        sc.corrupt(image, name, severity=severity, threads=1)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def two_threads(side: int) -> dict[str, tuple[float, float]]:
    """Seconds an image with one thread and with two, the best of nine in turn, at severity 3.

    The best, since whatever else runs on the machine hits two threads more often than one.
    """
    images = np.resize(photographs(side, 200), (MANY[side], side, side, 3))
    found = {}
    for name in sc.corruptions.names():
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(9):
            for threads, taken in times.items():
                begin = time.perf_counter()
                sc.corrupt(images, name, severity=3, threads=threads)
                taken.append((time.perf_counter() - begin) / len(images))
        found[name] = (min(times[1]), min(times[2]))
    return found


def measure_all(side: int, folder: Path) -> dict[str, dict[str, float | None]]:
    """Seconds an image by corruption and tool, averaged over severities."""
    images = photographs(side, BATCH[side])
    np.save(folder / f"{side}.npy", images[:20])
    workers = [Peer(name) for name in PEERS]
    found: dict[str, dict[str, float | None]] = {}
    for name in sc.corruptions.names():
        rows: dict[str, list[float | None]] = {}

        def note(tool: str, seconds: float | None, rows=rows) -> None:
            rows.setdefault(tool, []).append(seconds)

        for severity in range(1, 6):
            note("shiftcal", ours(images, name, severity, threads=1))
            for peer in workers:
                note(peer.name, peer.seconds(name, severity, folder / f"{side}.npy", side=side))
            note("shiftcal, image by image", one_by_one(images, name, severity))
            if side == 32:
                note(
                    "shiftcal, ImageNet's strengths",
                    ours(images, name, severity, threads=1, table="imagenet"),
                )
        found[name] = {
            tool: None if None in times else statistics.mean(times) for tool, times in rows.items()
        }
        print(side, name, {t: s and round(1e6 * s, 1) for t, s in found[name].items()}, flush=True)
    for peer in workers:
        peer.process.kill()
    return found


def peers_of(name: str, times: dict[str, float | None], *, kindred: bool) -> dict[str, float]:
    """The peers that have this corruption; Albumentations' others only if ``kindred``."""
    return {
        tool: seconds
        for tool, seconds in times.items()
        if tool in PEERS
        and seconds is not None
        and (tool != "albumentations" or kindred or name in SAME)
    }


def fastest(found) -> dict[str, tuple[str, float]]:
    """The peer with the same operation that takes least, and how many seconds."""
    return {
        name: min(peers_of(name, times, kindred=False).items(), key=lambda pair: pair[1])
        for name, times in found.items()
    }


def ratios(found, *, tool="shiftcal", kindred=False) -> dict[str, float]:
    """How many times as long the fastest peer takes."""
    return {
        name: min(peers_of(name, times, kindred=kindred).values()) / times[tool]
        for name, times in found.items()
    }


def mean(values) -> float:
    return statistics.geometric_mean(values)


def table(found) -> str:
    def cell(seconds: float | None) -> str:
        return (
            ""
            if seconds is None
            else f"{1e6 * seconds:,.0f}"
            if seconds > 1e-5
            else (f"{1e6 * seconds:.1f}")
        )

    same, kindred = ratios(found), ratios(found, kindred=True)
    lines = [
        "| corruption | shiftcal | image by image | imagecorruptions | imaug | albumentations "
        "| fastest peer takes |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, times in found.items():
        other = "" if name in SAME or times["albumentations"] is None else " (another operation)"
        apart = "" if same[name] == kindred[name] else f" ({kindred[name]:.1f}x)"
        lines.append(
            f"| {name} | {cell(times['shiftcal'])} | {cell(times['shiftcal, image by image'])} "
            f"| {cell(times['imagecorruptions'])} | {cell(times['imaug'])} "
            f"| {cell(times['albumentations'])}{other} | **{same[name]:.1f}x**{apart} |"
        )
    return "\n".join(lines)


def first_call(name: str) -> float:
    """Seconds the first call of a process takes."""
    image = np.zeros((32, 32, 3), np.uint8)
    begin = time.perf_counter()
    sc.corrupt(image, name, severity=3)
    return time.perf_counter() - begin


def compiling() -> dict[str, tuple[float, float]]:
    """First call ever and first call of a later process, by corruption."""
    found = {}
    for name in sc.corruptions.names():
        with tempfile.TemporaryDirectory() as cache:
            run = [
                float(in_fresh_process(__file__, "first", name, NUMBA_CACHE_DIR=cache))
                for _ in range(2)
            ]
        found[name] = (run[0], run[1])
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {side: measure_all(side, Path(folder)) for side in BATCH}
    both = {side: two_threads(side) for side in BATCH}
    first = compiling()
    facts = {
        **circumstances(),
        "geometric mean": {side: mean(ratios(found[side]).values()) for side in BATCH},
        "two threads": {
            side: sum(one for one, _ in times.values()) / sum(two for _, two in times.values())
            for side, times in both.items()
        },
        "one and two threads": both,
        "seconds an image": found,
        "fastest peer": {side: fastest(found[side]) for side in BATCH},
        "first call": first,
    }
    write("corruptions", facts, [], text(found, first, facts))


def slower(compared: dict[str, float]) -> str:
    """Those of which a peer takes less time, and what share of ours."""
    return ", ".join(f"{n} ({r:.2f}x)" for n, r in compared.items() if r < 1) or "nowhere"


def stored_text() -> str:
    """The text of the stored results."""
    facts = json.loads((RESULTS / "corruptions.json").read_text("utf-8"))
    for by_side in ("seconds an image", "two threads"):
        facts[by_side] = {int(side): found for side, found in facts[by_side].items()}
    return text(facts["seconds an image"], facts["first call"], facts)


def text(found, first, facts) -> str:
    parts = [
        "# Corruptions: microseconds an image\n",
        "One thread, photographs, the mean over severities 1 to 5 of the median time of an image. "
        "shiftcal is given batches (and, image by image, single images, as the peers are). At 32 "
        "pixels shiftcal has CIFAR-10-C's strengths, and the peers, which know no others, "
        "ImageNet-C's. In brackets: against Albumentations' transforms of the same name that do "
        "something else. Written by `corruptions.py`.\n",
    ]
    for side, times in found.items():
        same, kindred = ratios(times), ratios(times, kindred=True)
        single = ratios(times, tool="shiftcal, image by image")
        parts += [f"## {side} pixels\n", table(times), ""]
        parts.append(
            f"Geometric mean: **{mean(same.values()):.1f}x** the fastest peer with the same "
            f"operation ({LEAST[side]}x was aimed at), {mean(kindred.values()):.1f}x the fastest "
            f"of any operation of that name, {mean(single.values()):.1f}x image by image. "
            f"Two threads are {facts['two threads'][side]:.2f} times as fast as one on the sum of "
            f"all ({MANY[side]:,} images a batch, severity 3, the best of nine)."
        )
        if side == 32:
            alike = ratios(times, tool="shiftcal, ImageNet's strengths")
            parts.append(
                f"With ImageNet's strengths at 32 pixels too, as the peers: "
                f"{mean(alike.values()):.1f}x."
            )
        parts.append(f"In batches, slower than a peer: {slower(kindred)}.")
        parts.append(
            f"Image by image, slower than a peer with the same operation: {slower(single)}.\n"
        )
    rows = "\n".join(f"| {n} | {a:.1f} | {b:.1f} |" for n, (a, b) in first.items())
    parts += [
        "## The first call\n",
        "Kernels are compiled when they are first used, and kept on disk. Seconds of the first "
        "call ever, and of the first call of a later process (imports and loading):\n",
        f"| corruption | ever | later |\n|---|---|---|\n{rows}\n",
        f"All nineteen: {sum(a for a, _ in first.values()):.0f} s once, if each is used first in "
        "a process of its own.\n",
        "## Circumstances\n",
        listed(facts),
        "",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["first"]:
        print(first_call(sys.argv[2]))
    elif sys.argv[1:] == ["text"]:
        (RESULTS / "corruptions.md").write_text(stored_text(), "utf-8")
    else:
        main()
