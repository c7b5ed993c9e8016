"""Building a surrogate bank, from images to files: shiftcal and the script everyone writes first.

ResNet-20 at 32 pixels in onnxruntime, the paper's 16 corruptions at five severities. For every
corruption in turn, on the same machine in the same minute: the network alone on batches that are
ready (the forward time), the whole of shiftcal (corrupting, preprocessing, running, writing shards
and the bank), and the script (imagecorruptions in a DataLoader with two workers, then the same file
in the same onnxruntime; in an environment of its own, see ``peers/``), which is given as many
images as it corrupts in some seconds, at most as many as we. Each is repeated equally often, and
the least time counts. Then the network in torch, and one worker against two.
"""

from __future__ import annotations

import functools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from timing import in_fresh_process, run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
PEER = ROOT / ".venv-peers-scoring" / "bin" / "python"
# The paper's sixteen: all but motion blur, snow and JPEG.
CORRUPTIONS = (
    "brightness", "contrast", "defocus_blur", "elastic_transform", "fog", "frost", "gaussian_blur",
    "gaussian_noise", "glass_blur", "impulse_noise", "pixelate", "saturate", "shot_noise",
    "spatter", "speckle_noise", "zoom_blur",
)  # fmt: skip
SEVERITIES = (1, 2, 3, 4, 5)
N = 1024  # images, for us and for the network alone
LEAST_PEER = 64  # for the script, whose glass blur takes a tenth of a second an image
SECONDS_PEER = 5
REPEATS = 2


def network(folder: Path) -> Path:
    """A ResNet-20 as an ONNX file, with random weights: they do not change the time."""
    import torch
    from onnx_resnet import resnet20_onnx

    from shiftcal import models

    torch.manual_seed(0)
    weights = {k: v.numpy() for k, v in models.cifar_resnet(20).state_dict().items()}
    file = folder / "resnet20.onnx"
    file.write_bytes(resnet20_onnx(weights))
    return file


def photographs(n: int) -> np.ndarray:
    """Pieces of the two photographs that come with scikit-learn, ``(n, 32, 32, 3)``."""
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(3)
    sources = load_sample_images().images
    corners = [(rng.integers(2), rng.integers(395), rng.integers(608)) for _ in range(n)]
    return np.stack([sources[s][top : top + 32, left : left + 32] for s, top, left in corners])


def least(function: Callable[[], float], repeats: int = REPEATS) -> float:
    """The least of some times: what is added to it by other work on the machine is left out."""
    return min(function() for _ in range(repeats))


