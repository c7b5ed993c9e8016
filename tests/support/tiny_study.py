"""A study of a moment: ninety small images of three colours, and a network of mean colours."""

from __future__ import annotations

import numpy as np
from onnx_resnet import mean_colour_onnx

N, SIDE = 90, 16
# Sets that are scored: clean, pixelate 1 and 3, contrast and brightness 2 and 5.
SETS = 7
METHODS = 5
TARGETS = 5
SEEDS = 2
EVALUATIONS = SEEDS * TARGETS * METHODS
PLAN = """\
study = "synthetic"
about = "Three colours."
seeds = [0, 1]  # a comment
bins = 4
methods = ["vanilla", "ts", "sts", "sac", { name = "oracle", label = "Oracle" }]

[model]
spec = ["net.onnx"]

[data]
images = ["{data}/images.npz"]
fetch = "The colours: paint them, into {data}"

[calibration]
severities = [1, 3]
images = 45

[shifts]
corruptions = ["contrast", "brightness"]
severities = [0, 2, 5]
"""


def colours(n=N, *, seed=0):
    """Images whose class is their strongest colour, mostly, and the classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    images = rng.integers(60, 160, (n, SIDE, SIDE, 3))
    images[np.arange(n), ..., labels] += rng.integers(-15, 60, n)[:, None, None]
    return images.astype(np.uint8), labels


def write_study(folder, plan=PLAN):
    """``mine.toml``, ``net.onnx`` and ``images.npz`` in a folder."""
    images, labels = colours()
    np.savez(folder / "images.npz", images=images, labels=labels)
    (folder / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, SIDE, SIDE]))
    (folder / "mine.toml").write_text(plan, "utf-8")
