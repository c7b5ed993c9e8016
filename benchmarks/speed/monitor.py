"""How long a monitor takes for a row, beside numpy's softmax of the same batches.

``python benchmarks/speed/monitor.py`` feeds batches of 256 rows of 10 classes on one core, in turns
with ``z - max; exp; / sum`` in float64, and keeps the least time of each; so what else the machine
does counts little.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from timing import limited_to, run

from shiftcal import SurrogateBank, SurrogateSet
from shiftcal.monitoring import Exponential, Monitor, Sliding

BATCH, K, BATCHES, REPEATS = 256, 10, 25, 400
MOST = 3.0


def outputs(n: int, strength: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n)
    evidence = rng.standard_normal((n, K))
    evidence[np.arange(n), labels] += 2.5 * strength
    return 3.0 * evidence, labels


def bank() -> SurrogateBank:
    sets = [SurrogateSet(*outputs(3000, 1.3, 1), "clean", severity=0)]
    for name, scale in (("fading", 1.0), ("glare", 1.15), ("haze", 0.9)):
        for severity, strength in enumerate((1.1, 0.9, 0.7, 0.5, 0.3), start=1):
            logits, labels = outputs(3000, strength, 10 + severity)
            sets.append(SurrogateSet(scale * logits, labels, f"{name} {severity}", name, severity))
    return SurrogateBank(sets)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def seconds(function, batches) -> float:
    start = time.perf_counter()
    for batch in batches:
        function(batch)
    return time.perf_counter() - start


def asking(monitor: Monitor):
    """Feed, and work out choice and estimate of every batch that had a look."""
    known = []

    def feed(batch):
        update = monitor.feed(batch)
        if update._looked is not (known[-1] if known else None):
            known[:] = [update._looked]
            _ = update.selection, update.estimate

    return feed


def measured(function, batches) -> tuple[float, float]:
    """The least seconds per batch, of the function and of softmax, in turns."""
    seconds(function, batches)
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(seconds(function, batches))
        theirs.append(seconds(softmax, batches))
    return min(ours) / len(batches), min(theirs) / len(batches)


def cases() -> list[dict[str, object]]:
    warnings.simplefilter("ignore")
    sets = bank()
    logits, _ = outputs(BATCH * BATCHES, 1.2, 5)
    batches = np.split(logits, BATCHES)
    half = Sliding(rows=2000, blocks=20)
    monitors = {
        "rehearsal, 2,000 rows in 10 blocks (default)": Monitor(),
        "rehearsal, 20 blocks": Monitor(window=half),
        "rehearsal, exponential": Monitor(window=Exponential()),
        "rehearsal, 10,000 rows": Monitor(window=Sliding(rows=10_000)),
        "sac": Monitor("sac"),
        "ts": Monitor("ts"),
    }
    rows = []
    for name, monitor in monitors.items():
        ours, theirs = measured(monitor.fit(sets).feed, batches)
        rows.append({"case": name, "feed": ours, "softmax": theirs, "ratio": ours / theirs})
    whole = monitors["rehearsal, 2,000 rows in 10 blocks (default)"]
    ours, theirs = measured(asking(whole), batches[:5])
    name = "default, with choice and estimate asked for at every batch"
    rows.append({"case": name, "feed": ours, "softmax": theirs, "ratio": ours / theirs})
    for row in rows:
        row["rows_per_second"] = BATCH / row["feed"]
    return rows


def page(found: dict) -> str:
    rows = found["cases"]
    table = "\n".join(
        f"| {r['case']} | {1e6 * r['feed']:.0f} | {1e6 * r['softmax']:.0f} | {r['ratio']:.2f} | "
        f"{r['rows_per_second']:,.0f} |"
        for r in rows
    )
    return f"""# A monitor's time

Batches of {BATCH} rows of {K} classes in float64, one core, the least of {REPEATS} turns each. The
default is to take at most {MOST:g} times as long as softmax.

| monitor | µs per batch | numpy's softmax | times as long | rows per second |
|---|--:|--:|--:|--:|
{table}"""


if __name__ == "__main__":
    with limited_to(1):
        run("monitor", {"cases": cases}, page)
