"""The numbers of the README: all methods on one set of targets, with accuracy and risk-coverage.

``python benchmarks/accuracy/headline.py`` writes ``results/headline.json``. ResNet-20, CIFAR-10, 12
corruptions x 5 severities, five splits into 5,000 calibration and 5,000 test images, as in
``beyond.py``: the surrogates of TS, STS and SAC are of pixelate, those of Rehearsal and Realign of
every family but the target's. docs/figures/results.py makes the chart and the table of it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import shiftcal as sc

sys.path.insert(0, str(Path(__file__).parent))
from beyond import BINS, SEEDS, halves, subset
from beyond_banks import FAMILY, TWELVE, banks

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULT = Path(__file__).parent / "results" / "headline.json"
COVERAGE = np.arange(1, 21) / 20


def measured(probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Accuracy, ECE, NLL, AURC, and the risk at every coverage."""
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == labels
    wrong = ~correct[np.argsort(-confidence, kind="stable")]
    risk = np.cumsum(wrong) / np.arange(1, len(labels) + 1)
    nll = -np.log(np.maximum(probs[np.arange(len(labels)), labels], 1e-12)).mean()
    at = risk[np.rint(COVERAGE * len(labels)).astype(int) - 1]
    ece = sc.ece(confidence, correct, n_bins=BINS)
    return np.array([correct.mean(), ece, nll, risk.mean(), *at])


def one_split(seed: int) -> dict[str, list[float]]:
    """Means over the 60 targets, and of the clean test images as ``clean``."""
    warnings.simplefilter("ignore")
    bank = sc.SurrogateBank.load(RUNS / "beyond" / "resnet20")
    rows, test = halves(bank.clean.labels, seed)
    pixelate = subset(bank, rows, lambda c: c == "pixelate")
    fixed = {name: sc.methods.get(name)().fit(pixelate) for name in ("vanilla", "ts", "sts", "sac")}
    labels = bank.clean.labels[test]
    clean = sc.TS().fit(pixelate).predict_proba(bank.clean.logits[test])
    found: dict[str, list[np.ndarray]] = {"clean": [measured(clean, labels)]}
    for family in sorted({FAMILY[name] for name in TWELVE}):
        others = subset(bank, rows, lambda c, f=family: FAMILY[c] != f)
        methods = fixed | {name: sc.methods.get(name)().fit(others) for name in ("rehearsal", "realign")}
        for s in bank:
            if s.corruption in TWELVE and FAMILY[s.corruption] == family:
                z = s.logits[test]
                for method in methods.values():
                    method.adapt(z)
                for name, one in {**methods, "oracle": sc.TS().fit(z, labels)}.items():
                    found.setdefault(name, []).append(measured(one.predict_proba(z), labels))
    return {name: np.mean(values, axis=0).tolist() for name, values in found.items()}


def main() -> None:
    RUNS.mkdir(exist_ok=True)
    banks(("resnet20",), data_folder(), RUNS)
    with ProcessPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        splits = list(pool.map(one_split, SEEDS))
    means: dict[str, Any] = {}
    for name in splits[0]:
        accuracy, ece, nll, aurc, *risk = np.mean([s[name] for s in splits], axis=0).tolist()
        means[name] = {"accuracy": accuracy, "ece": ece, "nll": nll, "aurc": aurc, "risk": risk}
        print(f"{name:10} {accuracy:.4f} {ece:.4f} {nll:.3f} {aurc:.4f}")
    found = {**commit_of(ROOT), "splits": len(splits), "coverage": COVERAGE.tolist(), "means": means}
    RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
