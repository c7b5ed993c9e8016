"""The rivals that need the model itself: PseudoCal, and STS on Tomani's perturbed data.

``python benchmarks/accuracy/beyond_images.py``, with ResNet-20: 1,000 calibration images and 1,000
test images, 12 corruptions at severity 1, 3 and 5. SAC and Rehearsal beside them, on the same
images. Writes ``results/beyond-images.json``; needs the scores that ``beyond.py resnet20`` makes.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

import shiftcal as sc
from shiftcal.corruptions import Strengths

sys.path.insert(0, str(Path(__file__).parent))
from beyond import BINS, RESULTS, halves, subset
from beyond_banks import CIFAR, FAMILY, TWELVE

from studies import ROOT, RUNS, commit_of, data_folder, resnet20

IMAGES, SEED = 1000, 0
SEVERITIES = (1, 3, 5)
# Tomani et al. (2021): Gaussian noise at which the accuracy on the calibration images falls in six
# even steps from 92 % to guessing, found by bisection.
EVEN = (
    0.03162277660168379,
    0.04869675251658631,
    0.06042963902381328,
    0.07498942093324558,
    0.1036632928437698,
    0.4216965034285823,
)


def spread(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """As many rows of every class."""
    each = IMAGES // (labels.max() + 1)
    return np.sort(np.concatenate([rows[labels[rows] == k][:each] for k in np.unique(labels)]))


def error(method: sc.methods.Method, scores: sc.Scores, labels: np.ndarray) -> float:
    right = scores.logits().argmax(axis=1) == labels
    return sc.ece(method.confidence(scores), right, n_bins=BINS)


def main() -> None:
    warnings.simplefilter("ignore")
    data = data_folder()
    model = sc.models.as_model(resnet20(data, RUNS).spec)
    images = sc.datasets.as_image_set(CIFAR.format(data=data))
    bank = sc.SurrogateBank.load(RUNS / "beyond" / "resnet20")
    labels = bank.clean.labels
    rows, test = (spread(labels, half) for half in halves(labels, SEED))
    calibration = images.subset(rows)
    pixels = np.stack([images[int(i)] for i in test])
    noise = Strengths("gaussian_noise", EVEN, name="gaussian_noise_even")
    even = sc.SurrogateBank.synthesize(model, calibration, corruption=noise, seed=SEED)
    pixelate = subset(bank, rows, lambda c: c == "pixelate")
    fixed = {
        "ts": sc.TS().fit(pixelate),
        "sts": sc.STS().fit(pixelate),
        "sts on evenly spaced noise": sc.STS().fit(even),
        "sac": sc.SAC().fit(pixelate),
        "sac on evenly spaced noise": sc.SAC().fit(even),
        "pseudocal": sc.PseudoCal().fit(pixelate),
    }
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in (None, *TWELVE):
        others = subset(bank, rows, lambda c, n=name: n is None or FAMILY[c] != FAMILY[n])
        methods = {**fixed, "rehearsal": sc.Rehearsal().fit(others)}
        for severity in SEVERITIES if name else (0,):
            seen = sc.corrupt(pixels, name, severity=severity, seed=SEED) if name else pixels
            scores = sc.score(model, seen)
            mixed = sc.scoring.score_mixed(model, seen, scores, seed=SEED)
            for called, method in methods.items():
                method.adapt(scores, mixed=mixed)
                value = error(method, scores, labels[test])
                found[called][f"severity {severity}"].append(value)
    means = {
        name: {kind: float(np.mean(values)) for kind, values in kinds.items()}
        for name, kinds in found.items()
    }
    ladder = [[one.severity, one.accuracy] for one in even.summaries()]
    document = {**commit_of(ROOT), "ladder": ladder, "ece": means}
    (RESULTS / "beyond-images.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    print(json.dumps(means, indent=1))


if __name__ == "__main__":
    main()
