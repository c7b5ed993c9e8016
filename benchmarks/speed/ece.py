"""Expected calibration error of 15 bins: shiftcal and its peers on the same data and run.

Each as its users call it, with the checks it makes by default. What torchmetrics gains by leaving
its checks out has a row of its own.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
from timing import LIMIT, Timing, fastest_peers, measure, run, table, timings

SIZES = {"50k": 50_000, "1M": 1_000_000, "10M": 10_000_000}
BINS = 15
# How far a value may be from ours before it is called wrong: cuts at interpolated quantiles move
# a sample or two, and this is a hundred times what that makes at the smallest size.
AGREES = 1e-4
PUBLIC, NO_CHECKS = "shiftcal, `ece`", "torchmetrics, checks off"


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidences that are too high by a little, and whether each was right."""
    rng = np.random.default_rng(21)
    confidence = rng.beta(6, 1.2, n)
    return confidence, rng.random(n) < confidence**1.2


def shiftcal_metric(confidence, correct, binning):
    from shiftcal.metrics import ece

    return lambda: ece(confidence, correct, n_bins=BINS, binning=binning)


def scikit_learn(confidence, correct, binning):
    # The curve only: it does not tell how many samples are in a bin. With bins of equal size the
    # ECE is the plain mean of the gaps; with equal widths there is nothing to compare.
    from sklearn.calibration import calibration_curve

    strategy = "quantile" if binning == "size" else "uniform"

    def value() -> float | None:
        accuracy, mean = calibration_curve(correct, confidence, n_bins=BINS, strategy=strategy)
        return float(np.abs(accuracy - mean).mean()) if binning == "size" else None

    return value


def netcal(confidence, correct, binning):
    from netcal.metrics import ECE

    labels = correct.astype(np.int64)
    metric = ECE(BINS, equal_intervals=binning == "width", detection=True)
    return lambda: metric.measure(confidence, labels)


def torchmetrics(confidence, correct, _binning, *, checks=True):
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    c, r = torch.from_numpy(confidence.astype(np.float32)), torch.from_numpy(correct.astype(int))
    return lambda: binary_calibration_error(c, r, n_bins=BINS, norm="l1", validate_args=checks)


def one_sum(confidence, _correct, _binning):
    def look() -> None:
        confidence.sum()

    return look


TOOLS = {
    PUBLIC: shiftcal_metric,
    LIMIT: one_sum,
    "scikit-learn, curve only": scikit_learn,
    "netcal": netcal,
    "torchmetrics": torchmetrics,
    NO_CHECKS: functools.partial(torchmetrics, checks=False),
}


def times(n: int) -> dict[str, list[Timing]]:
    data, found = draw(n), {"width": [], "size": []}
    for binning, rows in found.items():
        for tool, prepare in TOOLS.items():
            if tool.startswith("torchmetrics") and binning == "size":
                continue  # it knows equal widths only
            prepare(*draw(50_000), binning)()
            call = prepare(*data, binning)
            rows += [measure(tool, f"{n:,}", call, threads=threads) for threads in (1, 2)]
    return found


def page(found) -> str:
    parts = [
        "# Expected calibration error\n\nMilliseconds, median ± median deviation; then how many "
        "times as long as `ece`. 15 bins, float64 confidences (torchmetrics: float32), all tools "
        "warm, each with the checks of the input it makes by default. probmetrics calls "
        "torchmetrics for its ECE. Written by `ece.py`."
    ]
    wrong = []
    for binning in ("width", "size"):
        rows = [row for size in SIZES for row in found[size][binning]]
        ours = {row["size"]: row["value"] for row in rows if row["tool"] == PUBLIC}
        wrong += [
            f"- {row['tool']}, equal {binning}, {row['size']}: {row['value']:.6f}, not "
            f"{ours[row['size']]:.6f}."
            for row in rows
            if row["threads"] == 1 and row["value"] is not None
            if abs(row["value"] - ours[row["size"]]) > AGREES
        ]
        for threads in (1, 2):
            some = timings(rows, threads=threads)
            heading = f"Bins of equal {binning}, {'one thread' if threads == 1 else 'two threads'}"
            best = fastest_peers(some, PUBLIC, but=NO_CHECKS)
            parts.append(f"## {heading}\n\n{table(some, PUBLIC)}\n\n{best}")
    parts.append(f"## Where a peer's value differs from ours by more than {AGREES:g}")
    parts.append("\n".join(wrong) or "Nowhere.")
    return "\n\n".join(parts)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers warn about one another
    run("ece", {name: functools.partial(times, n) for name, n in SIZES.items()}, page)