class Script:
    """The script in its own environment, asked one corruption at a time."""

    def __init__(self, file: Path, images: Path, workers: int) -> None:
        program = [str(PEER), str(HERE / "peers" / "obvious_script.py")]
        self.process = subprocess.Popen(
            [*program, str(file), str(images), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def images_for(self, name: str) -> int:
        """How many images it is timed with: the more, the less its start-up counts."""
        self.seconds(name, 8)
        one = (self.seconds(name, 40) - self.seconds(name, 8)) / 32
        return int(np.clip(SECONDS_PEER / max(one, 1e-4), LEAST_PEER, N))

    def seconds(self, name: str, n: int) -> float:
        """What it takes for so many images at all severities."""
        task = {"name": name, "n": n, "severities": SEVERITIES}
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        return float(json.loads(self.process.stdout.readline()))


def compared(name: str) -> dict[str, float]:
    """Seconds an image of a corruption takes at five severities."""
    from shiftcal import models

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        file, images = network(folder), photographs(N)
        np.save(folder / "images.npy", images)
        labels = np.arange(N) % 10
        model = models.as_model(file, preprocessing=models.cifar_resnet(20).preprocessing)
        size = model.size_of_batches(images[:64])
        batches = [model.preprocessing.apply(images[s : s + size]) for s in range(0, N, size)]
        one_bank(model, images, labels, name, folder)
        script = Script(file, folder / "images.npy", 2)
        n = script.images_for(name)
        alone, ours, theirs = [], [], []
        for _ in range(REPEATS):
            alone.append(forward(model, batches) / N)
            ours.append(one_bank(model, images, labels, name, folder) / N)
            theirs.append(script.seconds(name, n) / n)
        script.process.communicate()
    return {"forward": min(alone), "shiftcal": min(ours), "script": min(theirs), "batch": size}


def in_torch(folder: Path) -> dict[str, float]:
    """The same in eager torch, for pixelate: the network alone, and the whole of shiftcal."""
    from shiftcal import models

    images, labels = photographs(512), np.arange(512) % 10
    model = models.as_model(models.cifar_resnet(20))
    size = model.size_of_batches(images[:64])
    batches = [model.preprocessing.apply(images[s : s + size]) for s in range(0, 512, size)]
    one_bank(model, images, labels, "pixelate", folder)
    forward(model, batches)
    alone, whole = [], []
    for _ in range(REPEATS + 1):
        alone.append(forward(model, batches) / len(images))
        whole.append(one_bank(model, images, labels, "pixelate", folder) / len(images))
    return {"forward": min(alone), "shiftcal": min(whole)}


def forward(model: object, batches: list[np.ndarray]) -> float:
    """The network alone: five times all images, which are ready in memory."""
    start = time.perf_counter()
    for _ in SEVERITIES:
        for batch in batches:
            model._forward(batch)
    return time.perf_counter() - start


def one_bank(model: object, images: np.ndarray, labels: np.ndarray, name: str, to: Path) -> float:
    """Five sets of a corruption, as files; the clean set is there already and is not timed."""
    from shiftcal.surrogates.build import build_bank, conditions_of

    target = to / "bank"
    shutil.rmtree(target, ignore_errors=True)
    clean, *corrupted = conditions_of(name, SEVERITIES)
    build_bank(model, images, target, labels=labels, conditions=[clean])
    start = time.perf_counter()
    build_bank(model, images, target, labels=labels, conditions=[clean, *corrupted])
    return time.perf_counter() - start


def scaling(folder: Path) -> dict[str, float]:
    """Images a second with one worker of one thread, and with two."""
    import shiftcal as sc
    from shiftcal import models
    from shiftcal.scoring.engines import LocalEngine

    file, plain = network(folder), models.cifar_resnet(20).preprocessing
    many = np.tile(photographs(N), (8, 1, 1, 1))
    rates = {}
    for name, workers, threads in (("one worker, one thread", 1, 1), ("two workers", 2, 1)):
        model = models.as_model(file, preprocessing=plain, batch_size=128, threads=threads)
        engine = LocalEngine(workers=workers)
        sc.score(model, many[:2048], engine=engine)  # starts the workers

        def once(model: object = model, engine: object = engine) -> float:
            start = time.perf_counter()
            sc.score(model, many, engine=engine)
            return time.perf_counter() - start

        rates[name] = len(many) / least(once)
    return rates


def page(found: dict) -> str:
    rows: dict[str, dict[str, float]] = {name: found[name] for name in CORRUPTIONS}
    over = {name: row["shiftcal"] / row["forward"] for name, row in rows.items()}
    total = {key: sum(row[key] for row in rows.values()) for key in next(iter(rows.values()))}
    faster = {name: row["script"] / row["shiftcal"] for name, row in rows.items()}
    torch, (one, two) = found["torch"], found["workers"].values()
    lines = [
        "# Building a surrogate bank\n",
        "Microseconds an image, mean of five severities, least of the repeats: ResNet-20 at 32 "
        f"pixels in onnxruntime, batches of {rows['fog']['batch']:.0f}, all processors. The script "
        "is imagecorruptions in a DataLoader with two workers, then the same network.\n",
        "| corruption | network alone | shiftcal | over the network | script | shiftcal faster |",
        "|---" * 6 + "|",
    ]
    lines += [
        f"| {name} | {1e6 * row['forward'] / 5:.0f} | {1e6 * row['shiftcal'] / 5:.0f} | "
        f"{over[name]:.3f}x | {1e6 * row['script'] / 5:.0f} | {faster[name]:.1f}x |"
        for name, row in rows.items()
    ]
    lines += [
        "",
        f"- The whole of shiftcal takes **{statistics.mean(over.values()):.3f}x** the network's "
        f"own time in the mean over the sixteen corruptions (from {min(over.values()):.3f} to "
        f"{max(over.values()):.3f}).",
        f"- All sixteen together: **{total['script'] / total['shiftcal']:.1f}x** as fast as the "
        f"script; the median over the corruptions is {statistics.median(faster.values()):.1f}x, "
        f"the least {min(faster.values()):.1f}x.",
        f"- In eager torch, pixelate: {1e6 * torch['forward'] / 5:.0f} microseconds alone, "
        f"{1e6 * torch['shiftcal'] / 5:.0f} with everything, "
        f"{torch['shiftcal'] / torch['forward']:.3f}x.",
        f"- Two worker processes of one thread score {two:,.0f} images a second, one {one:,.0f}: "
        f"**{two / one:.2f}x**.",
    ]
    return "\n".join(lines)


def part(function: Callable[[Path], dict[str, float]]) -> dict[str, float]:
    """In a process of its own, since threads of onnxruntime or torch that stay would disturb it."""
    return json.loads(in_fresh_process(__file__, "only", function.__name__))


if __name__ == "__main__":
    if sys.argv[1:2] == ["only"]:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({"in_torch": in_torch, "scaling": scaling}[sys.argv[2]](Path(folder))))
    else:
        parts = {name: functools.partial(compared, name) for name in CORRUPTIONS}
        parts["torch"] = functools.partial(part, in_torch)
        parts["workers"] = functools.partial(part, scaling)
        run("scoring", parts, page)
