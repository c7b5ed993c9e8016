"""One choice for a mixed target, one for each of its groups, and those shrunk: on real data.

``python benchmarks/accuracy/groups.py`` keeps what it found in ``results/groups.json``. The network
is ResNet-20 on CIFAR-10. The bank has all corruptions but those of one family, whose sets, and the
clean one, are the groups of the target: all of one set (``alike``), or of different ones
(``mixed``). A group is known by a few rows and judged on all test images of its set. Scores are
made once, in ``runs/``, from $SHIFTCAL_DATA or ../shared/data, as ``beyond.py`` does it.
"""

from __future__ import annotations

import json
import platform
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shiftcal as sc
from shiftcal.grouping import GroupedCalibration
from shiftcal.numerics.softmax import p_max
from shiftcal.surrogates import SurrogateSet

sys.path.insert(0, str(Path(__file__).parent))
from beyond import BINS, halves, subset
from beyond_banks import FAMILIES, FAMILY, banks

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results"
# The split 0 is the one that choices were made by.
SPLITS = (1, 2)
GROUPS = (2, 4, 8)
# Rows seen of a group; of two numbers, every other group has the one.
SIZES = {"20": (20,), "50": (50,), "200": (200,), "2000": (2000,), "20 and 2000": (20, 2000)}
KINDS = ("mixed", "alike")
ROWS = ("global", "own", "shrunk", "oracle")
# Groups and rows of each where time is taken.
TIMED = (1000, 20)


class Mixture(NamedTuple):
    """A target of several groups: which sets they are of, and which test rows are seen."""

    kind: str
    size: str
    sets: list[SurrogateSet]
    rows: list[np.ndarray]


def mixtures(sets: list[SurrogateSet], test: np.ndarray, seed: tuple[int, ...]) -> Iterator[Any]:
    """All mixtures of the sets of one family and the clean one."""
    rng = np.random.default_rng(seed)
    for kind, n_groups, size in product(KINDS, GROUPS, SIZES):
        picked = rng.choice(len(sets), n_groups, replace=False)
        if kind == "alike":
            picked = np.repeat(picked[:1], n_groups)
        counts = np.resize(SIZES[size], n_groups)
        rows = [rng.choice(test, n, replace=False) for n in counts]
        yield n_groups, Mixture(kind, size, [sets[i] for i in picked], rows)


def temperatures(method: sc.methods.Method, mixture: Mixture) -> dict[str, list[float]]:
    """What every group gets, by every row of the table that needs no labels."""
    pairs = list(zip(mixture.sets, mixture.rows, strict=True))
    seen = np.concatenate([s.logits[rows] for s, rows in pairs])
    groups = np.repeat(np.arange(len(pairs)), [len(rows) for _, rows in pairs])
    own, shrunk = (GroupedCalibration(method, shrink=s).adapt(seen, groups) for s in (False, True))
    return {
        "global": [own.everything.temperature] * len(pairs),
        "own": [choice.temperature for choice in own.groups.values()],
        "shrunk": [choice.temperature for choice in shrunk.groups.values()],
    }


class Judge:
    """ECE of a set at a temperature, on its test rows."""

    def __init__(self, test: np.ndarray) -> None:
        self.test = test
        self.best: dict[str, float] = {}
        self.rows: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def oracle(self, s: SurrogateSet) -> float:
        """The temperature of least NLL on the test rows themselves."""
        if s.name not in self.best:
            z, y = s.logits[self.test], s.labels[self.test]
            self.best[s.name] = sc.TS().fit(z, y).adapt(z).temperature
        return self.best[s.name]

    def __call__(self, sets: list[SurrogateSet], at: list[float]) -> tuple[float, float]:
        """The mean over groups, and the one of all groups together."""
        seen: dict[tuple[str, float], tuple[np.ndarray, float]] = {}
        for s, t in zip(sets, at, strict=True):
            if (s.name, t) not in seen:  # groups of one set often have one temperature
                z, right = self.outputs(s)
                sure = p_max(z, t)
                seen[s.name, t] = sure, sc.ece(sure, right, n_bins=BINS)
        pairs = [seen[s.name, t] for s, t in zip(sets, at, strict=True)]
        right = np.concatenate([self.outputs(s)[1] for s in sets])
        together = sc.ece(np.concatenate([sure for sure, _ in pairs]), right, n_bins=BINS)
        return float(np.mean([each for _, each in pairs])), float(together)

    def outputs(self, s: SurrogateSet) -> tuple[np.ndarray, np.ndarray]:
        """Logits of the test rows, and whether they are right."""
        if s.name not in self.rows:
            z = s.logits[self.test]
            self.rows[s.name] = z, z.argmax(axis=1) == s.labels[self.test]
        return self.rows[s.name]


