"""Fitting a temperature: shiftcal and its peers on the same data in the same run."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from timing import (
    circumstances,
    extra_memory,
    in_fresh_process,
    listed,
    measure,
    milliseconds,
    ratios,
    table,
    write,
)

SIZES = [(5_000, 10), (50_000, 10), (50_000, 1_000), (1_000_000, 10)]
TRUE_TEMPERATURE = 1.7
# How far a temperature may be from ours before it is called wrong.
AGREES = 1e-3
PUBLIC = "shiftcal, `Temperature().fit`"
Fit = Callable[[np.ndarray, np.ndarray], Callable[[], float]]


def draw(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits in float32 that are over-confident by a known factor."""
    rng = np.random.default_rng(20)
    logits = np.empty((n, k), dtype=np.float32)
    labels = np.empty(n, dtype=np.int64)
    rows = max(1, 2_000_000 // k)
    for start in range(0, n, rows):
        z = 2.5 * rng.standard_normal((min(rows, n - start), k), dtype=np.float32)
        labels[start : start + rows] = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        logits[start : start + rows] = TRUE_TEMPERATURE * z
    return logits, labels


def shiftcal_map(logits, labels):
    from shiftcal import maps

    return lambda: maps.get("temperature")().fit(logits, labels).temperature_


def shiftcal_solver(logits, labels):
    from shiftcal.numerics.temperature import solve_temperature

    return lambda: solve_temperature(logits, labels).temperature


def scikit_learn(logits, labels):
    # The calibrator alone, without the cross-validation around it.
    from sklearn.calibration import _TemperatureScaling

    return lambda: 1 / _TemperatureScaling().fit(logits, labels).beta_


def probmetrics(logits, labels):
    import torch
    from probmetrics.calibrators import get_calibrator
    from probmetrics.distributions import CategoricalLogits

    z, y = CategoricalLogits(torch.from_numpy(logits)), torch.from_numpy(labels)

    def fit() -> float:
        calibrator = get_calibrator("temp-scaling")
        calibrator.fit_torch(z, y)
        return 1 / calibrator.invtemp_

    return fit


def netcal(logits, labels, dtype=np.float64):
    # It reads probabilities. In float32 it returns T = 1 without a word, so it gets float64.
    from netcal.scaling import TemperatureScaling

    from shiftcal.numerics.softmax import softmax

    probs = softmax(logits).astype(dtype)

    def fit() -> float:
        scaling = TemperatureScaling()
        scaling.fit(probs, labels, tensorboard=False)
        return 1 / float(np.squeeze(scaling.temperature))

    return fit


def torch_lbfgs(logits, labels):
    # What one would write by hand and write well: in 1/T, where the likelihood is convex, with a
    # line search. The recipe that is copied most has neither, and stops early.
    import torch

    z, y = torch.from_numpy(logits), torch.from_numpy(labels)

    def fit() -> float:
        beta = torch.ones(1, requires_grad=True)
        search = torch.optim.LBFGS([beta], max_iter=50, line_search_fn="strong_wolfe")

        def loss() -> torch.Tensor:
            search.zero_grad()
            value = torch.nn.functional.cross_entropy(beta * z, y)
            value.backward()
            return value

        search.step(loss)
        return 1 / beta.item()

    return fit


TOOLS: dict[str, Fit] = {
    PUBLIC: shiftcal_map,
    "shiftcal, `solve_temperature`": shiftcal_solver,
    "scikit-learn": scikit_learn,
    "probmetrics": probmetrics,
    "netcal": netcal,
    "torch, L-BFGS in 1/T": torch_lbfgs,
}


def memory(tool: str, n: int, k: int) -> int | None:
    """In this process, which must be fresh: bytes a fit needs beside its input."""
    TOOLS[tool](*draw(4_000, 10))()  # imports and compilation do not count
    fit = TOOLS[tool](*draw(n, k))
    return extra_memory(fit)


def first_fit() -> float:
    """In this process, which must be fresh: seconds from the imports to the first fit."""
    logits, labels = draw(50_000, 10)
    start = time.perf_counter()
    shiftcal_map(logits, labels)()
    return time.perf_counter() - start


def main() -> None:
    facts, timings, wrong = circumstances(), [], []
    for n, k in SIZES:
        logits, labels = draw(n, k)
        for tool, prepare in TOOLS.items():
            prepare(*draw(4_000, 10))()
            t = measure(tool, f"({n:,}, {k:,})", prepare(logits, labels))
            print(t, file=sys.stderr)
            timings.append(t)
            ours = next(o.value for o in timings if o.size == t.size)
            if abs(t.value / ours - 1) > AGREES:
                wrong.append(f"- {tool} at {t.size}: T = {t.value:.4f}, not {ours:.4f}.")
    single = netcal(*draw(5_000, 10), dtype=np.float32)()
    if abs(single / TRUE_TEMPERATURE - 1) > 0.1:
        wrong.append(f"- netcal on float32 input at (5,000, 10): T = {single:.4f}.")
    peaks = {
        f"{tool} at ({n:,}, {k:,})": int(in_fresh_process(__file__, "memory", tool, str(n), str(k)))
        for n, k in SIZES[2:]
        for tool in TOOLS
    }
    with tempfile.TemporaryDirectory() as cache:
        first = [float(in_fresh_process(__file__, "first", NUMBA_CACHE_DIR=cache)) for _ in "12"]
    facts |= {"extra_memory": peaks, "first_fit": first}
    write("temperature", facts, timings, report(facts, timings, wrong))


def report(facts, timings, wrong) -> str:
    logits = {f"({n:,}, {k:,})": 4 * n * k for n, k in SIZES}
    peaks = "\n".join(
        f"| {what} | {extra / 1e6:.0f} | {100 * extra / logits[what.split(' at ')[1]]:.0f} % |"
        for what, extra in facts["extra_memory"].items()
    )
    slower = [f"- {t.tool} at {t.size}" for t in timings if t.wall < base(timings, t.size).wall
              and not t.tool.startswith("shiftcal")]  # fmt: skip
    fit = base(timings, timings[0].size).wall
    return f"""# Fitting a temperature

Milliseconds, median ± median deviation, processor time in brackets; then how many times as long
as `Temperature().fit`, which includes its checks of the input. float32 logits (netcal: float64
probabilities, made beforehand), all tools warm. Written by `temperature.py`.

{table(timings, PUBLIC)}

{chr(10).join(ratios(timings, PUBLIC))}

## Memory needed beside the input

| tool | MB | of the logits |
|---|---|---|
{peaks}

## Where it is not faster

- The first fit of a process takes {facts["first_fit"][1]:.1f} s at (50,000, 10), imports included;
  later fits in that process take {milliseconds(fit)} ms at the smallest size above.
{chr(10).join(slower) or "- Once warm, no peer was faster at any of these sizes."}

## Where a peer's answer differs from ours by more than {AGREES:g} of itself

{chr(10).join(wrong) or "Nowhere."}

## Circumstances

{listed(facts)}
"""


def base(timings, size):
    return next(t for t in timings if t.size == size and t.tool == PUBLIC)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers warn about one another
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1:2] == ["memory"]:
        print(memory(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    elif sys.argv[1:2] == ["first"]:
        print(first_fit())
    else:
        main()
