"""Expected calibration error of 15 bins: shiftcal and its peers on the same data and run.

One thread each, and each as its users call it, with the checks it makes by default. What
torchmetrics gains by leaving its checks out, and by all threads, is told apart.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import functools
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from timing import circumstances, in_fresh_process, listed, measure, ratios, table, write

SIZES = [50_000, 1_000_000, 10_000_000]
BINS = 15
# How far a value may be from ours before it is called wrong: cuts at interpolated quantiles move
# a sample or two, and this is a hundred times what that makes at the smallest size.
AGREES = 1e-4
PUBLIC = "shiftcal, `ece`"


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidences that are too high by a little, and whether each was right."""
    rng = np.random.default_rng(21)
    confidence = rng.beta(6, 1.2, n)
    return confidence, rng.random(n) < confidence**1.2


def shiftcal_metric(confidence, correct, binning):
    from shiftcal.metrics import ece

    return lambda: ece(confidence, correct, n_bins=BINS, binning=binning)


def shiftcal_bins(confidence, correct, binning):
    from shiftcal.numerics.binning import equal_size_bins, equal_width_bins

    bins = equal_size_bins if binning == "size" else equal_width_bins

    def value() -> float:
        sums = bins(confidence, correct, BINS)
        return float(np.abs(sums.confidence - sums.correct).sum() / len(confidence))

    return value


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


def torchmetrics(confidence, correct, binning, *, checks=True, threads=1):
    assert binning == "width", "it knows no other"
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    c, r = torch.from_numpy(confidence.astype(np.float32)), torch.from_numpy(correct.astype(int))

    def value() -> float:
        torch.set_num_threads(threads)
        return float(binary_calibration_error(c, r, n_bins=BINS, norm="l1", validate_args=checks))

    return value


TOOLS = {
    PUBLIC: shiftcal_metric,
    "shiftcal, bins alone": shiftcal_bins,
    "scikit-learn, curve only": scikit_learn,
    "netcal": netcal,
    "torchmetrics": torchmetrics,
    "torchmetrics, checks off": functools.partial(torchmetrics, checks=False),
    "torchmetrics, checks off, all threads": functools.partial(
        torchmetrics, checks=False, threads=len(os.sched_getaffinity(0))
    ),
}


def first_call(binning: str) -> float:
    """In this process, which must be fresh: seconds from the imports to the first value."""
    confidence, correct = draw(50_000)
    start = time.perf_counter()
    shiftcal_metric(confidence, correct, binning)()
    return time.perf_counter() - start


def main() -> None:
    facts, timings, wrong = circumstances(), {"width": [], "size": []}, []
    for n in SIZES:
        confidence, correct = draw(n)
        for binning, found in timings.items():
            for tool, prepare in TOOLS.items():
                if tool.startswith("torchmetrics") and binning == "size":
                    continue
                prepare(*draw(50_000), binning)()
                t = measure(tool, f"{n:,}", prepare(confidence, correct, binning))
                print(binning, t, file=sys.stderr)
                found.append(t)
                ours = next(o.value for o in found if o.size == t.size)
                if t.value is not None and abs(t.value - ours) > AGREES:
                    wrong.append(
                        f"- {tool}, equal {binning}, {n:,}: {t.value:.6f}, not {ours:.6f}."
                    )
    with tempfile.TemporaryDirectory() as cache:
        for binning in timings:
            facts[f"first_call_{binning}"] = [
                float(in_fresh_process(__file__, "first", binning, NUMBA_CACHE_DIR=cache))
                for _ in "12"
            ]
    both = [t for found in timings.values() for t in found]
    write("ece", facts, both, report(facts, timings, wrong))


def report(facts, timings, wrong) -> str:
    slower = [
        f"- {t.tool} at {t.size}, equal {binning}"
        for binning, found in timings.items()
        for t in found
        if not t.tool.startswith("shiftcal") and t.wall < base(found, t.size).wall
    ]
    (_, width_again), (_, size_again) = facts["first_call_width"], facts["first_call_size"]
    return f"""# Expected calibration error

Milliseconds, median ± median deviation, processor time in brackets; then how many times as long
as `ece`. One thread, 15 bins, float64 confidences (torchmetrics: float32), all tools warm, each
with the checks of the input it makes by default. Written by `ece.py`. probmetrics calls
torchmetrics for its ECE.

## Bins of equal width

{table(timings["width"], PUBLIC)}

{chr(10).join(ratios(as_called(timings["width"]), PUBLIC))}

torchmetrics can be made faster than its users call it: {spared(timings["width"])}.

## Bins of equal size

{table(timings["size"], PUBLIC)}

{chr(10).join(ratios(timings["size"], PUBLIC))}

## Where it is not faster

- The first call of a process takes {width_again:.1f} s for equal widths, {size_again:.1f} s for
  equal sizes, imports included.
{chr(10).join(slower) or "- Once warm, no peer was faster at any of these sizes."}

## Where a peer's value differs from ours by more than {AGREES:g}

{chr(10).join(wrong) or "Nowhere."}

## Circumstances

{listed(facts)}
"""


def as_called(timings):
    return [t for t in timings if "checks off" not in t.tool]


def spared(timings) -> str:
    """How many times as long it takes at a million with its checks off, by threads."""
    ours = base(timings, f"{1_000_000:,}").wall
    return "; ".join(
        f"{t.wall / ours:.1f} times as long as `ece` at {t.size} with {t.tool.partition(', ')[2]}"
        for t in timings
        if "checks off" in t.tool and t.size == f"{1_000_000:,}"
    )


def base(timings, size):
    return next(t for t in timings if t.size == size and t.tool == PUBLIC)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers warn about one another
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1:2] == ["first"]:
        print(first_call(sys.argv[2]))
    else:
        main()