def one_family(bank: sc.SurrogateBank, family: str, seed: int) -> Iterator[dict[str, Any]]:
    rows, test = halves(bank.clean.labels, seed)
    others = subset(bank, rows, lambda c: FAMILY[c] != family)
    methods = {"sac": sc.SAC().fit(others), "rehearsal": sc.Rehearsal().fit(others)}
    unseen = [s for s in bank if s.corruption is None or FAMILY[s.corruption] == family]
    judge = Judge(test)
    number = list(FAMILIES).index(family)
    for n_groups, mixture in mixtures(unseen, test, (seed, number)):
        best = [judge.oracle(s) for s in mixture.sets]
        for name, method in methods.items():
            at = {**temperatures(method, mixture), "oracle": best}
            judged = {row: judge(mixture.sets, at[row]) for row in ROWS}
            yield {
                "method": name,
                "kind": mixture.kind,
                "size": mixture.size,
                "groups": n_groups,
                "each": {row: each for row, (each, _) in judged.items()},
                "together": {row: together for row, (_, together) in judged.items()},
            }


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean ECE by method, kind, size of groups and row of the table."""
    found: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for name, kind in product(("sac", "rehearsal"), KINDS):
        for size in (*SIZES, "all"):
            some = [
                r
                for r in records
                if (r["method"], r["kind"]) == (name, kind) and size in (r["size"], "all")
            ]
            for what, row in product(("each", "together"), ROWS):
                mean = float(np.mean([r[what][row] for r in some]))
                found[name][kind][size].setdefault(what, {})[row] = mean
    return found


def timed(bank: sc.SurrogateBank) -> dict[str, float]:
    """Milliseconds of a processor for a group, of adapt with many groups."""
    rows, test = halves(bank.clean.labels, 0)
    others = subset(bank, rows, lambda c: FAMILY[c] != "noise")
    many, each = TIMED
    rng = np.random.default_rng(0)
    seen = bank.clean.logits[rng.choice(test, many * each)]
    found = {}
    for method in (sc.SAC().fit(others), sc.Rehearsal().fit(others)):
        start = time.process_time()
        GroupedCalibration(method).adapt(seen, np.arange(many * each) % many)
        found[method.name] = 1000 * (time.process_time() - start) / many
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    about = commit_of(ROOT)  # of the code as it is imported, not as it may be at the end
    RUNS.mkdir(exist_ok=True)
    (bank,) = banks(("resnet20",), data_folder(), RUNS).values()
    records = [
        record
        for seed, family in product(SPLITS, FAMILIES)
        for record in one_family(bank, family, seed)
    ]
    document = {
        **about,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "bins": BINS,
        "splits": SPLITS,
        "n_groups": GROUPS,
        "mixtures": len(records) // 2,
        "ece": summary(records),
        "timed": {"groups": TIMED[0], "rows": TIMED[1], "milliseconds": timed(bank)},
    }
    text = json.dumps(document, indent=1)
    (RESULTS / "groups.json").write_text(text + "\n", "utf-8")
    print(text)


if __name__ == "__main__":
    main()
