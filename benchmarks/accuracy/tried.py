"""What was tried on the way to Rehearsal, on ResNet-20 and one split: ``results/tried.json``.

Every candidate gives log T from four statistics of the outputs, learnt on surrogates that are never
of the target's family: with the class prior of the calibration set ("same"), or with many priors
("rehearsed"); or from the outputs and an estimate of the target's class prior
(``tried_priors.py``); or it is SAC with a map of more than one temperature. Needs the scores that
``beyond.py resnet20`` makes in ``runs/``.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import shiftcal as sc
from shiftcal.methods.rehearsal import Draws, Rehearser, grouped_moments

sys.path.insert(0, str(Path(__file__).parent))
from beyond import ALPHAS, BINS, FEW, RESULTS, halves, reweighted, subset
from beyond_banks import FAMILIES, FAMILY, TWELVE
from tried_priors import bbse, em, reweighted_ladder, rlls

from studies import ROOT, RUNS, commit_of

SEED, DRAWS_PER_SET, ROWS = 0, 100, 2000
# Statistics: 0 log-odds of mean p_max, 1 mean entropy, 2 entropy of the mean, 3 sharpness.
Candidate = Callable[[Draws], Callable[[np.ndarray], float]]


def both(x: np.ndarray) -> np.ndarray:
    """Mean p_max and mutual information, of which the second is entropy 2 minus entropy 1."""
    return np.stack([1 / (1 + np.exp(-x[..., 0])), x[..., 2] - x[..., 1]], axis=-1)


def regression(model: object, columns: Callable[[np.ndarray], np.ndarray], *, rehearsed: bool):
    def learn(seen: Draws) -> Callable[[np.ndarray], float]:
        kept = np.ones(len(seen.log_t), bool) if rehearsed else ~seen.moved
        fitted = model(kept.sum()).fit(columns(seen.statistics[kept]), seen.log_t[kept])
        low, high = seen.log_t.min() - 0.1, seen.log_t.max() + 0.3
        return lambda x: float(np.clip(fitted.predict(columns(x[None]))[0], low, high))

    return learn


def polynomial(degree: int, ridge: float):
    # scikit-learn's penalty is on the sum over the rows, not on their mean.
    return lambda n: make_pipeline(
        StandardScaler(), PolynomialFeatures(degree, include_bias=False), Ridge(ridge * n)
    )


def every(x: np.ndarray) -> np.ndarray:
    return x


def without_sharpness(x: np.ndarray) -> np.ndarray:
    return x[..., :3]


CANDIDATES: dict[str, Candidate] = {
    "linear in p_max and MI, same": regression(polynomial(1, 1e-3), both, rehearsed=False),
    "linear in p_max and MI, rehearsed": regression(polynomial(1, 1e-3), both, rehearsed=True),
    "linear in all four, same": regression(polynomial(1, 1e-3), every, rehearsed=False),
    "quadratic in three, same": regression(polynomial(2, 0.01), without_sharpness, rehearsed=False),
    "quadratic in all four, same": regression(polynomial(2, 0.1), every, rehearsed=False),
    "quadratic in three, rehearsed": regression(
        polynomial(2, 0.01), without_sharpness, rehearsed=True
    ),
    "quadratic in all four, rehearsed": regression(polynomial(2, 0.01), every, rehearsed=True),
    "cubic in all four, rehearsed": regression(polynomial(3, 0.01), every, rehearsed=True),
    "100 nearest rehearsals": regression(
        lambda _: make_pipeline(StandardScaler(), KNeighborsRegressor(100, weights="distance")),
        every,
        rehearsed=True,
    ),
    "extremely randomised trees, rehearsed": regression(
        lambda _: ExtraTreesRegressor(200, min_samples_leaf=8, random_state=0),
        every,
        rehearsed=True,
    ),
}


def interpolated(bank: sc.SurrogateBank, log_t: list[float], column: Callable[[np.ndarray], float]):
    """Log T over a statistic of the sets of one ladder."""
    rng = np.random.default_rng(0)
    at = [column(grouped_moments(s.logits, rng).statistics()) for s in bank]
    order = np.argsort(at)
    xs, ys = np.array(at)[order], np.array(log_t)[order]
    return lambda x: float(np.interp(column(x), xs, ys))


def pooled(parts: list[Draws]) -> Draws:
    names = ("statistics", "log_t", "accuracy", "moved")
    return Draws(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def own_log_t(bank: sc.SurrogateBank) -> list[float]:
    return [math.log(sc.TS().fit(s.logits, s.labels).adapt(s.logits).temperature) for s in bank]


def targets_of(s: object, test: np.ndarray, rng: np.random.Generator):
    """Of one corrupted set: kind, rows that are looked at, rows that are judged, their labels."""
    z, y = s.logits[test], s.labels[test]
    yield "full", z, z, y
    yield "full-100", z[rng.choice(len(z), FEW, replace=False)], z, y
    for alpha in ALPHAS:
        drawn = reweighted(y, z.shape[1], alpha, rng)
        yield f"alpha-{alpha:g}", z[drawn], z[drawn], y[drawn]


def learnt_from(others: sc.SurrogateBank, rng: np.random.Generator, by_hand: dict):
    """Every candidate, learnt for targets of few rows and of many."""
    sets = [
        Rehearser(s.logits, s.labels, own, rng)
        for s, own in zip(others, own_log_t(others), strict=True)
    ]
    learnt = {}
    for size in (FEW, ROWS):
        seen = pooled([one.draw(size, DRAWS_PER_SET, rng) for one in sets])
        learnt[size] = {name: learn(seen) for name, learn in CANDIDATES.items()} | by_hand
    return learnt


def judged(logits: np.ndarray, labels: np.ndarray, temperature: float) -> float:
    scaled = logits.astype(np.float64) / temperature
    top = 1 / np.exp(scaled - scaled.max(axis=1, keepdims=True)).sum(axis=1)
    return sc.ece(top, logits.argmax(axis=1) == labels, n_bins=BINS)


def with_priors(pixelate: sc.SurrogateBank, own: list[float]) -> dict:
    """Candidates that estimate the target's class prior, from its logits to log T."""
    calibrated = np.exp(own).tolist()
    ways = {"BBSE": bbse, "RLLS": rlls, "EM": em}
    return {
        f"MI, sets reweighted by {name}": reweighted_ladder(pixelate, calibrated, estimate)
        for name, estimate in ways.items()
    }


