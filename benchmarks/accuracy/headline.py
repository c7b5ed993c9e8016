"""The chart and the table of the README: all methods on ResNet-20, CIFAR-10 under 12 corruptions.

``python benchmarks/accuracy/headline.py [SPLIT ...]`` writes ``results/headline.json``: means over
60 targets (12 corruptions at five severities) of every split into 5,000 calibration and 5,000 test
images, with the error rate of the most confident 2, 4, ... 100 % of the rows. STS and SAC know
pixelate, Rehearsal and Realign all corruptions that are not of the target's family, as in
``beyond.py``. docs/figures/benchmarks.py makes the chart and the table. Five CPU minutes.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import shiftcal as sc

sys.path.insert(0, str(Path(__file__).parent))
from beyond import halves, subset
from beyond_banks import FAMILIES, FAMILY, TWELVE, banks
from realign import aurc

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULT = Path(__file__).parent / "results" / "headline.json"
COVERAGES = np.arange(1, 51) / 50


def scored(probs: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Of the predictions and confidences of ``probs``."""
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    wrong = ~correct[np.argsort(-confidence, kind="stable")]
    kept = np.rint(COVERAGES * len(labels)).astype(int)
    return {
        "accuracy": sc.accuracy(probs, labels),
        "ece": sc.ece(confidence, correct),
        "nll": float(-np.log(np.maximum(probs[np.arange(len(labels)), labels], 1e-12)).mean()),
        "aurc": aurc(confidence, correct),
        "risk": np.cumsum(wrong)[kept - 1] / kept,
    }


def one_split(seed: int) -> dict[str, dict[str, Any]]:
    """Means over the targets, of every method."""
    bank = sc.SurrogateBank.load(RUNS / "beyond" / "resnet20")
    rows, test = halves(bank.clean.labels, seed)
    pixelate = subset(bank, rows, lambda c: c == "pixelate")
    ladder = {n: sc.methods.get(n)().fit(pixelate) for n in ("vanilla", "ts", "sts", "sac")}
    records: dict[str, list[dict[str, Any]]] = {}
    for family in FAMILIES:
        realign = sc.Realign().fit(subset(bank, rows, lambda c, f=family: FAMILY[c] != f))
        methods = {**ladder, "rehearsal": realign.rehearsal_, "realign": realign}
        for s in bank:
            if s.corruption in TWELVE and FAMILY[s.corruption] == family:
                z, labels = s.logits[test], s.labels[test]
                for name, method in methods.items():
                    method.adapt(z)
                    records.setdefault(name, []).append(scored(method.predict_proba(z), labels))
                oracle = sc.TS().fit(z, labels).predict_proba(z)
                records.setdefault("oracle", []).append(scored(oracle, labels))
    return {
        name: {
            key: np.mean([r[key] for r in of_one], axis=0).round(5).tolist() for key in of_one[0]
        }
        for name, of_one in records.items()
    }


def main(seeds: list[int]) -> None:
    warnings.simplefilter("ignore")
    banks(("resnet20",), data_folder(), RUNS)
    known = json.loads(RESULT.read_text("utf-8"))["splits"] if RESULT.exists() else {}
    splits = {**known, **{str(seed): one_split(seed) for seed in seeds}}
    lines = ",\n".join(f'  "{seed}": {json.dumps(found)}' for seed, found in sorted(splits.items()))
    about = json.dumps(commit_of(ROOT), indent=1)[:-2]
    RESULT.write_text(f'{about},\n "splits": {{\n{lines}\n }}\n}}\n', "utf-8")


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [0, 1, 2, 3, 4])
