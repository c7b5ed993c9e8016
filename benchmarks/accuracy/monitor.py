"""False alarms and delays of a monitor on streams of CIFAR-10, beside a two-sample KS detector.

``python benchmarks/accuracy/monitor.py [SPLITS]`` keeps what it found in ``results/monitor.json``.
Scores of ResNet-20 are made once, in ``runs/``, as for ``beyond.py``, from $SHIFTCAL_DATA or
../shared/data. In every split half of the test images are the calibration set, with the corruptions
of ``KNOWN``; streams are drawn from the other half, with replacement, under the corruptions of
``OTHERS``, which the monitor has not seen.

The KS detector looks at the same ends of blocks, at a window of the same length, and compares p_max
with that of the calibration set. Its limit is set on the clean streams it is judged on, so that it
has as many false alarms there as the monitor; the monitor's are what its own simulation gave.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ks_2samp

import shiftcal as sc
from shiftcal.monitoring import Monitor, Sliding
from shiftcal.numerics.softmax import p_max

sys.path.insert(0, str(Path(__file__).parent))
from beyond import halves, subset
from beyond_banks import banks

from studies import RUNS, commit_of, data_folder

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results"
KNOWN = ("pixelate", "gaussian_noise", "gaussian_blur", "fog")
OTHERS = (
    "shot_noise", "impulse_noise", "motion_blur", "snow", "brightness", "contrast",
    "jpeg_compression", "elastic_transform",
)  # fmt: skip
SPLITS = 5
ROWS, BLOCKS, BATCH = 2000, 10, 2000
BLOCK = ROWS // BLOCKS
FALSE_ALARMS = 1.0
CLEAN_ROWS, BEFORE, DURING, AFTER, RAMP = 2_000_000, 4000, 10_000, 8000, 20_000
REPEATS = 2
PASSES, PASS_ALARMS = 100, 10.0
ESTIMATED_AT = (400, 1000, 2000, 4000)
RUN_LENGTHS = (10, 100)
CALM, PATIENCE = 0.9, 3


class World(NamedTuple):
    """One split: a fitted monitor, sorted p_max of its clean set, and what streams are drawn of."""

    monitor: Monitor
    known: np.ndarray
    clean: tuple[np.ndarray, np.ndarray]
    corrupted: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]


def world(bank: sc.SurrogateBank, seed: int) -> World:
    rows, test = halves(bank.clean.labels, seed)
    known = subset(bank, rows, lambda c: c in KNOWN)
    monitor = Monitor(
        window=Sliding(rows=ROWS, blocks=BLOCKS), false_alarms=FALSE_ALARMS, seed=seed
    )
    sets = {
        (s.corruption, s.severity): (s.logits[test], s.labels[test])
        for s in bank
        if s.corruption in OTHERS
    }
    clean = bank.clean
    reference = np.sort(p_max(clean.logits[rows]))
    return World(monitor.fit(known), reference, (clean.logits[test], clean.labels[test]), sets)


def ks(known: np.ndarray, window: np.ndarray) -> float:
    """The two-sample statistic, of sorted samples: largest where the window's share jumps."""
    jumps = np.unique(window)
    apart = [
        np.searchsorted(known, jumps, side=side) / len(known)
        - np.searchsorted(window, jumps, side=side) / len(window)
        for side in ("left", "right")
    ]
    return float(np.abs(apart).max())


