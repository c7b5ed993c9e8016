"""The example that ships with shiftcal: ``python benchmarks/accuracy/example.py``.

Writes ``src/shiftcal/example.npz``, which :func:`shiftcal.load_example` reads: logits of ResNet-20
(github.com/akamaster/pytorch_resnet_cifar10, BSD 2-Clause) for the 10,000 test images of CIFAR-10
(Krizhevsky, 2009). The file holds logits and labels; it holds no image.

The choice was fixed before any method was run on it. The bank: the first 1,000 images, clean and
with two corruptions of each family at severities 1, 3 and 5. The targets: clean, and two other
corruptions of each family at severity 4, which the bank has of nothing; each is of another 1,000
images.

Stored is the root of each logit's distance to the largest of its row, in 8 bits with one scale per
set. ECE over bins changes by tenths of a point when a few rows change bins, so the script compares
what does not jump: it fails if rounding changes a prediction, a method's smooth ECE on any target,
or its mean ECE over all targets, the latter two by more than 0.1 points.

Corrupts and scores 960,000 images first, into ``runs/`` below the current folder, unless
``beyond.py`` has done so. Needs the real data (``studies.py`` says where).
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import shiftcal as sc
from shiftcal.files import atomic_write

sys.path.insert(0, str(Path(__file__).parent))
from beyond_banks import banks

from studies import RUNS, WEIGHTS, data_folder

OUT = Path(sc.__file__).parent / "example.npz"
CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
SOURCES = (
    "gaussian_noise", "impulse_noise", "defocus_blur", "motion_blur",
    "brightness", "snow", "elastic_transform", "pixelate",
)  # fmt: skip
TARGETS = (
    "shot_noise", "speckle_noise", "gaussian_blur", "zoom_blur",
    "fog", "frost", "contrast", "jpeg_compression",
)  # fmt: skip
ROWS = 1000
MOST_BYTES, MOST_POINTS = 400_000, 0.1
METHODS = ("vanilla", "ts", "sts", "sac", "rehearsal")


def quantised(logits: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """Roots of the distances to the largest logit of a row as uint8, and their scale."""
    roots = np.sqrt(logits.max(axis=1, keepdims=True) - logits)
    scale = np.float32(roots.max() / 255)
    return np.rint(roots / scale).astype(np.uint8), scale


def errors(bank: sc.SurrogateBank, targets: dict[str, sc.Scores]) -> np.ndarray:
    """ECE and smooth ECE in points, two x methods x targets."""
    fitted = [sc.methods.get(name)().fit(bank) for name in METHODS]
    return np.array(
        [
            [[100 * metric(*judged(one, target)) for target in targets.values()] for one in fitted]
            for metric in (sc.ece, sc.smooth_ece)
        ]
    )


def judged(method: sc.methods.Method, target: sc.Scores) -> tuple[np.ndarray, np.ndarray]:
    method.adapt(target)
    probs = method.predict_proba(target)
    return probs.max(axis=1), probs.argmax(axis=1) == target.labels


def main() -> None:
    whole = banks(("resnet20",), data_folder(), RUNS)["resnet20"]
    sets = {one.name: one for one in whole}
    labels = whole.clean.labels
    chosen = ["clean", *(f"{name}, severity {level}" for name in SOURCES for level in (1, 3, 5))]
    targets = {"clean": "clean", **{name: f"{name}, severity 4" for name in TARGETS}}
    rows = [slice(ROWS * (j + 1), ROWS * (j + 2)) for j in range(len(targets))]
    parts = [sets[name].logits[:ROWS] for name in chosen]
    parts += [sets[name].logits[part] for name, part in zip(targets.values(), rows, strict=True)]
    codes, scales = zip(*map(quantised, parts), strict=True)
    about = {
        "bank": [[sets[name].corruption, sets[name].severity] for name in chosen],
        "targets": list(targets),
        "classes": CLASSES,
        "source": "logits of ResNet-20 for the CIFAR-10 test images, corrupted by shiftcal: "
        "benchmarks/accuracy/example.py",
        "network": f"github.com/akamaster/pytorch_resnet_cifar10, {Path(WEIGHTS).name}",
        "licence": "of the network: BSD 2-Clause, copyright 2018 Yerlan Idelbayev",
    }
    with atomic_write(OUT) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            roots=np.stack(codes),
            scales=np.array(scales),
            labels=np.stack([labels[:ROWS], *(labels[part] for part in rows)]).astype(np.uint8),
            about=np.array(json.dumps(about)),
        )
    bank, read = sc.load_example()
    exact_bank = sc.SurrogateBank(
        [replace(one, logits=z) for one, z in zip(bank, parts, strict=False)]
    )
    exact = {
        name: sc.Scores(sets[where].logits[part], labels=labels[part])
        for (name, where), part in zip(targets.items(), rows, strict=True)
    }
    before, after = errors(exact_bank, exact), errors(bank, read)
    print(f"{'ECE, points':18}", *(f"{name:>9}" for name in METHODS))
    for j, name in enumerate(targets):
        print(f"{name:18}", *(f"{value:9.2f}" for value in after[0, :, j]))
    means, smooth = np.abs((after - before)[0].mean(axis=1)).max(), np.abs(after - before)[1].max()
    changed = sum(
        int((read[name].values.argmax(axis=1) != exact[name].values.argmax(axis=1)).sum())
        for name in targets
    )
    size = OUT.stat().st_size
    print(f"{size:,} bytes. Rounding changes {changed} predictions, mean ECE by {means:.3f} and")
    print(f"smooth ECE by {smooth:.3f} points at most.")
    if size > MOST_BYTES or changed or max(means, smooth) > MOST_POINTS:
        raise SystemExit("the example is too large, or too coarse")


if __name__ == "__main__":
    main()
