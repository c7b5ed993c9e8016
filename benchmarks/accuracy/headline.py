"""The rows of the README's table that ``realign.py`` lacks: raw softmax, STS and SAC.

``python benchmarks/accuracy/headline.py [SPLIT ...]`` writes ``results/headline.json``: means over
the 60 corrupted targets (``full``) of ``realign.py resnet20``, with the same calibration and test
images. The surrogates are of pixelate, as in ``beyond.py``. docs/figures/benchmarks.py makes the
chart and the table of both results.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import shiftcal as sc

sys.path.insert(0, str(Path(__file__).parent))
from beyond import halves, subset
from beyond_banks import TWELVE, banks
from realign import ROWS, SPLITS, Target, scored

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULT = Path(__file__).parent / "results" / "headline.json"
METHODS = ("vanilla", "sts", "sac")


def one_split(seed: int) -> dict[str, dict[str, float]]:
    """Means over the targets, of every method."""
    bank = sc.SurrogateBank.load(RUNS / "beyond" / "resnet20")
    rows, test = halves(bank.clean.labels, seed)
    rng = np.random.default_rng((seed, 2))  # as in realign.py
    rows, test = (np.sort(rng.choice(r, min(ROWS, len(r)), replace=False)) for r in (rows, test))
    pixelate = subset(bank, rows, lambda c: c == "pixelate")
    labels, found = bank.clean.labels[test], {}
    for name in METHODS:
        method, records = sc.methods.get(name)().fit(pixelate), []
        for s in bank:
            if s.corruption in TWELVE:
                z = s.logits[test]
                method.adapt(z)
                target = Target("full", s.name, z, z, labels)
                records.append(scored(method.predict_proba(z), method.confidence(z), target))
        found[name] = {key: float(np.mean([r[key] for r in records])) for key in records[0]}
    return found


def main(seeds: list[int]) -> None:
    warnings.simplefilter("ignore")
    banks(("resnet20",), data_folder(), RUNS)
    known = json.loads(RESULT.read_text("utf-8"))["splits"] if RESULT.exists() else {}
    splits = {**known, **{str(seed): one_split(seed) for seed in seeds}}
    found = {**commit_of(ROOT), "splits": dict(sorted(splits.items()))}
    RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or list(SPLITS["resnet20"]))