def ks_path(known: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """The statistic at every end of a block with a full window behind it."""
    ends = range(ROWS, len(confidence) + 1, BLOCK)
    return np.array([ks(known, np.sort(confidence[end - ROWS : end])) for end in ends])


def drawn(rng: np.random.Generator, source: tuple[np.ndarray, np.ndarray], n: int):
    rows = rng.integers(0, len(source[1]), n)
    return source[0][rows], source[1][rows]


def events_of(monitor: Monitor, logits: np.ndarray) -> list[Any]:
    return [
        event
        for start in range(0, len(logits), BATCH)
        for event in monitor.feed(logits[start : start + BATCH]).events
    ]


def clean_stream(w: World, rng: np.random.Generator) -> dict[str, Any]:
    """False alarms of the monitor on a long clean stream, and what KS saw of it."""
    w.monitor.reset()
    alarms, path, confidence = 0, [], np.empty(0)
    for _ in range(CLEAN_ROWS // 100_000):
        logits, _ = drawn(rng, w.clean, 100_000)
        alarms += sum(e.kind == "shift-began" for e in events_of(w.monitor, logits))
        confidence = np.concatenate([confidence[len(confidence) - ROWS + BLOCK :], p_max(logits)])
        path.append(ks_path(w.known, confidence))
    return {"alarms": alarms, "ks": np.concatenate(path)}


def one_pass(bank: sc.SurrogateBank) -> dict[str, Any]:
    """False alarms on streams in which no row comes twice, each of the other half of the images.

    What is drawn from 5,000 rows for long keeps their chance for long; a stream of new rows does
    not. These are as short as the data, so that more alarms are allowed to see some.
    """
    alarms, each = 0, len(bank.clean.labels) // 2
    for seed in range(PASSES):
        rows = np.random.default_rng((5, seed)).permutation(2 * each)
        known = subset(bank, np.sort(rows[:each]), lambda c: c in KNOWN)
        monitor = Monitor("ts", estimator=None, false_alarms=PASS_ALARMS, seed=seed).fit(known)
        events = events_of(monitor, bank.clean.logits[rows[each:]])
        alarms += sum(e.kind == "shift-began" for e in events)
    return {"wanted": PASS_ALARMS, "rows": PASSES * each, "alarms": alarms}


def ks_alarms(path: np.ndarray, limit: float, lower: float) -> list[tuple[int, str]]:
    """Looks at which the same rule as the monitor's begins and ends an alarm."""
    found, shifted, calm = [], False, 0
    for look, value in enumerate(path):
        if not shifted:
            if value >= limit:
                shifted, calm = True, 0
                found.append((look, "shift-began"))
            continue
        calm = calm + 1 if value <= lower else 0
        if calm >= PATIENCE:
            shifted = False
            found.append((look, "back-to-normal"))
    return found


def ks_limits(paths: list[np.ndarray], alarms: int) -> tuple[float, float]:
    """The limit at which all clean streams together have so many alarms, and that of a return."""
    lower = float(np.quantile(np.concatenate(paths), CALM))
    low, high = lower, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        began = sum(kind == "shift-began" for p in paths for _, kind in ks_alarms(p, middle, lower))
        low, high = (middle, high) if began > alarms else (low, middle)
    return high, lower


def runs_stream(w: World, rng: np.random.Generator, length: int) -> float:
    """False alarms per 100,000 clean rows that come in runs of one class."""
    by_class = [np.flatnonzero(w.clean[1] == k) for k in np.unique(w.clean[1])]
    w.monitor.reset()
    alarms = 0
    for _ in range(5):
        classes = rng.integers(0, len(by_class), 100_000 // length)
        rows = np.concatenate([rng.choice(by_class[k], length) for k in classes])
        events = events_of(w.monitor, w.clean[0][rows])
        alarms += sum(e.kind == "shift-began" for e in events)
    return alarms / 5


def other_classes(w: World, rng: np.random.Generator) -> list[bool]:
    """Whether clean rows of classes mixed otherwise raised an alarm within 10,000."""
    found = []
    for _ in range(10):
        prior = rng.dirichlet(np.ones(10))[w.clean[1]]
        rows = rng.choice(len(prior), DURING, p=prior / prior.sum())
        w.monitor.reset()
        found.append(bool(events_of(w.monitor, w.clean[0][rows])))
    return found


def calm_start(w: World, rng: np.random.Generator, limits: tuple[float, float]) -> np.ndarray:
    """Clean rows after which neither detector has an alarm: one of before would count as quick."""
    while True:
        w.monitor.reset()
        logits, _ = drawn(rng, w.clean, BEFORE)
        events_of(w.monitor, logits)
        told = ks_alarms(ks_path(w.known, p_max(logits)), *limits)
        alarmed = bool(told) and told[-1][1] == "shift-began"
        if w.monitor.state == "normal" and not alarmed:
            return logits


def rows_until(events: list[Any], kind: str, start: int) -> int | None:
    return next((e.row - start for e in events if e.kind == kind and e.row > start), None)


def one_stream(
    w: World, rng: np.random.Generator, during: tuple[np.ndarray, np.ndarray], limits: Any
) -> dict[str, Any]:
    """Clean, then other rows, then clean again: when each detector says what."""
    before = calm_start(w, rng, limits)
    events, accuracy = [], {}
    for start in range(0, len(during[1]), BLOCK):
        update = w.monitor.feed(during[0][start : start + BLOCK])
        events += update.events
        if (seen := start + BLOCK) in ESTIMATED_AT:
            accuracy[seen] = estimated(update, during, seen, w)
    after, _ = drawn(rng, w.clean, AFTER)
    events += events_of(w.monitor, after)
    confidence = np.concatenate([p_max(part) for part in (before, during[0], after)])
    path = ks_path(w.known, confidence)
    change, end = BEFORE, BEFORE + len(during[1])
    by_ks = [(ROWS + look * BLOCK, kind) for look, kind in ks_alarms(path, *limits)]
    by_ks = [(row, kind) for row, kind in by_ks if row > change]
    began = rows_until(events, "shift-began", change)
    ks_began = next((row - change for row, kind in by_ks if kind == "shift-began"), None)
    seen_in_time = began is not None and began <= len(during[1])
    ks_in_time = ks_began is not None and ks_began <= len(during[1])
    return {
        "monitor": began if seen_in_time else None,
        "ks": ks_began if ks_in_time else None,
        "back": rows_until(events, "back-to-normal", end) if seen_in_time else None,
        "ks_back": next((r - end for r, k in by_ks if k == "back-to-normal" and r > end), None)
        if ks_in_time
        else None,
        "times": sum(e.kind == "shift-began" and e.row <= end for e in events),
        "outside": any(e.kind == "outside-bank" for e in events),
        "accuracy": accuracy,
    }


def estimated(update: Any, during: Any, seen: int, w: World) -> dict[str, Any]:
    """The estimate against the accuracy of the rows that come, and of those in the window."""
    right = during[0].argmax(axis=1) == during[1]
    inside = right[max(0, seen - ROWS) : seen].sum()
    missing = max(0, ROWS - seen)  # of clean rows, whose accuracy stands for those drawn
    clean = float((w.clean[0].argmax(axis=1) == w.clean[1]).mean())
    window = float((inside + missing * clean) / ROWS)
    found = update.estimate
    return {
        "value": found.value,
        "window": window,
        "now": float(right.mean()),
        "covered": bool(found.low <= window <= found.high),
    }


def mixed(rng: np.random.Generator, clean: Any, other: Any, shares: np.ndarray) -> Any:
    """Rows of which each is corrupted with its own probability."""
    n = len(shares)
    a, b = drawn(rng, clean, n), drawn(rng, other, n)
    which = rng.random(n) < shares
    return np.where(which[:, None], b[0], a[0]), np.where(which, b[1], a[1])


def streams(w: World, rng: np.random.Generator, limits: Any) -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for (corruption, severity), source in w.corrupted.items():
        for _ in range(REPEATS):
            cases = {f"severity {severity}": np.ones(DURING)}
            if severity in (3, 5):
                cases[f"half of severity {severity}"] = np.full(DURING, 0.5)
                cases[f"ramp to severity {severity}"] = np.linspace(0, 1, RAMP)
            for name, shares in cases.items():
                during = mixed(rng, w.clean, source, shares)
                record = one_stream(w, rng, during, limits)
                found[name].append({"corruption": corruption, **record})
    return found


def quantiles(values: list[int | None]) -> dict[str, float | None]:
    """Median and ninth decile of rows, where what was never seen is the longest; ``None`` then."""
    rows = np.array([np.inf if v is None else v for v in values])
    median, most = np.quantile(rows, [0.5, 0.9], method="higher")
    return {
        "median": float(median) if np.isfinite(median) else None,
        "p90": float(most) if np.isfinite(most) else None,
        "seen": float(np.isfinite(rows).mean()),
    }


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    told = {name: quantiles([r[name] for r in records]) for name in ("monitor", "ks")}
    for name, whose in (("back", "monitor"), ("ks_back", "ks")):
        told[name] = quantiles([r[name] for r in records if r[whose] is not None])
    errors = {}
    for at in ESTIMATED_AT:
        some = [r["accuracy"][at] for r in records]
        errors[at] = {
            "window": float(np.mean([abs(e["value"] - e["window"]) for e in some])),
            "now": float(np.mean([abs(e["value"] - e["now"]) for e in some])),
            "covered": float(np.mean([e["covered"] for e in some])),
        }
    times = float(np.mean([r["times"] for r in records if r["monitor"] is not None]))
    outside = float(np.mean([r["outside"] for r in records]))
    accuracy = float(np.mean([r["accuracy"][ESTIMATED_AT[-1]]["now"] for r in records]))
    by_corruption = {
        c: {
            whose: quantiles([r[whose] for r in records if r["corruption"] == c])
            for whose in ("monitor", "ks")
        }
        for c in OTHERS
    }
    about = {"outside": outside, "accuracy": accuracy, "times": times, "n": len(records)}
    return {**told, "estimate": errors, **about, "by_corruption": by_corruption}


def main(splits: int) -> None:
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    bank = banks(("resnet20",), data_folder(), RUNS)["resnet20"]
    check = np.random.default_rng(0).random(1500)
    assert np.isclose(
        ks(np.sort(check[:500]), np.sort(check[500:])), ks_2samp(check[:500], check[500:]).statistic
    )
    worlds = [world(bank, seed) for seed in range(splits)]
    print(f"fitted after {time.perf_counter() - began:.0f} s", flush=True)
    clean = [clean_stream(w, np.random.default_rng((1, j))) for j, w in enumerate(worlds)]
    alarms = [c["alarms"] for c in clean]
    limits = ks_limits([c["ks"] for c in clean], sum(alarms))
    print(f"{alarms} false alarms after {time.perf_counter() - began:.0f} s", flush=True)
    found = defaultdict(list)
    for j, w in enumerate(worlds):
        for name, records in streams(w, np.random.default_rng((2, j)), limits).items():
            found[name] += records
        print(f"split {j} after {time.perf_counter() - began:.0f} s", flush=True)
    runs = {
        n: [runs_stream(w, np.random.default_rng((3, j)), n) for j, w in enumerate(worlds)]
        for n in RUN_LENGTHS
    }
    classes = [
        x for j, w in enumerate(worlds) for x in other_classes(w, np.random.default_rng((4, j)))
    ]
    passed = one_pass(bank)
    about = {
        **commit_of(ROOT),
        "network": "resnet20",
        "known": KNOWN,
        "others": OTHERS,
        "splits": splits,
        "rows": ROWS,
        "block": BLOCK,
        "clean_rows": CLEAN_ROWS,
        "during": DURING,
        "ramp": RAMP,
        "repeats": REPEATS,
        "seconds": round(time.process_time()),
    }
    told = {
        "wanted": FALSE_ALARMS,
        "false_alarms": [a * 1e5 / CLEAN_ROWS for a in alarms],
        "ks_limit": limits[0],
        "one_pass": passed,
        "in_runs": runs,
        "other_classes": float(np.mean(classes)),
        "streams": {name: summary(records) for name, records in found.items()},
    }
    text = json.dumps({**about, **told}, indent=1)
    (RESULTS / "monitor.json").write_text(text + "\n", "utf-8")
    print(text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SPLITS)
