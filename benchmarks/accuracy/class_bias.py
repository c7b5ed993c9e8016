"""Class biases of a shifted target, estimated from its outputs by three experts.

Corruption hardly changes the temperature that a network needs; it makes the network favour a few
classes. Undoing that takes a bias per class: ``softmax(s a + b)`` with ``a = z / T``, where ``T``
is the temperature of the clean calibration set. From unlabelled outputs a network that favours a
class looks like data in which the class is frequent, so three experts answer and a gate weighs
them:

- *same mix*: the classes are mixed as in the calibration set. ``b`` makes the mean output equal to
  that mix, shrunk by what chance explains.
- *other mix*: ``s`` and ``b`` are regressed on statistics of the outputs, learned on surrogate sets
  drawn under many class mixes.
- *plain*: no bias, ``s`` regressed on the statistics.

All three are affine in ``a``, so their weighted sum is one scale and one bias per class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal.numerics.softmax import softmax
from shiftcal.types import Floats, Labels, Logits

Array = NDArray[np.float64]

# Rows that a target is learned from: an expert for few rows and one for many. What lies between
# takes a share of both.
SIZES = (100, 2000)
# More rows than this add nothing to the biases.
MOST_ROWS = 10_000
# The mix is never known better than from so many rows.
_TRUST = 1000
# Up to so many classes the whole matrix of derivatives is used, above it the diagonal.
_DENSE = 128
# Class mixes of the draws of one set, as concentrations of a Dirichlet distribution around the
# calibration mix; None is that mix itself. The clean set is drawn from four times as often.
_OTHER_MIX = (10.0, 10.0, 3.0, 3.0, 1.0, 1.0, 1.0, 0.3, 0.3, 0.3)
_SAME_MIX = (None, None, None, None, 30.0)
_CLEAN = 4
# Class statistics that are learned from in all; more classes need fewer draws.
_MOST_DRAWN = 60_000
# Labelled rows of a draw, and parts of the bank that are left out in turn.
_LABELLED, _FOLDS = 100, 4
_RIDGE, _GATE_RIDGE = 3e-4, 1e-2
# How much more a loss against the plain expert counts than a gain.
_REGRET = 4.0
_TINY = 1e-9


class Outputs(NamedTuple):
    """What is computed once of a target's outputs.

    Attributes:
        classes: ``(k, 7)`` statistics of every class.
        target: ``(3,)`` statistics of the target.
        bias: ``(k,)`` of the expert for the same mix.
        scale: Its scale, below 1 where the bias is uncertain.
        gate: Statistics for the gate.
    """

    classes: Array
    target: Array
    bias: Array
    scale: float
    gate: Array


class Correction(NamedTuple):
    """``softmax(scale a + bias)``, and the weights of same mix, other mix and plain."""

    scale: float
    bias: Array
    weights: Array


def match(
    a: Array, w: Array, mix: Array, rows: float, spread: float | None = None
) -> tuple[Array, float]:
    """Biases that make the mean output the class mix, and their mean variance.

    Minimises ``rows/2 Σ_k (mean q_k - mix_k)² / mix_k + |b|² / 2 spread`` over ``b``, with
    ``q = softmax(a + b)``, by Gauss-Newton.

    Args:
        a: ``(n, k)`` logits at the clean temperature.
        w: ``(n,)`` weights of the rows, adding up to 1.
        mix: ``(k,)`` shares of the classes.
        rows: Rows that the mean output is worth.
        spread: Variance of the biases; estimated from the data by default.
    """
    k = a.shape[1]
    b, worth = np.zeros(k), rows / mix
    s2 = 1.0 if spread is None else spread
    total = 0.0
    for _ in range(25):
        q = softmax(a + b)
        mean = w @ q
        if k <= _DENSE:
            slope = np.diag(mean) - (q * w[:, None]).T @ q
            variance = np.linalg.inv((slope * worth) @ slope + np.eye(k) / s2)
            step = variance @ (slope @ (worth * (mean - mix)) + b / s2)
            total = float(np.trace(variance))
        else:
            own = mean - w @ (q * q)
            bend = own * own * worth + 1 / s2
            step = 0.8 * (own * worth * (mean - mix) + b / s2) / bend
            total = float((1 / bend).sum())
        largest = float(np.abs(step).max())
        b = b - step * min(1.0, 2.0 / max(largest, _TINY))
        b -= b.mean()
        if spread is None:
            s2 = max((float(b @ b) + total) / (k - 1), 1e-4)
        if largest < 1e-3:
            break
    return b, total / (k - 1)


def shrunk(bias: Array, variance: float) -> tuple[float, Array]:
    """Scale and bias of ``softmax(a + b)`` averaged over a normal ``b``, to first order."""
    scale = 1 / math.sqrt(1 + math.pi / 8 * variance)
    return scale, scale * bias


def effective_rows(n: int, n_calibration: int) -> float:
    """Rows that the mean output of a target is worth as a measurement of its class mix."""
    return 1 / (1 / n + 1 / n_calibration + 1 / _TRUST)


def describe(a: Array, w: Array, mix: Array, n: int, n_calibration: int) -> Outputs:
    """Statistics of a target's outputs and the answer for an unchanged class mix.

    Args:
        a: ``(m, k)`` logits at the clean temperature.
        w: ``(m,)`` weights of the rows.
        mix: ``(k,)`` class mix of the calibration set.
        n: Rows of the target.
        n_calibration: Rows of the calibration set.
    """
    k = a.shape[1]
    p = softmax(a)
    mean, square = w @ p, w @ (p * p)
    top, confidence = p.argmax(axis=1), p.max(axis=1)
    overall = float(w @ confidence)
    rows = np.bincount(top, w, k) * n
    # Three rows of the mean confidence: a class that is hardly predicted has no other.
    predicted = (np.bincount(top, w * confidence, k) * n + 3 * overall) / (rows + 3)
    sharpness = square / np.maximum(mean, _TINY)
    matched = np.clip(match(a, w, mix, n, spread=1e3)[0], -6, 6)
    frequent = np.log(_likeliest_mix(p, w, mix) / mix)

    def confused(values: Array) -> Array:
        """Their mean over the classes that each class is confused with."""
        return (p.T @ (w * (p @ values)) - square * values) / np.maximum(mean - square, 1e-12)

    excess = np.log(np.maximum(mean, 1e-5) / mix)
    classes = np.stack(
        [
            excess,
            sharpness,
            log_odds(predicted),
            matched,
            frequent,
            confused(matched),
            confused(frequent),
        ],
        axis=1,
    )
    entropy = -float((mean * np.log(np.maximum(mean, _TINY))).sum())
    target = np.array([float(log_odds(overall)), entropy, sharpness.mean()])
    bias, variance = match(a, w, mix, effective_rows(n, n_calibration))
    q = softmax(a + bias)
    after = (w @ (q * q)) / np.maximum(w @ q, _TINY)
    shares = np.exp(frequent) * mix / (np.exp(frequent) @ mix)
    gate = np.array(
        [
            *target,
            after.mean(),
            after.std(),
            after.min(),
            bias.std(),
            np.abs(bias).max(),
            shares @ np.log(shares / mix),
            matched.std(),
            excess.std(),
            frequent.std(),
            w @ q.max(axis=1),
        ]
    )
    return Outputs(classes, target, bias, shrunk(bias, variance)[0], gate)


def _likeliest_mix(p: Array, w: Array, mix: Array) -> Array:
    """The class mix under which these outputs are likeliest, if a label shift is all there is."""
    ratio = np.ones(len(mix))
    for _ in range(60):
        shares = p * ratio
        shares /= shares.sum(axis=1, keepdims=True)
        before, ratio = ratio, (w @ shares) / mix
        if np.abs(ratio - before).max() < 1e-3:
            break
    return np.maximum(ratio * mix, 1e-4)


def log_odds(x: Floats | float) -> Array:
    """Of probabilities, kept away from 0 and 1."""
    x = np.clip(x, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(x / (1 - x)))


@dataclass(frozen=True)
class Expert:
    """Scale and biases regressed on the statistics of a target.

    Attributes:
        class_centre: ``(7,)``, and ``class_scale``, which standardise the class statistics.
        class_scale: See ``class_centre``.
        centre: ``(3,)``, and ``scale``, for the statistics of the target.
        scale: See ``centre``.
        term_scale: ``(t,)`` for the terms.
        coefficients: ``(t + 4,)`` of the terms, then of the scale; ``(4,)`` without biases.
    """

    class_centre: Array
    class_scale: Array
    centre: Array
    scale: Array
    term_scale: Array
    coefficients: Array

    def __call__(self, outputs: Outputs) -> tuple[float, Array]:
        """The scale and the biases ``(k,)``."""
        t = (outputs.target - self.centre) / self.scale
        scale = float(self.coefficients[-4] + self.coefficients[-3:] @ t)
        if len(self.coefficients) == 4:
            return max(scale, 0.1), np.zeros(len(outputs.classes))
        terms = self._terms(outputs.classes, t) / self.term_scale
        return max(scale, 0.1), terms @ self.coefficients[:-4]

    def _terms(self, classes: Array, t: Array) -> Array:
        """Statistics of a class, their products with those of the target and in pairs."""
        f = (classes - self.class_centre) / self.class_scale
        i, j = np.triu_indices(f.shape[1])
        terms = np.concatenate([f, *(f * x for x in t), f[:, i] * f[:, j]], axis=1)
        return np.asarray(terms - terms.mean(axis=0))


def fit_expert(seen: Sequence[Outputs], a: Array, labels: Labels, *, biases: bool) -> Expert:
    """The expert that minimises the negative log-likelihood of labelled rows of many draws.

    It is convex: every scale and bias is linear in the coefficients. Newton's method.

    Args:
        seen: Statistics of ``d`` draws.
        a: ``(d, m, k)`` logits of labelled rows.
        labels: ``(d, m)``.
        biases: Whether there are biases, or a scale only.
    """
    every, target = np.concatenate([s.classes for s in seen]), np.array([s.target for s in seen])
    blank = Expert(
        every.mean(axis=0),
        every.std(axis=0) + _TINY,
        target.mean(axis=0),
        target.std(axis=0) + _TINY,
        np.ones(0),
        np.zeros(4),
    )
    t = (target - blank.centre) / blank.scale
    d, k = len(seen), a.shape[2]
    terms, term_scale = np.zeros((d, k, 0)), np.ones(0)
    if biases:
        terms = np.array([blank._terms(s.classes, own) for s, own in zip(seen, t, strict=True)])
        term_scale = terms.reshape(d * k, -1).std(axis=0) + _TINY
        terms /= term_scale
    f = terms.shape[2]
    t = np.concatenate([np.ones((d, 1)), t], axis=1)
    n, right = a.shape[0] * a.shape[1], labels[:, :, None]
    start = np.zeros(f + 4)
    start[f] = 1.0
    penalty = np.full(f + 4, _RIDGE)
    penalty[f] = 1e-6

    def loss(at: Array) -> tuple[float, Array]:
        logs = log_softmax((t @ at[f:])[:, None, None] * a + (terms @ at[:f])[:, None, :])
        value = -float(np.take_along_axis(logs, right, 2).mean())
        return value + float(penalty @ (at - start) ** 2) / 2, np.exp(logs)

    found = start.copy()
    value, q = loss(found)
    for _ in range(15):
        off = q.copy()
        np.put_along_axis(off, right, np.take_along_axis(off, right, 2) - 1, 2)
        first = np.einsum("dk,dkf->f", off.sum(axis=1), terms)
        slope = np.concatenate([first, (off * a).sum(axis=(1, 2)) @ t]) / n
        bend = np.zeros((f + 4, f + 4))
        flat = terms.reshape(d * k, f)
        mixed = (q @ terms).reshape(n, f)
        bend[:f, :f] = (flat * q.sum(axis=1).reshape(-1, 1)).T @ flat - mixed.T @ mixed
        centred = q * (a - (q * a).sum(axis=2, keepdims=True))
        bend[:f, f:] = np.einsum("dkf,dk->df", terms, centred.sum(axis=1)).T @ t
        bend[f:, :f] = bend[:f, f:].T
        bend[f:, f:] = (t * (centred * a).sum(axis=(1, 2))[:, None]).T @ t
        step = np.linalg.solve(bend / n + np.diag(penalty), slope + penalty * (found - start))
        before = value
        for _ in range(10):
            value, q = loss(found - step)
            if value <= before:
                break
            step /= 2
        found = found - step
        if before - value < 1e-6:
            break
    return Expert(
        blank.class_centre, blank.class_scale, blank.centre, blank.scale, term_scale, found
    )


def log_softmax(z: Array) -> Array:
    """Along the last axis."""
    z = z - z.max(axis=-1, keepdims=True)
    return np.asarray(z - np.log(np.exp(z).sum(axis=-1, keepdims=True)))


@dataclass(frozen=True)
class Gate:
    """Weights of the three experts from statistics ``(g,)``: a softmax of linear functions.

    Attributes:
        centre: ``(g,)`` of the statistics, and ``scale``.
        scale: See ``centre``.
        coefficients: ``(3, 1 + g)``.
    """

    centre: Array
    scale: Array
    coefficients: Array

    def __call__(self, statistics: Array) -> Array:
        """The weights ``(3,)``, which add up to 1."""
        x = np.concatenate([[1.0], (statistics - self.centre) / self.scale])
        return np.asarray(softmax((self.coefficients @ x)[None])[0])


def fit_gate(statistics: Array, answers: Sequence[Array], labels: Labels) -> Gate:
    """The gate that minimises the loss of the weighted experts, and of what plain does better.

    Minimises the mean over draws of ``l + (exp(4 max(l - l_plain, 0)) - 1) / 4``, ``l`` the
    negative log-likelihood: a correction that fails badly costs more than one that does not help.

    Args:
        statistics: ``(d, g)`` of the draws.
        answers: Logits ``(d, m, k)`` of each expert, plain last.
        labels: ``(d, m)``.
    """
    centre, scale = statistics.mean(axis=0), statistics.std(axis=0) + _TINY
    x = np.concatenate([np.ones((len(statistics), 1)), (statistics - centre) / scale], axis=1)
    right = labels[:, :, None]
    truth = [np.take_along_axis(one, right, 2)[:, :, 0].mean(axis=1) for one in answers]
    logs = log_softmax(answers[-1])
    plain = -np.take_along_axis(logs, right, 2)[:, :, 0].mean(axis=1)

    def loss(at: Array) -> tuple[float, Array]:
        at = at.reshape(len(answers), -1)
        g = softmax(x @ at.T)
        logs = log_softmax(
            sum(own[:, None, None] * one for own, one in zip(g.T, answers, strict=True))
        )
        each = -np.take_along_axis(logs, right, 2)[:, :, 0].mean(axis=1)
        q = np.exp(logs)
        slopes = [
            (q * one).sum(axis=2).mean(axis=1) - t for one, t in zip(answers, truth, strict=True)
        ]
        regret = np.exp(_REGRET * np.maximum(each - plain, 0))
        by_weight = np.stack(slopes, axis=1)
        by_gate = g * (by_weight - (g * by_weight).sum(axis=1, keepdims=True))
        slope = ((1 + np.where(each > plain, regret, 0)) / len(x) * by_gate.T) @ x
        slope[:, 1:] += _GATE_RIDGE * at[:, 1:]
        ridge = _GATE_RIDGE / 2 * float((at[:, 1:] ** 2).sum())
        return float((each + (regret - 1) / _REGRET).mean()) + ridge, slope.ravel()

    found = minimize(loss, np.zeros(len(answers) * x.shape[1]), jac=True, options={"maxiter": 100})
    return Gate(centre, scale, found.x.reshape(len(answers), -1))


@dataclass(frozen=True)
class Panel:
    """The experts and their gate for targets of one size.

    Attributes:
        size: Rows of the draws that they were learned from.
        moved: The expert for another mix.
        plain: The expert without biases.
        gate: Weighs same mix, ``moved`` and ``plain``.
        kept_errors: Quantiles of the error of the estimated accuracy of the model's predictions,
            on corruptions that were left out.
        corrected_errors: The same for corrected predictions.
    """

    size: float
    moved: Expert
    plain: Expert
    gate: Gate
    kept_errors: Array
    corrected_errors: Array

    def correct(self, outputs: Outputs, a: Array, w: Array, mix: Array) -> Correction:
        """The correction of a target."""
        (s, b), (plain, _) = self.moved(outputs), self.plain(outputs)
        weights = self.gate(gate_statistics(outputs, a, w, mix, s, b, plain))
        scale = float(weights @ [outputs.scale, s, plain])
        return Correction(
            scale, weights[0] * outputs.scale * outputs.bias + weights[1] * b, weights
        )


def gate_statistics(
    outputs: Outputs, a: Array, w: Array, mix: Array, scale: float, bias: Array, plain: float
) -> Array:
    """What the gate sees: the statistics of the outputs, and how far the experts disagree."""
    same, other, neither = (
        softmax(z) for z in (outputs.scale * (a + outputs.bias), scale * a + bias, plain * a)
    )
    mean = np.maximum(w @ other, 1e-6)

    def apart(p: Array, q: Array) -> float:
        return float(w @ np.abs(p - q).sum(axis=1)) / 2

    spread = outputs.bias.std() * bias.std()
    together = float(np.mean(outputs.bias * bias)) / spread if spread > _TINY else 0.0
    return np.array(
        [
            *outputs.gate,
            apart(same, other),
            apart(same, neither),
            apart(other, neither),
            mean @ np.log(mean / mix),
            scale,
            bias.std(),
            together,
        ]
    )


class Draw(NamedTuple):
    """A surrogate set under one class mix: statistics, rows and labelled rows."""

    outputs: Outputs
    set: int
    rows: NDArray[np.intp]
    weights: Array
    labelled: NDArray[np.intp]
    moved: bool


def learn(
    sets: Sequence[Logits],
    labels: Sequence[Labels],
    ladders: Sequence[int],
    temperature: float,
    mix: Array,
    *,
    seed: int,
) -> tuple[Panel, ...]:
    """The experts for every size, learned on surrogate sets under many class mixes.

    Args:
        sets: Logits of every set, the clean one first.
        labels: Their labels.
        ladders: Number of the corruption of every set, 0 for the clean one; corruptions are left
            out together when the gate is fitted.
        temperature: Of the clean set.
        mix: ``(k,)`` class mix of the calibration set.
        seed: Of the draws.
    """
    rng = np.random.default_rng(seed)
    a = [np.asarray(z, np.float64) / temperature for z in sets]
    fold = [-1 if own == 0 else own % _FOLDS for own in ladders]
    return tuple(_learn(size, a, labels, fold, mix, rng) for size in SIZES)


def _learn(
    size: int,
    a: Sequence[Array],
    labels: Sequence[Labels],
    fold: Sequence[int],
    mix: Array,
    rng: np.random.Generator,
) -> Panel:
    draws = _draws(size, a, labels, mix, rng)
    logits = np.stack([a[d.set][d.labelled] for d in draws])
    right = np.stack([labels[d.set][d.labelled] for d in draws])
    of_fold = np.array([fold[d.set] for d in draws])
    moved = np.array([d.moved for d in draws])

    def experts(kept: NDArray[np.bool_]) -> tuple[Expert, Expert]:
        return tuple(  # type: ignore[return-value]
            fit_expert([draws[i].outputs for i in rows], logits[rows], right[rows], biases=biases)
            for rows, biases in (
                (np.flatnonzero(kept & moved), True),
                (np.flatnonzero(kept), False),
            )
        )

    statistics: list[Array] = [np.empty(0)] * len(draws)
    affine: list[tuple[float, Array, float]] = [(1.0, np.empty(0), 1.0)] * len(draws)
    folds = sorted(set(of_fold.tolist()) - {-1})
    for own in folds:
        other, plain = experts(of_fold != own)
        for i in np.flatnonzero((of_fold == own) | ((of_fold == -1) & (own == folds[0]))).tolist():
            d = draws[i]
            (s, b), (p, _) = other(d.outputs), plain(d.outputs)
            statistics[i] = gate_statistics(d.outputs, a[d.set][d.rows], d.weights, mix, s, b, p)
            affine[i] = (s, b, p)
    same = np.stack(
        [d.outputs.scale * (z + d.outputs.bias) for d, z in zip(draws, logits, strict=True)]
    )
    other_mix = np.stack([s * z + b for (s, b, _), z in zip(affine, logits, strict=True)])
    no_bias = np.stack([p * z for (_, _, p), z in zip(affine, logits, strict=True)])
    gate = fit_gate(np.stack(statistics), [same, other_mix, no_bias], right)
    errors = []
    for d, x, (s, b, p) in zip(draws, statistics, affine, strict=True):
        g = gate(x)
        rows, y = a[d.set][d.rows], labels[d.set][d.rows]
        q = softmax(
            float(g @ [d.outputs.scale, s, p]) * rows
            + g[0] * d.outputs.scale * d.outputs.bias
            + g[1] * b
        )
        top = rows.argmax(axis=1)
        kept = d.weights @ (q[np.arange(len(y)), top] - (top == y))
        errors.append((kept, d.weights @ (q.max(axis=1) - (q.argmax(axis=1) == y))))
    levels = (np.arange(200) + 0.5) / 200
    kept_errors, corrected_errors = np.quantile(np.array(errors), levels, axis=0).T
    everything = np.ones(len(draws), np.bool_)
    return Panel(float(size), *experts(everything), gate, kept_errors, corrected_errors)


def _draws(
    size: int, a: Sequence[Array], labels: Sequence[Labels], mix: Array, rng: np.random.Generator
) -> list[Draw]:
    k = len(mix)
    per_set = (*_OTHER_MIX, *_SAME_MIX)
    share = min(1.0, _MOST_DRAWN / (len(a) * len(per_set) * k))
    # With many classes every set is drawn fewer times, and other mixes are spread over the sets.
    count = max(2, round(share * len(per_set)))
    found = []
    for j, (z, y) in enumerate(zip(a, labels, strict=True)):
        chosen = per_set if count == len(per_set) else tuple(rng.permutation(len(per_set))[:count])
        mixes = chosen if count == len(per_set) else tuple(per_set[i] for i in chosen)
        for concentration in mixes * (1 if j else _CLEAN):
            own = mix if concentration is None else rng.dirichlet(concentration * k * mix)
            weights = (own / mix)[y]
            weights = weights / weights.sum()
            counts = rng.multinomial(size, weights)
            rows = np.flatnonzero(counts)
            w = counts[rows] / size
            outputs = describe(z[rows], w, mix, size, len(y))
            labelled = rng.choice(len(y), _LABELLED, p=weights)
            moved = concentration is not None and concentration < 20
            found.append(Draw(outputs, j, rows, w, labelled, moved))
    return found
