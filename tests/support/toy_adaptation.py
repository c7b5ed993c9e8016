"""A study of domain adaptation in miniature: three domains of coloured images, heads of a moment.

The colours of a domain are those of the others moved a little, and its own noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from two_domains import drawn

from shiftcal import studies

N = 60
SHIFTS = {"dawn": 0.0, "noon": 0.4, "dusk": 0.8}
SPEC = "python:two_domains:colour_features?key=colours-v1&raw=true&batch_size=20"
METHODS = ("vanilla", "ts", "cpcs", "transcal", "sac", "sts", "oracle")
TRAINERS = ("source-only", "dan", "mcc")
SEEDS, TASKS = 2, 2
NETWORKS = SEEDS * TASKS * len(TRAINERS)
EVALUATIONS = NETWORKS * len(METHODS)
# Clean and two severities of the two domains that are a source; the third is a target only.
IMAGES = N * (3 + 3 + 1)

PLAN = f"""\
study = "adaptation"
about = "Three times of day."
seeds = [0, 1]  # a comment
bins = 3
tasks = [["dawn", "noon"], ["noon", "dusk"]]
trainers = ["source-only", "dan", {{ name = "mcc", label = "MCC" }}]
methods = ["vanilla", "ts", "cpcs", "transcal", "sac", "sts", "oracle"]

[network]
backbone = "{SPEC}"
frozen = true

[training.settings]
iterations = 30
lr = 0.2
batch_size = 8
bottleneck = 8

[calibration]
severities = [1, 3]

[[domains]]
name = "dawn"
short = "A"
images = ["{{data}}/elsewhere.npz", "{{data}}/dawn.npz"]
fetch = "Dawn: get up early, and put it into {{data}}"

[[domains]]
name = "noon"
short = "N"
images = [["{{data}}/noon-1.npz", "{{data}}/noon-2.npz"]]
fetch = "Noon: wait, and put it into {{data}}"

[[domains]]
name = "dusk"
short = "D"
images = "{{data}}/dusk.npz"
fetch = "Dusk: wait longer, and put it into {{data}}"
"""


def write_domains(folder):
    """The images of all domains, noon in two parts."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, shift) in enumerate(SHIFTS.items(), 1):
        images, labels = drawn(N, shift=shift, seed=seed)
        parts = {f"{name}-1": slice(None, 24), f"{name}-2": slice(24, None)}
        for part, rows in parts.items() if name == "noon" else {name: slice(None)}.items():
            np.savez(folder / f"{part}.npz", images=images[rows], labels=labels[rows])
    return folder


def toy_plan(data, text=PLAN):
    """The plan; ``text`` may be a changed one."""
    return replace(studies.read_plan(text, data=data), stored=False)  # we know its backbone
