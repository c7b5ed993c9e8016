"""Rehearsal beside SAC and its rivals: temperatures and accuracies without labels, on real data.

``python benchmarks/accuracy/beyond.py [PART ...]`` runs the parts named, or all of them, and keeps
what it found in ``results/beyond-PART.json``:

- ``resnet20``, ``resnet32``, ``efficientnet-lite0``: 12 corruptions x 5 severities, surrogates
  never of the target's family; the same under label shift, from 100 rows, on the clean set, on
  natural shifts and on three corruptions that nothing was chosen by; accuracy estimated without
  labels. ResNet-32 has the first 3,000 test images of CIFAR-10.
- ``adapted``: networks that ``domains.py pacs office-caltech`` trained, in ``runs/``.
- ``natural16``: edges and silhouettes, of the run of ``studies.py natural-imagenet16``.

Scores are made once, in ``runs/``, from $SHIFTCAL_DATA or ../shared/data. With CBPE_PYTHON naming a
python that has NannyML, its CBPE is asked too (``cbpe.py``), on the first split.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shiftcal as sc
from shiftcal.surrogates import SurrogateSet

sys.path.insert(0, str(Path(__file__).parent))
from beyond_banks import FAMILIES, FAMILY, TWELVE, UNSEEN, banks, natural

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results"
NETWORKS = ("resnet20", "resnet32", "efficientnet-lite0")
SEEDS = (0, 1, 2, 3, 4)
# A thousand classes take long, and two networks need no more than three splits to be compared.
SPLITS = {"resnet20": 5, "resnet32": 3, "efficientnet-lite0": 2}
ALPHAS = (10.0, 3.0, 1.0, 0.3)
SHIFTED_ROWS, FEW, DRAWS, CLEAN_DRAWS = 2000, 100, 3, 20
BINS = 15
ESTIMATED = ("full", "clean", "full-alpha-0.3")
PLAIN = ("vanilla", "ts", "ace", "sts", "sac")


class Target(NamedTuple):
    """What is calibrated, and what it is judged on."""

    kind: str
    name: str
    seen: np.ndarray
    logits: np.ndarray
    labels: np.ndarray


def subset(bank: sc.SurrogateBank, rows: np.ndarray, keep: Any) -> sc.SurrogateBank:
    """Some rows of the sets whose corruption is kept, and of the clean one."""
    return sc.SurrogateBank(
        [
            SurrogateSet(s.logits[rows], s.labels[rows], s.name, s.corruption, s.severity)
            for s in bank
            if s.corruption is None or keep(s.corruption)
        ]
    )


def halves(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Calibration and test rows, of every class its half."""
    rng = np.random.default_rng(seed)
    first = [
        rng.permutation(np.flatnonzero(labels == k))[: (labels == k).sum() // 2]
        for k in np.unique(labels)
    ]
    chosen = np.sort(np.concatenate(first))
    return chosen, np.setdiff1d(np.arange(len(labels)), chosen)


def reweighted(labels: np.ndarray, k: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn with replacement under a class prior of Dirichlet(alpha)."""
    weights = rng.dirichlet(np.full(k, alpha))[labels]
    return rng.choice(len(labels), SHIFTED_ROWS, p=weights / weights.sum())


def targets_of(
    sets: list[SurrogateSet], rows: np.ndarray, seed: int, *, few_classes: bool
) -> Iterator[Target]:
    """The targets that are made of test rows of these sets."""
    rng = np.random.default_rng((seed, 1))
    for s in sets:
        z, y = s.logits[rows], s.labels[rows]
        prefix = "clean" if s.corruption is None else "unseen" if s.corruption in UNSEEN else "full"
        yield Target(prefix, s.name, z, z, y)
        if prefix == "unseen":
            continue
        for _ in range(DRAWS):
            some = rng.choice(len(z), min(FEW, len(z)), replace=False)
            yield Target(f"{prefix}-100", s.name, z[some], z, y)
        if few_classes:
            # The clean set is one target where the others are sixty.
            for alpha in ALPHAS * (CLEAN_DRAWS if prefix == "clean" else 1):
                drawn = reweighted(y, z.shape[1], alpha, rng)
                yield Target(f"{prefix}-alpha-{alpha:g}", s.name, z[drawn], z[drawn], y[drawn])


def error(method: sc.methods.Method, t: Target) -> float:
    return sc.ece(method.confidence(t.logits), t.logits.argmax(axis=1) == t.labels, n_bins=BINS)


def on_pixelate(bank: sc.SurrogateBank) -> dict[str, Any]:
    """The methods of the paper and its rivals, and Rehearsal, fitted on the pixelate sets."""
    made = {name: sc.methods.get(name)().fit(bank) for name in PLAIN}
    made["sac-atc"] = sc.SAC(distance="atc").fit(bank)
    made["sts-entropy"] = sc.STS(map="entropy-temperature").fit(bank)
    made["sts-ensemble"] = sc.STS(map="ensemble-temperature").fit(bank)
    made["rehearsal-pixelate"] = sc.Rehearsal().fit(bank)
    return made


def on_others(bank: sc.SurrogateBank) -> dict[str, Any]:
    """SAC and Rehearsal, fitted on all corruptions of other families."""
    return {"sac-all": sc.SAC().fit(bank), "rehearsal": sc.Rehearsal().fit(bank)}


def estimators_on_pixelate(bank: sc.SurrogateBank) -> dict[str, Any]:
    get = sc.estimates.get
    made = {
        "atc": get("atc")(),
        "atc-entropy": get("atc")(score="entropy"),
        "doc": get("doc")(),
        "surrogate-curve": get("surrogate-curve")(),
    }
    return {name: one.fit(bank) for name, one in made.items()}


def estimators_on_others(bank: sc.SurrogateBank) -> dict[str, Any]:
    return {
        "surrogate-curve all": sc.estimates.get("surrogate-curve")().fit(bank),
        "rehearsed": sc.estimates.get("rehearsed")().fit(bank),
    }


def judged(methods: dict[str, Any], targets: Iterator[Target]) -> list[dict[str, Any]]:
    """The error of every method on every target, and of the oracle temperature."""
    found = []
    for t in targets:
        errors, temperatures, interval, flags = {}, {}, None, ()
        for name, method in methods.items():
            chosen = method.adapt(t.seen)
            errors[name], temperatures[name] = error(method, t), chosen.temperature
            if name == "rehearsal":
                interval, flags = chosen.temperature_interval, chosen.flags
        oracle = sc.TS().fit(t.logits, t.labels)
        errors["oracle"] = error(oracle, t)
        best = oracle.adapt(t.logits).temperature
        found.append(
            {
                "kind": t.kind,
                "target": t.name,
                "ece": errors,
                "covered": interval is not None and interval.low <= best <= interval.high,
                "flags": [flag.code for flag in flags],
            }
        )
    return found


def cbpe(reference: tuple[np.ndarray, np.ndarray], target: np.ndarray) -> float | None:
    python = os.environ.get("CBPE_PYTHON")
    if not python:
        return None
    with tempfile.TemporaryDirectory() as folder:
        known, unknown = Path(folder) / "known.npz", Path(folder) / "unknown.npz"
        np.savez(known, logits=reference[0], labels=reference[1])
        np.savez(unknown, logits=target)
        script = str(Path(__file__).parent / "cbpe.py")
        told = subprocess.run(
            [python, script, str(known), str(unknown)], capture_output=True, text=True, check=True
        )
    return float(json.loads(told.stdout.splitlines()[-1])["accuracy"])


def estimated(
    estimators: dict[str, Any], methods: dict[str, Any], targets: Iterator[Target], clean: Any
) -> list[dict[str, Any]]:
    """What every estimator says of the accuracy of every whole target, and the accuracy."""
    found = []
    for t in targets:
        if t.kind not in ESTIMATED:
            continue
        said = {}
        covered = {}
        accuracy = float((t.logits.argmax(axis=1) == t.labels).mean())
        for name, one in estimators.items():
            answer = one.estimate(t.logits)
            said[name] = answer.value
            covered[name] = bool(answer.low <= accuracy <= answer.high)
        for name, method in methods.items():
            method.adapt(t.logits)
            said[f"mean-confidence {name}"] = float(method.confidence(t.logits).mean())
        whole = t.kind in ("full", "clean")
        if clean is not None and whole and (value := cbpe(clean, t.logits)) is not None:
            said["nannyml cbpe"] = value
        found.append({"kind": t.kind, "accuracy": accuracy, "estimates": said, "covered": covered})
    return found


def one_split(folder: Path, seed: int, extra: dict[str, Any]) -> dict[str, Any]:
    """All targets of one network with one split into calibration and test images."""
    warnings.simplefilter("ignore")
    bank = sc.SurrogateBank.load(folder)
    rows, test = halves(bank.clean.labels, seed)
    pixelate = subset(bank, rows, lambda c: c == "pixelate")
    few_classes = bank.n_classes <= 100
    records, accuracies = [], []
    fixed = on_pixelate(pixelate)
    known = estimators_on_pixelate(pixelate) if few_classes else {}
    for family in (*FAMILIES, None):
        others = subset(bank, rows, lambda c, f=family: FAMILY[c] != f)
        methods = {**fixed, **on_others(others)}
        sets = [
            s
            for s in bank
            if (s.corruption is None and family is None)
            or (s.corruption in (*TWELVE, *UNSEEN) and FAMILY[s.corruption] == family)
        ]
        targets = list(targets_of(sets, test, seed, few_classes=few_classes))
        if family is None:
            targets += [Target("natural", n, z, z, y) for n, (z, y) in extra.items()]
        records += judged(methods, iter(targets))
        if few_classes:
            fitted = {**known, **estimators_on_others(others)}
            # A process for every target: one split is enough.
            clean = None if seed else (others.clean.logits, others.clean.labels)
            accuracies += estimated(fitted, methods, iter(targets), clean)
    return {"seed": seed, "records": records, "accuracies": accuracies}


def summary(splits: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over targets, for every split, kind and method."""
    ece: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for split in splits:
        by_kind = defaultdict(list)
        for record in split["records"]:
            by_kind[record["kind"]].append(record)
        for kind, records in by_kind.items():
            for name in records[0]["ece"]:
                mean = float(np.mean([r["ece"][name] for r in records]))
                ece[kind][name][str(split["seed"])] = mean
    held = defaultdict(list)
    for split in splits:
        for record in split["records"]:
            held[record["kind"]].append(record["covered"])
    return {
        "ece": ece,
        "covered": {kind: float(np.mean(values)) for kind, values in held.items()},
        "accuracy": accuracy_errors(splits),
    }


def accuracy_errors(splits: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Mean absolute error of every estimator, and how often its interval holds the accuracy."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    by_kind = defaultdict(list)
    for split in splits:
        for record in split["accuracies"]:
            by_kind[record["kind"]].append(record)
    for kind, records in by_kind.items():
        found[kind] = estimates = {}
        for name in dict.fromkeys(name for r in records for name in r["estimates"]):
            known = [r for r in records if name in r["estimates"]]
            off = [abs(r["estimates"][name] - r["accuracy"]) for r in known]
            estimates[name] = {"error": float(np.mean(off)), "targets": len(known)}
            if all(name in r["covered"] for r in known):
                estimates[name]["covered"] = float(np.mean([r["covered"][name] for r in known]))
    return found


def on_network(name: str, data: Path) -> dict[str, Any]:
    banks((name,), data, RUNS)
    extra = natural(data, RUNS) if name == "resnet20" else {}
    folder = RUNS / "beyond" / name
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        seeds = SEEDS[: SPLITS[name]]
        tasks = [pool.submit(one_split, folder, seed, extra) for seed in seeds]
        splits = [task.result() for task in tasks]
    return {**summary(splits), "splits": splits}


def on_runs(name: str, folder: Path) -> list[dict[str, Any]]:
    """Adapted networks: the bank of each is its own, of pixelate."""
    warnings.simplefilter("ignore")
    from shiftcal.adaptation.run import Adapted

    run = Adapted.open(folder)
    target = run.target
    t = Target(name, str(folder), target.logits(), target.logits(), target.labels)
    methods = {m: sc.methods.get(m)().fit(run.bank) for m in (*PLAIN, "rehearsal")}
    (record,) = judged(methods, iter([t]))
    task, trainer, seed = folder.parts[-3:]
    return [{**record, "target": f"{task} {trainer.rpartition('-')[0]} {seed}"}]


def adapted() -> dict[str, Any]:
    found = {}
    for name in ("pacs", "office-caltech"):
        folders = sorted((RUNS / name / "trainings").glob("*/*/seed-*"))
        if not folders:
            raise SystemExit(f"no trained networks in {RUNS / name}: run domains.py {name} first")
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            tasks = [pool.submit(on_runs, name, folder) for folder in folders]
            records = [record for task in tasks for record in task.result()]
        by_seed = defaultdict(list)
        for record in records:
            by_seed[record["target"].rpartition("-")[2]].append(record)
        splits = [{"seed": s, "records": rs, "accuracies": []} for s, rs in sorted(by_seed.items())]
        found[name] = {**summary(splits), "networks": len(folders), "splits": splits}
    return found


def natural16() -> dict[str, Any]:
    """Edges and silhouettes of 16 groups of ImageNet's classes."""
    warnings.simplefilter("ignore")
    run = RUNS / "natural-imagenet16"
    index = json.loads((run / "scores" / "index.json").read_text("utf-8"))
    sets = {}
    for name, about in index["sets"].items():
        with np.load(run / about["file"], allow_pickle=False) as file:
            sets[name] = (file["logits"], file["labels"])
    splits = []
    steps = ["clean", *(f"pixelate-{s}" for s in range(1, 6))]
    for seed in SEEDS:
        rows, test = halves(sets["clean"][1], seed)
        bank = sc.SurrogateBank(
            [
                SurrogateSet(sets[n][0][rows], sets[n][1][rows], n, "pixelate" if j else None, j)
                for j, n in enumerate(steps)
            ]
        )
        methods = {m: sc.methods.get(m)().fit(bank) for m in (*PLAIN, "rehearsal")}
        made = [Target("natural", n, sets[n][0], *sets[n]) for n in ("edges", "silhouettes")]
        clean = sets["clean"][0][test]
        made.append(Target("clean", "clean", clean, clean, sets["clean"][1][test]))
        splits.append({"seed": seed, "records": judged(methods, iter(made)), "accuracies": []})
    return {**summary(splits), "splits": splits}


OTHERS = {"adapted": adapted, "natural16": natural16}


def keep(part: str, found: dict[str, Any]) -> None:
    """The means as JSON, and every target packed beside them."""
    packed = gzip.compress(json.dumps(_splits(found)).encode(), mtime=0)
    (RESULTS / f"beyond-{part}.json.gz").write_bytes(packed)
    about = {**commit_of(ROOT), "bins": BINS, "few": FEW, "rows": SHIFTED_ROWS}
    text = json.dumps({**about, **_means(found)}, indent=1)
    (RESULTS / f"beyond-{part}.json").write_text(text + "\n", "utf-8")


def _splits(found: dict[str, Any]) -> Any:
    return found["splits"] if "splits" in found else {n: p["splits"] for n, p in found.items()}


def _means(found: dict[str, Any]) -> dict[str, Any]:
    if "splits" in found:
        return {name: value for name, value in found.items() if name != "splits"}
    return {name: _means(part) for name, part in found.items()}


def main(parts: list[str]) -> None:
    data = data_folder()
    RUNS.mkdir(exist_ok=True)
    for part in parts or [*NETWORKS, *OTHERS]:
        found = on_network(part, data) if part in NETWORKS else OTHERS[part]()
        keep(part, found)
        print(part, json.dumps(_means(found), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
