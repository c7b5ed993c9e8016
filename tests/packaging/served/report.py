"""A page is written."""

import sys
from pathlib import Path

import numpy as np

from shiftcal.cli.main import run

rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 300)
for name, size in (("clean", 3), ("harder", 1)):
    logits = 4 * (rng.standard_normal((300, 3)) + size * np.eye(3)[labels])
    np.savez(f"{name}.npz", logits=logits, labels=labels)
sets = ["--surrogate", "clean.npz", "--surrogate", "harder.npz"]
told = ["--target", "harder.npz", "--resamples", "20", "--method", "sac"]
if status := run(["report", *sets, *told, "-o", "report.html"]):
    sys.exit(status)
assert "</html>" in Path("report.html").read_text("utf-8")
