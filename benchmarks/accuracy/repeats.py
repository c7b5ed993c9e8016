"""How much the temperature of CPCS and TransCal varies with the seed of their draw.

A small network for scikit-learn's digits, Gaussian noise of three strengths, two target sizes.
Every setting is reported, also those where TransCal's search stays at its start.

    python benchmarks/accuracy/repeats.py     # writes results/repeats.json
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import shiftcal as sc

SEEDS = 40
DRAWS = 10
NOISE = (2.0, 4.0, 6.0)
ROWS = (100, 497)


def outputs(network: MLPClassifier, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logits and hidden features."""
    features = np.maximum(x @ network.coefs_[0] + network.intercepts_[0], 0)
    return features @ network.coefs_[1] + network.intercepts_[1], features


def spread(temperatures: np.ndarray) -> dict[str, float]:
    means = temperatures.reshape(-1, DRAWS).mean(axis=1)
    return {
        "mean": float(temperatures.mean()),
        "sd_one_draw": float(temperatures.std(ddof=1) / temperatures.mean()),
        "sd_mean_of_ten": float(means.std(ddof=1) / means.mean()),
    }


def main() -> None:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    network = MLPClassifier((64,), max_iter=60, random_state=0).fit(x[:900], y[:900])
    _, train_features = outputs(network, x[:900])
    logits, features = outputs(network, x[900:1300])
    bank = sc.SurrogateBank.from_arrays([logits], y[900:1300], features=features)
    found = []
    for strength in NOISE:
        noisy = x[1300:] + np.random.default_rng(1).normal(0, strength, x[1300:].shape)
        for n in ROWS:
            target, target_features = outputs(network, noisy[:n])
            for method in (sc.CPCS, sc.TransCal):
                temperatures = np.array(
                    [
                        method(seed=seed)
                        .fit(bank, source_features=train_features)
                        .adapt(target, target_features)
                        .temperature
                        for seed in range(SEEDS)
                    ]
                )
                row = {"method": method.name, "noise": strength, "rows": n}
                found.append({**row, **spread(temperatures)})
                print(found[-1])
    path = Path(__file__).parent / "results" / "repeats.json"
    path.write_text(json.dumps({"seeds": SEEDS, "settings": found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
