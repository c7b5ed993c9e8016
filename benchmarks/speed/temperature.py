"""Fitting a temperature: shiftcal and its peers on the same data in the same run."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable

import numpy as np
from timing import (
    LIMIT,
    Timing,
    extra_memory,
    fastest_peers,
    in_fresh_process,
    measure,
    run,
    table,
    timings,
)

SIZES = {
    "5kx10": (5_000, 10),
    "50kx10": (50_000, 10),
    "1Mx10": (1_000_000, 10),
    "50kx1000": (50_000, 1_000),
}
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


def shiftcal_method(logits, labels):
    import shiftcal as sc

    return lambda: sc.TS().fit(logits, labels).temperature_


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


def netcal(logits, labels):
    # It reads probabilities. In float32 it returns T = 1 without a word, so it gets float64.
    from netcal.scaling import TemperatureScaling

    from shiftcal.numerics.softmax import softmax

    probs = softmax(logits).astype(np.float64)

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


def one_sum(logits, _labels):
    return logits.sum


TOOLS: dict[str, Fit] = {
    PUBLIC: shiftcal_map,
    "shiftcal, `TS().fit`": shiftcal_method,
    LIMIT: one_sum,
    "torch, L-BFGS in 1/T": torch_lbfgs,
    "probmetrics": probmetrics,
    "scikit-learn": scikit_learn,
    "netcal": netcal,
}


def times(n: int, k: int) -> list[Timing]:
    logits, labels = draw(n, k)
    found = []
    for tool, prepare in TOOLS.items():
        prepare(*draw(4_000, 10))()
        fit = prepare(logits, labels)
        found += [measure(tool, f"({n:,}, {k:,})", fit, threads=threads) for threads in (1, 2)]
    return found


def memory() -> dict[str, dict[str, int]]:
    """Bytes a fit needs beside its input, each in a fresh process."""
    return {
        f"({n:,}, {k:,})": {
            tool: int(in_fresh_process(__file__, "memory of", tool, str(n), str(k)))
            for tool in TOOLS
            if tool != LIMIT
        }
        for n, k in list(SIZES.values())[2:]
    }


def memory_of(tool: str, n: int, k: int) -> int | None:
    TOOLS[tool](*draw(4_000, 10))()  # imports do not count
    return extra_memory(TOOLS[tool](*draw(n, k)))


def page(found) -> str:
    rows = [row for size in SIZES for row in found[size]]
    ours = {row["size"]: row["value"] for row in rows if row["tool"] == PUBLIC}
    wrong = [
        f"- {row['tool']} at {row['size']}: T = {row['value']:.4f}, not {ours[row['size']]:.4f}."
        for row in rows
        if row["tool"] != LIMIT and abs(row["value"] / ours[row["size"]] - 1) > AGREES
    ]
    parts = [
        "# Fitting a temperature\n\nMilliseconds, median ± median deviation; then how many times "
        "as long as `Temperature().fit`, which includes its checks of the input. `TS().fit` copies "
        "its input. float32 logits (netcal: float64 probabilities, made beforehand), all tools "
        "warm. Written by `temperature.py`."
    ]
    for threads in (1, 2):
        some = timings(rows, threads=threads)
        heading = "One thread" if threads == 1 else "Two threads"
        parts.append(f"## {heading}\n\n{table(some, PUBLIC)}\n\n{fastest_peers(some, PUBLIC)}")
    bytes_of = {f"({n:,}, {k:,})": 4 * n * k for n, k in SIZES.values()}
    lines = [
        f"| {tool} at {size} | {extra / 1e6:.0f} | {100 * extra / bytes_of[size]:.0f} % |"
        for size, peaks in found["memory"].items()
        for tool, extra in peaks.items()
    ]
    parts += [
        "## Memory needed beside the input",
        "\n".join(["| tool | MB | of the logits |", "|---|---|---|", *lines]),
        f"## Where a peer's answer differs from ours by more than {AGREES:g} of itself",
        "\n".join(wrong) or "Nowhere.",
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers warn about one another
    if sys.argv[1:2] == ["memory of"]:
        print(memory_of(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    else:
        parts = {name: functools.partial(times, *size) for name, size in SIZES.items()}
        run("temperature", parts | {"memory": memory}, page)
