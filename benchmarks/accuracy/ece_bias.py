"""What ECE and its interval say where the truth is known: its bias by sample size, its coverage.

Confidences are drawn from a beta distribution; a row is correct with probability ``c**g``, so the
model is calibrated for ``g = 1`` and too sure for ``g > 1``, where the true error is
``E[c - c**g]`` whatever the bins. For errors hardly above the noise, confidences are uniform on
[1/2, 1] and too high by the same gap everywhere, which is then the true value of every calibration
error. Writes ``results/ece_bias.json`` and renews the docs' tables.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np

import shiftcal as sc

RESULTS = Path(__file__).resolve().parent / "results" / "ece_bias.json"
SHAPES = ((12.0, 1.2), (5.0, 2.0))
SIZES = (100, 500, 1_000, 5_000, 10_000, 50_000)
SAMPLES = 200
COVERAGE_SIZE = 1_000
RESAMPLES = 1_000
EXCESSES = (1.0, 1.2, 2.0)
GAPS = (0.0, 0.01, 0.03, 0.05, 0.1)
GAP_SIZE = 500
GAP_RESAMPLES = 200


def draw(rng, shape, n, g=1.0):
    confidence = rng.beta(*shape, size=n)
    return confidence, rng.random(n) < confidence**g


def floor(shape, n):
    """Mean of each calibration error over samples from a perfectly calibrated model."""
    rng = np.random.default_rng([0, n])
    judges = {
        "size": sc.ece,
        "width": lambda c, r: sc.ece(c, r, binning="width"),
        "debiased": sc.debiased_ece,
        "smooth": sc.smooth_ece,
    }
    samples = [draw(rng, shape, n) for _ in range(SAMPLES)]
    means = {name: float(np.mean([f(*s) for s in samples])) for name, f in judges.items()}
    c = np.sort(rng.beta(*shape, size=200_000)).reshape(-1, 1000).mean(axis=1)
    rule = np.sqrt(2 / np.pi) * float(np.mean(np.sqrt(c * (1 - c)))) * np.sqrt(15 / n)
    return {"shape": shape, "n": n, "rule": float(rule), **means}


def percentile_interval(rng, confidence, correct):
    n = len(confidence)
    rows = (rng.integers(0, n, size=n) for _ in range(RESAMPLES))
    return np.quantile([sc.ece(confidence[i], correct[i]) for i in rows], [0.025, 0.975])


def coverage(g):
    """How often 95 % intervals hold the true error, and where they lie."""
    shape = SHAPES[0]
    rng = np.random.default_rng([1, round(10 * g)])
    big = rng.beta(*shape, size=2_000_000)
    truth = float(np.mean(big - big**g))
    found = []
    for trial in range(SAMPLES):
        c, r = draw(rng, shape, COVERAGE_SIZE, g)
        ours = sc.bootstrap(sc.ece, c, r, n_resamples=RESAMPLES, seed=trial)
        found.append((ours.value, ours.low, ours.high, *percentile_interval(rng, c, r)))
    value, low, high, other_low, other_high = np.array(found).T
    return {
        "g": g,
        "truth": truth,
        "ece": float(value.mean()),
        "bootstrap": {
            "low": float(low.mean()),
            "high": float(high.mean()),
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
        },
        "percentile": {
            "low": float(other_low.mean()),
            "high": float(other_high.mean()),
            "coverage": float(np.mean((other_low <= truth) & (truth <= other_high))),
        },
    }


def small_gaps(metric):
    """How often 95 % intervals hold errors of a few hundredths."""
    found = []
    for gap in GAPS:
        rng = np.random.default_rng([2, round(100 * gap)])
        ends = []
        for trial in range(SAMPLES):
            c = rng.uniform(0.5, 1.0, size=GAP_SIZE)
            r = rng.random(GAP_SIZE) < c - gap
            interval = sc.bootstrap(metric, c, r, n_resamples=GAP_RESAMPLES, seed=trial)
            ends.append((interval.low, interval.high))
        low, high = np.array(ends).T
        found.append(
            {
                "gap": gap,
                "low": float(low.mean()),
                "high": float(high.mean()),
                "coverage": float(np.mean((low <= gap) & (gap <= high))),
            }
        )
    return {"metric": metric.__name__, "gaps": found}


def rounded(value):
    """The same with six significant digits, which is more than the draws support."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def main():
    document = {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("shiftcal", "numpy")},
        },
        "samples": SAMPLES,
        "resamples": RESAMPLES,
        "coverage_n": COVERAGE_SIZE,
        "floor": [floor(shape, n) for shape in SHAPES for n in SIZES],
        "coverage": [coverage(g) for g in EXCESSES],
        "small_n": GAP_SIZE,
        "small_resamples": GAP_RESAMPLES,
        "small": [small_gaps(m) for m in (sc.ece, sc.debiased_ece, sc.ks_error, sc.mce)],
    }
    RESULTS.write_text(json.dumps(rounded(document), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
