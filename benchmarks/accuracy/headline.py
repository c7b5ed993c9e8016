"""The numbers of the README: all methods on one set of targets, with accuracy and risk-coverage.

``python benchmarks/accuracy/headline.py`` writes ``results/headline.json``. ResNet-20, CIFAR-10, 12
corruptions x 5 severities, 5,000 calibration and 5,000 test images as in ``beyond.py``: the
surrogates of TS, STS and SAC are of pixelate, those of Rehearsal and Realign of every family but
the target's. Nothing was chosen by these three splits. docs/figures/benchmarks.py makes the charts
and the table.
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
from beyond import BINS, halves, subset
from beyond_banks import FAMILY, TWELVE, banks

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULT = Path(__file__).parent / "results" / "headline.json"
SEEDS = (2, 3, 4)  # Rehearsal and Realign were developed on 0 and 1
FAMILIES = sorted({FAMILY[name] for name in TWELVE})
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


def one_family(seed: int, family: str) -> list[dict[str, np.ndarray]]:
    """Every method on the targets of a family, with one split into calibration and test images."""
    warnings.simplefilter("ignore")
    bank = sc.SurrogateBank.load(RUNS / "beyond" / "resnet20")
    rows, test = halves(bank.clean.labels, seed)
    labels = bank.clean.labels[test]
    pixelate = subset(bank, rows, lambda c: c == "pixelate")
    others = subset(bank, rows, lambda c: FAMILY[c] != family)
    banks_of = dict.fromkeys(("vanilla", "ts", "sts", "sac"), pixelate)
    banks_of |= dict.fromkeys(("rehearsal", "realign"), others)
    methods = {name: sc.methods.get(name)().fit(own) for name, own in banks_of.items()}
    found = []
    for s in bank:
        if s.corruption in TWELVE and FAMILY[s.corruption] == family:
            z = s.logits[test]
            for method in methods.values():
                method.adapt(z)
            judged = {**methods, "oracle": sc.TS().fit(z, labels)}
            found.append({m: measured(one.predict_proba(z), labels) for m, one in judged.items()})
    return found


def main() -> None:
    RUNS.mkdir(exist_ok=True)
    banks(("resnet20",), data_folder(), RUNS)
    tasks = [(seed, family) for seed in SEEDS for family in FAMILIES]
    with ProcessPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        records = [r for part in pool.map(one_family, *zip(*tasks, strict=True)) for r in part]
    means: dict[str, Any] = {}
    for name in records[0]:
        accuracy, ece, nll, aurc, *risk = np.mean([r[name] for r in records], axis=0).tolist()
        means[name] = {"accuracy": accuracy, "ece": ece, "nll": nll, "aurc": aurc, "risk": risk}
        print(f"{name:10} {accuracy:.4f} {ece:.4f} {nll:.3f} {aurc:.4f}")
    found = {**commit_of(ROOT), "splits": SEEDS, "targets": len(records)}
    found |= {"coverage": COVERAGE.tolist(), "means": means}
    RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
