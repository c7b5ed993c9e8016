"""The nineteen corruptions at 32 and 224 pixels: shiftcal and its peers, image for image.

On the same images, in turn: ours in this process, every peer in a process of its own environment
(see ``peers/``). With one thread, then with two at severity 3 (of the peers, OpenCV takes them).
"""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import run

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
Seconds = dict[str, dict[str, float | None]]  # an image, by corruption and tool


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


class Peers:
    """The peers' processes, asked one thing at a time."""

    def __init__(self, side: int, images: np.ndarray, *, threads: int) -> None:
        self.side, self.threads = side, threads
        self.folder = tempfile.TemporaryDirectory()
        self.images = str(Path(self.folder.name) / "images.npy")
        np.save(self.images, images[:20])
        self.processes = {
            name: subprocess.Popen(
                [str(folder / "bin" / "python"), str(HERE / "peers" / "worker.py"), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for name, folder in PEERS.items()
        }

    def seconds(self, peer: str, name: str, severity: int) -> float | None:
        """Median seconds an image takes, or None if the peer has no such corruption."""
        if (peer, name, self.side) in HOPELESS:
            return None
        task = {
            "name": name, "severity": severity, "images": self.images, "seconds": 0.15,
            "threads": self.threads,
        }  # fmt: skip
        process = self.processes[peer]
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def close(self) -> None:
        """End the processes."""
        for process in self.processes.values():
            process.communicate()
        self.folder.cleanup()


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


def one_thread(side: int) -> Seconds:
    """Means over the severities."""
    images = photographs(side, BATCH[side])
    peers = Peers(side, images, threads=1)
    found: Seconds = {}
    for name in sc.corruptions.names():
        rows: dict[str, list[float | None]] = {}
        for severity in range(1, 6):
            row = {"shiftcal": ours(images, name, severity, threads=1)}
            row |= {peer: peers.seconds(peer, name, severity) for peer in PEERS}
            row["shiftcal, image by image"] = one_by_one(images, name, severity)
            if side == 32:
                strengths = {"threads": 1, "table": "imagenet"}
                row["shiftcal, ImageNet's strengths"] = ours(images, name, severity, **strengths)
            for tool, seconds in row.items():
                rows.setdefault(tool, []).append(seconds)
        found[name] = {
            tool: None if None in times else statistics.mean(times) for tool, times in rows.items()
        }
        print(side, name, {t: s and round(1e6 * s, 1) for t, s in found[name].items()}, flush=True)
    peers.close()
    return found


def two_threads(side: int) -> Seconds:
    """At severity 3; ours is the best of nine, in turn with one thread.

    The best, since whatever else runs on the machine hits two threads more often than one.
    """
    images = np.resize(photographs(side, 200), (MANY[side], side, side, 3))
    peers = Peers(side, images, threads=2)
    found: Seconds = {}
    for name in sc.corruptions.names():
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(9):
            for threads, taken in times.items():
                begin = time.perf_counter()
                sc.corrupt(images, name, severity=3, threads=threads)
                taken.append((time.perf_counter() - begin) / len(images))
        found[name] = {"one thread": min(times[1]), "shiftcal": min(times[2])}
        found[name] |= {peer: peers.seconds(peer, name, 3) for peer in PEERS}
    peers.close()
    return found


def one_sum(side: int) -> float:
    """Seconds an image that one ``np.sum`` takes."""
    images = photographs(side, BATCH[side])
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        images.sum()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / len(images)


def ratios(found: Seconds, tool: str = "shiftcal", *, kindred: bool = False) -> dict[str, float]:
    """How many times as long the fastest peer takes; Albumentations' others only if ``kindred``."""
    return {
        name: min(
            times[peer]
            for peer in PEERS
            if times[peer] is not None and (peer != "albumentations" or kindred or name in SAME)
        )
        / times[tool]
        for name, times in found.items()
    }


def mean(values: dict[str, float]) -> str:
    return f"{statistics.geometric_mean(values.values()):.1f}x"


def table(found: Seconds) -> str:
    def cell(seconds: float | None) -> str:
        if seconds is None:
            return ""
        return f"{1e6 * seconds:,.0f}" if seconds > 1e-5 else f"{1e6 * seconds:.1f}"

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


def slower(compared: dict[str, float]) -> str:
    """Those of which a peer takes less time, and what share of ours."""
    return ", ".join(f"{n} ({r:.2f}x)" for n, r in compared.items() if r < 1) or "nowhere"


def page(found: dict) -> str:
    parts = [
        "# Corruptions: microseconds an image",
        "One thread, photographs, the mean over severities 1 to 5 of the median time of an image. "
        "shiftcal is given batches (and, image by image, single images, as the peers are). At 32 "
        "pixels shiftcal has CIFAR-10-C's strengths, and the peers, which know no others, "
        "ImageNet-C's. In brackets: against Albumentations' transforms of the same name that do "
        "something else. Written by `corruptions.py`.",
    ]
    for side in BATCH:
        one, two = found[f"{side}"], found[f"{side}-two"]
        same, kindred = ratios(one), ratios(one, kindred=True)
        single = ratios(one, "shiftcal, image by image")
        scaling = [sum(row[t] for row in two.values()) for t in ("one thread", "shiftcal")]
        parts += [f"## {side} pixels", table(one)]
        lines = [
            f"Geometric mean: **{mean(same)}** the fastest peer with the same operation, "
            f"{mean(kindred)} the fastest of any operation of that name, {mean(single)} image by "
            f"image. One `np.sum` of an image takes {1e6 * found['sum'][str(side)]:.1f} us.",
            f"With two threads, severity 3, {MANY[side]:,} images: {mean(ratios(two))} the fastest "
            f"peer with the same operation; {scaling[0] / scaling[1]:.2f} times as fast as with "
            "one thread on the sum of all.",
            f"In batches, slower than a peer: {slower(kindred)}. Image by image, slower than a "
            f"peer with the same operation: {slower(single)}.",
        ]
        if side == 32:
            alike = ratios(one, "shiftcal, ImageNet's strengths")
            lines.append(
                f"With ImageNet's strengths at 32 pixels too, as the peers: {mean(alike)}."
            )
        parts.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    parts = {f"{side}": functools.partial(one_thread, side) for side in BATCH}
    parts |= {f"{side}-two": functools.partial(two_threads, side) for side in BATCH}
    run("corruptions", parts | {"sum": lambda: {side: one_sum(side) for side in BATCH}}, page)