def richer(pixelate: sc.SurrogateBank) -> dict:
    """SAC with maps of more than one temperature."""
    names = ("ensemble-temperature", "vector", "dirichlet", "isotonic", "beta")
    return {f"SAC with {name}": sc.SAC(map=name).fit(pixelate) for name in names}


def on_family(family: str, bank: sc.SurrogateBank, found: dict, parts: tuple) -> None:
    rows, test, pixelate, by_hand, from_logits = parts
    rng = np.random.default_rng((SEED, 2))
    others = subset(bank, rows, lambda c: FAMILY[c] != family)
    learnt = learnt_from(others, rng, by_hand)
    whole = {"SAC": sc.SAC().fit(pixelate), "Rehearsal": sc.Rehearsal().fit(others)}
    maps = richer(pixelate)
    names = [c for c in TWELVE if FAMILY[c] == family]
    for s in (s for s in bank if s.corruption in names):
        for kind, seen_rows, logits, labels in targets_of(s, test, rng):
            x = grouped_moments(seen_rows, rng).statistics()
            answers = learnt[FEW if len(seen_rows) == FEW else ROWS]
            chosen = {name: math.exp(say(x)) for name, say in answers.items()}
            chosen |= {name: math.exp(say(seen_rows)) for name, say in from_logits.items()}
            for name, method in whole.items():
                chosen[name] = method.adapt(seen_rows).temperature
            for name, method in maps.items():
                method.adapt(seen_rows)
                probs = method.predict_proba(logits)
                right = probs.argmax(axis=1) == labels
                found[name][kind].append(sc.ece(probs.max(axis=1), right, n_bins=BINS))
            chosen["oracle"] = sc.TS().fit(logits, labels).adapt(logits).temperature
            for name, temperature in chosen.items():
                found[name][kind].append(judged(logits, labels, temperature))


def main() -> None:
    warnings.simplefilter("ignore")
    bank = sc.SurrogateBank.load(RUNS / "beyond" / "resnet20")
    rows, test = halves(bank.clean.labels, SEED)
    pixelate = subset(bank, rows, lambda c: c == "pixelate")
    own = own_log_t(pixelate)
    by_hand = {
        f"SAC with log T interpolated over {name}": interpolated(
            pixelate, own, lambda x, column=column: both(x)[column]
        )
        for name, column in (("p_max", 0), ("MI", 1))
    }
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for family in FAMILIES:
        on_family(family, bank, found, (rows, test, pixelate, by_hand, with_priors(pixelate, own)))
    means = {
        name: {kind: float(np.mean(values)) for kind, values in kinds.items()}
        for name, kinds in found.items()
    }
    document = {**commit_of(ROOT), "seed": SEED, "ece": means}
    (RESULTS / "tried.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    for name, kinds in means.items():
        print(f"{name:40s}", {kind: round(100 * value, 2) for kind, value in kinds.items()})


if __name__ == "__main__":
    main()
