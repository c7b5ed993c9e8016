"""Adapted networks: the agreement of two of them against every other way to calibrate one.

``python benchmarks/accuracy/agreement.py`` takes the networks that ``domains.py pacs
office-caltech`` trained, in ``runs/``, and keeps means in ``results/agreement.json`` and every
network next to it. Networks that are not trained yet are left out, a task with a missing trainer
too.

Of every network, T is fitted with what *another* adapted network predicts for the target as labels
(``second``: mean over the others, one at a time; ``second and sts``: the geometric mean of that T
and STS's; ``all others``: the predictions of all of them together), and its accuracy is estimated
by the share of rows where the two predict the same class (:func:`shiftcal.estimates.agreement`).

All was chosen on tasks of PACS with seed 0, ``pacs-chosen``: to art painting and cartoon from all
others, and from art painting to photo. ``pacs-rest`` and ``office-caltech`` were not chosen by.

What was tried on six of them (all but cartoon to art painting; 42 networks with source-only ones;
mean ECE relative to the oracle temperature's 5.7 %; PseudoCal on mixtures of the held-out images):

- TS 2.60, TransCal 2.40, raw 2.46, ACE 2.48, SAC 2.07, Rehearsal 2.07, STS 1.80, PseudoCal 1.57.
- Mean confidence set to an accuracy: the true one 0.95, agreement with all other adapted networks
  1.32, with one 1.48 (mean over which), the least 2.41 and the largest 1.76 of the agreements, with
  the source-only network 2.50, mean of that and STS's 1.54, ATC 2.05, DoC 2.56, Rehearsal's
  accuracy 2.00, share of equal predictions under pixelate 2.16, or among the five nearest
  neighbours 2.16 (features of the source-only network 1.57).
- T of least NLL on labels from other networks: all others together 1.34, mean of log T over them
  1.36, one 1.51, their majority 1.61, the source-only network 2.44; on the mean probabilities of
  all networks 1.42, of the others 1.52, of the source-only network 3.27; on pixelated target images
  labelled by the network itself 1.77.
- Geometric means: second and STS 1.54, second and PseudoCal 1.40, all others and PseudoCal 1.33,
  PseudoCal and STS 1.64.
- Errors over disagreements as on the bank (clean and pixelated): 2.19, far too low an accuracy.
- Interval of the accuracy, one second: errors within a factor of 1.5, 1.75 and 2 of the
  disagreements hold 84, 92 and 94 %.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

import shiftcal as sc
from shiftcal.adaptation import Adapted
from shiftcal.numerics.softmax import p_max

sys.path.insert(0, str(Path(__file__).parent))
from beyond import BINS, RESULTS

from studies import ROOT, RUNS, commit_of

ADAPTED = ("dan", "jan", "cdan", "mdd", "safn", "mcc")
TRAINERS = ("source-only", *ADAPTED)
DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
CHOSEN = {
    *(f"{a}_to_{b}" for a, b in permutations(DOMAINS, 2) if b in DOMAINS[:2]),
    "art_painting_to_photo",
}
FITTED = ("vanilla", "ts", "sac", "sts", "rehearsal", "transcal", "realign")


def networks() -> dict[tuple[str, str, str], dict[str, Path]]:
    """Folders of the trained networks by data set, task and seed; of complete tasks only."""
    found: dict[tuple[str, str, str], dict[str, Path]] = defaultdict(dict)
    for name in ("pacs", "office-caltech"):
        for file in sorted((RUNS / name / "trainings").glob("*/*/seed-*/adapt.json")):
            task, trainer, seed = file.parent.parts[-3:]
            found[name, task, seed][trainer.rpartition("-")[0]] = file.parent
    return {key: folders for key, folders in found.items() if len(folders) == len(TRAINERS)}


def part_of(name: str, task: str, seed: str) -> str:
    if name == "pacs":
        return "pacs-chosen" if seed == "seed-0" and task in CHOSEN else "pacs-rest"
    return name


def judged(key: tuple[str, str, str], folders: dict[str, Path]) -> list[dict[str, Any]]:
    """Every network of a task."""
    warnings.simplefilter("ignore")
    runs = {trainer: Adapted.open(folder) for trainer, folder in folders.items()}
    predicted = {trainer: run.target.values.argmax(axis=1) for trainer, run in runs.items()}
    return [one_network(key, trainer, runs, predicted) for trainer in TRAINERS]


def one_network(
    key: tuple[str, str, str], trainer: str, runs: dict[str, Any], predicted: dict[str, Any]
) -> dict[str, Any]:
    run = runs[trainer]
    target, bank = run.target, run.bank
    z, correct = target.logits(), predicted[trainer] == target.labels

    def error_at(temperature: float) -> float:
        return sc.ece(p_max(z, temperature), correct, n_bins=BINS)

    ece, fitted, chosen = {}, {}, {}
    for name in FITTED:
        method = fitted[name] = sc.methods.get(name)().fit(
            bank, source_features=run.source_features
        )
        chosen[name] = method.adapt(z, target.features)
        ece[name] = sc.ece(method.confidence(z), correct, n_bins=BINS)
    oracle = sc.TS().fit(z, target.labels).temperature_
    ece["oracle"] = error_at(oracle)
    interval = chosen["rehearsal"].temperature_interval
    others = [other for other in ADAPTED if other != trainer]

    def by(*labels: np.ndarray) -> float:
        return sc.TS().fit(np.tile(z, (len(labels), 1)), np.concatenate(labels)).temperature_

    seconds = {other: by(predicted[other]) for other in others}
    by_second = {other: error_at(t) for other, t in seconds.items()}
    sts = chosen["sts"].temperature
    ece["second"] = float(np.mean(list(by_second.values())))
    ece["second and sts"] = float(np.mean([error_at((t * sts) ** 0.5) for t in seconds.values()]))
    ece["all others"] = error_at(by(*(predicted[other] for other in others)))
    if trainer != "source-only":
        ece["source-only as second"] = error_at(by(predicted["source-only"]))
    estimates = {
        "rehearsed": [sc.estimates.Rehearsed.of(fitted["rehearsal"]).estimate(z)],
        **{n: [sc.estimates.get(n)().fit(bank).estimate(z)] for n in ("atc", "doc")},
        "second": [sc.estimates.agreement(target, runs[other].target) for other in others],
        "all others": [sc.estimates.agreement(target, *(runs[o].target for o in others))],
    }
    accuracy = float(correct.mean())
    realigned = fitted["realign"].predict_proba(z).argmax(axis=1)
    return {
        "part": part_of(*key),
        "target": " ".join((*key[1:], trainer)),
        "accuracy": accuracy,
        "realign_gain": float((realigned == target.labels).mean()) - accuracy,
        "ece": ece,
        "by_second": by_second,
        "temperature_covered": bool(interval.low <= oracle <= interval.high),
        "estimates": {
            name: {
                "error": float(np.mean([abs(e.value - accuracy) for e in found])),
                "covered": float(np.mean([e.low <= accuracy <= e.high for e in found])),
                "width": float(np.mean([e.high - e.low for e in found])),
            }
            for name, found in estimates.items()
        },
    }


def means(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Over the networks of a part; ``second`` of source-only networks too."""
    names = [n for n in records[0]["ece"] if all(n in r["ece"] for r in records)]
    return {
        "networks": len(records),
        "accuracy": mean(records, "accuracy"),
        "realign_gain": mean(records, "realign_gain"),
        "rehearsal_temperature_covered": mean(records, "temperature_covered"),
        "ece": {name: mean([r["ece"] for r in records], name) for name in names},
        "estimates": {
            name: {
                value: mean([r["estimates"][name] for r in records], value)
                for value in ("error", "covered", "width")
            }
            for name in records[0]["estimates"]
        },
    }


def mean(records: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([r[name] for r in records]))


def main() -> None:
    with ProcessPoolExecutor(int(os.environ.get("WORKERS", os.cpu_count() or 1))) as pool:
        tasks = [pool.submit(judged, *item) for item in networks().items()]
        records = [record for task in tasks for record in task.result()]
    if not records:
        raise SystemExit(f"no trained networks in {RUNS}: run domains.py first")
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        parts[record["part"]].append(record)
        if not record["target"].endswith("source-only"):
            parts[f"{record['part']}, adapted"].append(record)
    found = {name: means(part) for name, part in sorted(parts.items())}
    packed = gzip.compress(json.dumps(records).encode(), mtime=0)
    (RESULTS / "agreement.json.gz").write_bytes(packed)
    document = {**commit_of(ROOT), "bins": BINS, **found}
    (RESULTS / "agreement.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
