"""What Realign costs: fit, adapt and predict, on one core.

Made-up logits of ten classes; time hardly depends on them. ``fit`` on a bank of 60 sets of 2,500
rows (a clean one and twelve corruptions at five severities, less one set); ``adapt`` to 100,000
rows, alongside that of Rehearsal; ``predict_proba`` of those rows, alongside one softmax. The page
has processor time, since others use the machine too.
"""

from __future__ import annotations

import numpy as np
from timing import measure, run, timings

import shiftcal as sc
from shiftcal.numerics.softmax import softmax

CORRUPTIONS, SEVERITIES, ROWS, CLASSES, TARGET = 12, 5, 2500, 10, 100_000


def outputs(
    labels: np.ndarray, corruption: int, severity: int, rng: np.random.Generator
) -> np.ndarray:
    """Logits of a network that favours a few classes, the more so the more severe a shift is."""
    bias = np.random.default_rng(corruption).normal(size=CLASSES)
    z = rng.normal(scale=2.0, size=(len(labels), CLASSES)) + severity * bias
    z[np.arange(len(labels)), labels] += 7.0 - severity
    return z


def made_up() -> tuple[sc.SurrogateBank, np.ndarray]:
    """A bank of 60 sets, and a target of 100,000 rows."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(ROWS) % CLASSES)
    named = [(0, 0), *((c, s) for c in range(1, CORRUPTIONS + 1) for s in range(1, SEVERITIES + 1))]
    sets = [
        sc.SurrogateSet(
            outputs(labels, c, s, rng),
            labels,
            f"shift {c}, {s}" if c else "clean",
            f"shift {c}" if c else None,
            s,
        )
        for c, s in named[:-1]
    ]
    target = outputs(rng.integers(0, CLASSES, TARGET), 99, 3, rng)
    return sc.SurrogateBank(sets), target


def times() -> list:
    bank, z = made_up()
    realign, rehearsal = sc.Realign(), sc.Rehearsal().fit(bank)
    return [
        measure("fit", f"{len(bank)} sets x {ROWS}", lambda: realign.fit(bank) and None, seconds=1),
        *(
            measure(tool, f"{TARGET} x {CLASSES}", function)
            for tool, function in (
                ("adapt", lambda: realign.adapt(z) and None),
                ("adapt of Rehearsal", lambda: rehearsal.adapt(z) and None),
                ("predict_proba", lambda: realign.predict_proba(z) is None),
                ("softmax", lambda: softmax(z) is None),
            )
        ),
    ]


def page(found: dict) -> str:
    took = {t.tool: t.cpu for t in timings(found["times"])}
    lines = ["# What Realign costs\n", "Processor time on one core. Goals in brackets.\n"]
    lines += [
        f"- `fit` on a bank of 60 sets of {ROWS:,} rows: {took['fit']:.1f} s (20 s)",
        f"- `adapt` to {TARGET:,} x {CLASSES}: {1000 * took['adapt']:.0f} ms, "
        f"{took['adapt'] / took['adapt of Rehearsal']:.2f} times as long as that of Rehearsal (3)",
        f"- `predict_proba` of them: {1000 * took['predict_proba']:.1f} ms, "
        f"{took['predict_proba'] / took['softmax']:.2f} times as long as one softmax (10)",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    run("realign", {"times": times}, page)
