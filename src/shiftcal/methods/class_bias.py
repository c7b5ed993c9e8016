"""Class biases of a shifted target, estimated from its outputs: the experts behind Realign.

Corruption hardly changes the temperature a network needs; it makes the network favour a few
classes. A bias per class undoes that: ``softmax(s a + b)`` with ``a = z / T`` and ``T`` the
temperature of the clean calibration set. From unlabelled outputs, a network that favours a class
looks like data in which that class is frequent. So three experts answer, and a gate weighs them:

- *same prior*: ``b`` makes the mean output equal the class prior of the calibration set, shrunk by
  what chance explains.
- *moved prior*: ``s`` and ``b`` are regressed on statistics of the outputs. The regression is
  learned on the surrogate sets, drawn under many class priors.
- *plain*: no bias, ``s`` regressed on the statistics.

Each answer is affine in ``a``, and so is their weighted sum: one scale, one bias per class. Several
panels of experts learn from different draws. Their mean is used, and biases on which they disagree
are shrunk.

Arrays of logits are ``(k, n)`` here: numpy sums over the first axis ten times faster than over ten
neighbours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal.numerics.blocks import one_blas_thread, row_blocks
from shiftcal.progress import track
from shiftcal.types import Floats, Labels, Logits

Array = NDArray[np.float64]

# Sizes of the targets that are rehearsed. A target of another size interpolates between them.
SIZES = (100, 2000)
# Panels for each size: many, learned from few draws each, since one panel's answer to a new
# corruption depends much on its draws.
PANELS = 8
# The class prior of a target is never known better than from this many rows.
_TRUSTED_ROWS = 1000
# Up to this many classes the match uses the whole matrix of derivatives, above it the diagonal.
_DENSE = 128
# Priors of the draws of a set, as Dirichlet concentrations around the calibration prior; None is
# that prior itself. A panel sees a few of them for every set, and four times as many for the clean
# one.
_MOVED = (10.0, 10.0, 3.0, 3.0, 1.0, 1.0, 1.0, 0.3, 0.3, 0.3)
_UNMOVED = (None, None, None, None, 30.0)
_DRAWS, _CLEAN = 4, 4
# With many classes there are fewer draws: this many draws times classes.
_MOST_DRAWN = 30_000
# Share of the draws that mix two sets: easy and hard rows in one target.
_MIXED = 1 / 3
# Labelled rows of a draw: all for the gate and the level, the first hundred for the experts.
_LABELLED, _EXPERT_ROWS = 400, 100
_FOLDS = 4
_RIDGE, _GATE_RIDGE, _ERROR_RIDGE = 3e-4, 1e-3, 0.1
# A loss above that of the plain expert costs more than a gain brings, and exponentially so, up to
# this much above.
_REGRET, _REGRET_END = 64.0, 0.1
# Errors of estimated accuracies are this much larger where a whole family of corruptions is new.
_WIDER = 1.25
_TINY = 1e-9
# Weights of the three experts at which the loss of a draw is known: a cubic goes through them.
_NODES = np.array([p for p in itertools.product(range(4), repeat=3) if sum(p) == 3]) / 3
_POWERS = np.array([p for p in itertools.product(range(4), repeat=2) if sum(p) <= 3])


def log_odds(x: Floats | float) -> Array:
    """``log(x / (1 - x))`` of probabilities, which are kept away from 0 and 1."""
    x = np.clip(x, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(x / (1 - x)))


def sigmoid(x: Floats | float) -> Array:
    """The inverse of :func:`log_odds`."""
    return np.asarray(1 / (1 + np.exp(-np.asarray(x))))


def shift_to_mean(p: Floats, mean: float) -> float:
    """What to add to the log-odds of ``p`` so that their mean probability is ``mean``."""
    shift, n = 0.0, len(p)
    for _ in range(50):
        total, slope = 0.0, 0.0
        for rows in row_blocks(n, 1):
            now = sigmoid(log_odds(p[rows]) + shift)
            total += float(now.sum())
            slope += float((now * (1 - now)).sum())
        step = (total / n - mean) / max(slope / n, 1e-3)
        shift -= min(max(step, -1.0), 1.0)
        if abs(step) < 1e-9:
            break
    return shift


def _softmax(z: Array) -> Array:
    """Over the classes, the second axis from the end: numpy is ten times faster there."""
    e = z - z.max(axis=-2, keepdims=True)
    np.exp(e, out=e)
    e /= e.sum(axis=-2, keepdims=True)
    return e


def _losses(z: Array, labels: Labels) -> Array:
    """Negative log-likelihood of every row ``(..., n)``."""
    top = z.max(axis=-2, keepdims=True)
    own = np.take_along_axis(z, labels[..., None, :], -2)[..., 0, :]
    return np.asarray(np.log(np.exp(z - top).sum(axis=-2)) + top[..., 0, :] - own)


# --------------------------------------------------------------------------------------
# The class prior known: biases that make the mean output equal to it.
# --------------------------------------------------------------------------------------


def match_prior(
    a: Array, w: Array, prior: Array, rows: float, variance: float | None = None
) -> tuple[Array, float]:
    """Biases that move the mean output to the class prior, and the mean variance of a bias.

    Minimises ``rows/2 Σ_k (mean q_k - prior_k)² / prior_k + |b|² / 2 variance`` over ``b`` by
    Gauss-Newton, with ``q = softmax(a + b)``.

    Args:
        a: ``(k, n)`` logits over the clean temperature.
        w: ``(n,)`` weights of the rows, summing to 1.
        prior: ``(k,)``, positive.
        rows: How many rows the mean output is worth.
        variance: Of the biases before the outputs are seen; default: estimated from them.
    """
    k = len(a)
    b, worth = np.zeros(k), rows / prior
    s2 = 1.0 if variance is None else variance
    total = 0.0
    for _ in range(25):
        q = _softmax(a + b[:, None])
        mean = q @ w
        if k <= _DENSE:
            slope = np.diag(mean) - (q * w) @ q.T
            inverse = np.linalg.inv((slope * worth) @ slope + np.eye(k) / s2)
            step = inverse @ (slope @ (worth * (mean - prior)) + b / s2)
            total = float(np.trace(inverse))
        else:
            own = mean - (q * q) @ w
            bend = own * own * worth + 1 / s2
            step = 0.8 * (own * worth * (mean - prior) + b / s2) / bend
            total = float((1 / bend).sum())
        largest = float(np.abs(step).max())
        b = b - step * min(1.0, 2.0 / max(largest, _TINY))
        b -= b.mean()
        if variance is None:
            s2 = max((float(b @ b) + total) / (k - 1), 1e-4)
        if largest < 1e-3:
            break
    return b, total / (k - 1)


def same_prior(a: Array, w: Array, prior: Array, n: int, n_calibration: int) -> tuple[float, Array]:
    """Scale and biases for a target of ``n`` rows whose class prior is known.

    To first order it is ``softmax(a + b)`` averaged over the uncertainty of ``b``.
    """
    rows = 1 / (1 / n + 1 / n_calibration + 1 / _TRUSTED_ROWS)
    bias, variance = match_prior(a, w, prior, rows)
    scale = 1 / math.sqrt(1 + math.pi / 8 * variance)
    return scale, scale * bias


def _em_prior(p: Array, w: Array, prior: Array) -> Array:
    """The class prior under which the outputs are likeliest, if only the prior has moved."""
    ratio = np.ones(len(prior))
    for _ in range(60):
        before, ratio = ratio, ratio * (p @ (w / (ratio @ p))) / prior
        if np.abs(ratio - before).max() < 1e-3:
            break
    return np.maximum(ratio * prior, 1e-4)


# --------------------------------------------------------------------------------------
# Statistics of a target's outputs.
# --------------------------------------------------------------------------------------


class Outputs(NamedTuple):
    """What is computed once from a target's outputs.

    Attributes:
        classes: ``(k, 7)`` statistics of every class.
        target: ``(3,)`` statistics of the target.
        scale: Of the expert for the same prior.
        bias: ``(k,)`` of that expert.
        gate: ``(13,)`` statistics for the gate.
    """

    classes: Array
    target: Array
    scale: float
    bias: Array
    gate: Array


def describe(a: Array, w: Array, prior: Array, n: int, n_calibration: int) -> Outputs:
    """Statistics of a target's outputs, and the answer for an unchanged prior.

    Args:
        a: ``(k, m)`` logits over the clean temperature.
        w: ``(m,)`` weights of the rows.
        prior: ``(k,)`` of the calibration set.
        n: Rows of the target.
        n_calibration: Rows of the calibration set.
    """
    k = len(a)
    p = _softmax(a)
    mean, square = p @ w, (p * p) @ w
    top, confidence = p.argmax(axis=0), p.max(axis=0)
    overall = float(w @ confidence)
    rows = np.bincount(top, w, k) * n
    # Three rows of mean confidence are added: some classes are hardly ever predicted.
    predicted = (np.bincount(top, w * confidence, k) * n + 3 * overall) / (rows + 3)
    sharpness = square / np.maximum(mean, _TINY)
    excess = np.log(np.maximum(mean, 1e-5) / prior)
    matched = np.clip(match_prior(a, w, prior, n, variance=1e3)[0], -6, 6)
    em = _em_prior(p, w, prior)
    frequent = np.log(em / prior)

    def confused(values: Array) -> Array:
        """Their mean over the classes that each class is confused with."""
        return (p @ (w * (values @ p)) - square * values) / np.maximum(mean - square, 1e-12)

    classes = [excess, sharpness, log_odds(predicted), matched, frequent]
    classes += [confused(matched), confused(frequent)]
    entropy = -float((mean * np.log(np.maximum(mean, _TINY))).sum())
    target = np.array([float(log_odds(overall)), entropy, sharpness.mean()])
    scale, bias = same_prior(a, w, prior, n, n_calibration)
    q = _softmax(a + (bias / scale)[:, None])
    after = ((q * q) @ w) / np.maximum(q @ w, _TINY)
    em = em / em.sum()
    gate = [
        *target,
        after.mean(),
        after.std(),
        after.min(),
        bias.std(),
        np.abs(bias).max(),
        em @ np.log(em / prior),
        matched.std(),
        excess.std(),
        frequent.std(),
        w @ q.max(axis=0),
    ]
    return Outputs(np.stack(classes, axis=1), target, scale, bias, np.array(gate))


# --------------------------------------------------------------------------------------
# The class prior not known: scale and biases regressed on the statistics.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expert:
    """Scale and biases as linear functions of the statistics and their products.

    Attributes:
        class_centre: ``(7,)`` mean of the class statistics.
        class_scale: ``(7,)`` their standard deviations.
        centre: ``(3,)`` mean of the target's statistics.
        scale: ``(3,)`` their standard deviations.
        term_scale: ``(t,)`` standard deviations of the terms of a bias; empty without biases.
        coefficients: ``(t + 4,)`` of those terms, then of the scale.
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
        scale = max(float(self.coefficients[-4] + self.coefficients[-3:] @ t), 0.1)
        if not len(self.term_scale):
            return scale, np.zeros(len(outputs.classes))
        terms = self._terms(outputs.classes, t) / self.term_scale
        return scale, terms @ self.coefficients[:-4]

    def _terms(self, classes: Array, t: Array) -> Array:
        """Statistics of a class, their products in pairs and with those of the target."""
        f = (classes - self.class_centre) / self.class_scale
        i, j = np.triu_indices(f.shape[1])
        terms = np.concatenate([f, *(f * x for x in t), f[:, i] * f[:, j]], axis=1)
        return np.asarray(terms - terms.mean(axis=0))


def _fit_expert(seen: Sequence[Outputs], a: Array, labels: Labels, *, biases: bool) -> Expert:
    """The expert with the least negative log-likelihood on labelled rows of many draws.

    Scale and biases are linear in the coefficients, so the loss is convex: Newton's method.

    Args:
        seen: Statistics of ``d`` draws.
        a: ``(d, k, m)`` logits of labelled rows.
        labels: ``(d, m)``.
        biases: Whether there are biases, or a scale only.
    """
    every, target = np.concatenate([s.classes for s in seen]), np.array([s.target for s in seen])
    standard = [f(x, axis=0) for x in (every, target) for f in (np.mean, np.std)]
    class_centre, class_scale, centre, scale = standard
    blank = Expert(
        class_centre, class_scale + _TINY, centre, scale + _TINY, np.ones(0), np.zeros(4)
    )
    t = (target - blank.centre) / blank.scale
    d, k, m = a.shape
    terms, term_scale = np.zeros((d, k, 0)), np.ones(0)
    if biases:
        terms = np.array([blank._terms(s.classes, own) for s, own in zip(seen, t, strict=True)])
        term_scale = terms.reshape(d * k, -1).std(axis=0) + _TINY
        terms /= term_scale
    f = terms.shape[2]
    t = np.concatenate([np.ones((d, 1)), t], axis=1)
    start, penalty = np.zeros(f + 4), np.full(f + 4, _RIDGE)
    start[f], penalty[f] = 1.0, 1e-6
    truth = labels[:, None, :]

    def loss(at: Array) -> tuple[float, Array]:
        z = (t @ at[f:])[:, None, None] * a + (terms @ at[:f])[:, :, None]
        return float(_losses(z, labels).mean() + penalty @ (at - start) ** 2 / 2), z

    found = start.copy()
    value, z = loss(found)
    for _ in range(15):
        q = _softmax(z)
        off = q.copy()
        np.put_along_axis(off, truth, np.take_along_axis(off, truth, 1) - 1, 1)
        slope = np.concatenate(
            [np.einsum("dk,dkf->f", off.sum(axis=2), terms), np.einsum("dkm,dkm->d", off, a) @ t]
        )
        flat, mixed = terms.reshape(d * k, f), (q.transpose(0, 2, 1) @ terms).reshape(d * m, f)
        centred = q * (a - (q * a).sum(axis=1, keepdims=True))
        bend = np.zeros((f + 4, f + 4))
        bend[:f, :f] = (flat * q.sum(axis=2).reshape(-1, 1)).T @ flat - mixed.T @ mixed
        bend[:f, f:] = np.einsum("dkf,dk->df", terms, centred.sum(axis=2)).T @ t
        bend[f:, :f] = bend[:f, f:].T
        bend[f:, f:] = (t * (centred * a).sum(axis=(1, 2))[:, None]).T @ t
        step = np.linalg.solve(
            bend / (d * m) + np.diag(penalty), slope / (d * m) + penalty * (found - start)
        )
        before = value
        for _ in range(10):
            value, z = loss(found - step)
            if value <= before:
                break
            step /= 2
        found = found - step
        if before - value < 1e-6:
            break
    return Expert(
        blank.class_centre, blank.class_scale, blank.centre, blank.scale, term_scale, found
    )


# --------------------------------------------------------------------------------------
# Which expert to believe.
# --------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """Scales ``(3,)`` and biases ``(3, k)`` of the experts: same prior, moved prior, plain."""

    scales: Array
    biases: Array

    def pooled(self, weights: Array) -> tuple[float, Array]:
        """Their weighted sum."""
        return float(weights @ self.scales), weights @ self.biases


@dataclass(frozen=True)
class Gate:
    """Weights of the experts: the softmax of linear functions of statistics.

    Attributes:
        centre: ``(g,)`` mean of the statistics.
        scale: ``(g,)`` their standard deviations.
        coefficients: ``(3, 1 + g)``.
    """

    centre: Array
    scale: Array
    coefficients: Array

    def __call__(self, statistics: Array) -> Array:
        """The weights ``(3,)``, summing to 1."""
        return _softmax(self.coefficients @ self.standard(statistics)[:, None])[:, 0]

    def standard(self, statistics: Array) -> Array:
        """``(..., 1 + g)``: 1 and the standardised statistics."""
        x = (statistics - self.centre) / self.scale
        return np.concatenate([np.ones((*x.shape[:-1], 1)), x], axis=-1)


def _gate_statistics(outputs: Outputs, answers: Answers, a: Array, w: Array, prior: Array) -> Array:
    """What the gate sees: the statistics of the outputs, and how far the experts disagree."""
    same, moved, plain = (
        _softmax(s * a + b[:, None]) for s, b in zip(answers.scales, answers.biases, strict=True)
    )
    mean = np.maximum(moved @ w, 1e-6)
    first, second = answers.biases[:2]
    spread = first.std() * second.std()
    together = float(np.mean(first * second)) / spread if spread > _TINY else 0.0
    apart = [
        w @ np.abs(p - q).sum(axis=0) / 2 for p, q in ((same, moved), (same, plain), (moved, plain))
    ]
    more = [mean @ np.log(mean / prior), answers.scales[1], second.std(), together]
    return np.array([*outputs.gate, *apart, *more])


def _fit_gate(statistics: Array, losses: Array) -> Gate:
    """The gate with the least loss, plus a penalty where the plain expert does better.

    Minimises the mean over draws of ``l + (exp(64 x) - 1) / 64``, with ``l`` the negative
    log-likelihood of the weighted experts and ``x = max(l - l_plain, 0)``. As a function of the
    weights ``l`` is close to a cubic, which its values at ten weights give.

    Args:
        statistics: ``(d, g)`` of the draws.
        losses: ``(d, 10)`` at the weights ``_NODES``.
    """
    centre, scale = statistics.mean(axis=0), statistics.std(axis=0) + _TINY
    x = np.concatenate([np.ones((len(statistics), 1)), (statistics - centre) / scale], axis=1)
    cubic = losses @ np.linalg.inv(_monomials(_NODES)[0]).T
    plain = losses[:, np.flatnonzero(_NODES[:, 2] == 1)[0]]

    def loss(at: Array) -> tuple[float, Array]:
        at = at.reshape(3, -1)
        g = _softmax(at @ x.T).T
        values, *slopes = ((one * cubic).sum(axis=1) for one in _monomials(g))
        worse = np.maximum(values - plain, 0)
        near = np.minimum(worse, _REGRET_END)
        growth = np.exp(_REGRET * near)
        regret = (growth - 1) / _REGRET + (worse - near) * growth
        by_weight = np.stack([*slopes, np.zeros(len(x))], axis=1)
        by_gate = g * (by_weight - (g * by_weight).sum(axis=1, keepdims=True))
        slope = ((1 + np.where(worse > 0, growth, 0)) / len(x) * by_gate.T) @ x
        slope[:, 1:] += _GATE_RIDGE * at[:, 1:]
        ridge = _GATE_RIDGE / 2 * float((at[:, 1:] ** 2).sum())
        return float((values + regret).mean()) + ridge, slope.ravel()

    found = minimize(loss, np.zeros(3 * x.shape[1]), jac=True, method="L-BFGS-B")
    return Gate(centre, scale, found.x.reshape(3, -1))


def _monomials(g: Array) -> tuple[Array, Array, Array]:
    """Monomials ``(d, 10)`` up to degree three in the first two weights, and their derivatives."""
    u, v = g[:, :1], g[:, 1:2]
    i, j = _POWERS.T
    lower_i, lower_j = np.maximum(i - 1, 0), np.maximum(j - 1, 0)
    return u**i * v**j, i * u**lower_i * v**j, j * u**i * v**lower_j


# --------------------------------------------------------------------------------------
# The confidence in the model's own predictions.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """Recalibrates the probability of the model's own prediction.

    With ``x`` the standardised log-odds of its mean over a target, the log-odds ``l`` of a row
    become ``(c0 + c1 x) + (1 + c2 + c3 x) l``.

    Attributes:
        centre: Mean of the log-odds over draws.
        scale: Their standard deviation.
        coefficients: ``(4,)``.
    """

    centre: float
    scale: float
    coefficients: Array

    def __call__(self, mean: float) -> tuple[float, float]:
        """Shift and slope of the log-odds, for a target with this mean."""
        x = float(np.clip((log_odds(mean) - self.centre) / self.scale, -2.5, 2.5))
        shift, by_x, slope, slope_by_x = self.coefficients.tolist()
        return shift + by_x * x, 1 + slope + slope_by_x * x


def _fit_level(means: Array, odds: Array, correct: Array) -> Level:
    """Logistic regression of correct predictions by Newton's method.

    Args:
        means: ``(d,)`` mean probability of the model's own prediction, of each draw.
        odds: ``(d, m)`` log-odds of labelled rows.
        correct: ``(d, m)``.
    """
    x = log_odds(means)
    centre, scale = float(x.mean()), float(x.std()) + _TINY
    x = np.repeat(np.clip((x - centre) / scale, -2.5, 2.5), odds.shape[1])
    offset, y = odds.ravel(), correct.ravel()
    terms = np.stack([np.ones(len(x)), x, offset, x * offset], axis=1)
    penalty = np.array([0.0, 1e-3, 1e-4, 1e-2])
    found = np.zeros(4)
    for _ in range(25):
        p = sigmoid(offset + terms @ found)
        slope = terms.T @ (p - y) / len(y) + penalty * found
        bend = (terms * (p * (1 - p))[:, None]).T @ terms / len(y) + np.diag(penalty)
        step = np.linalg.solve(bend + 1e-9 * np.eye(4), slope)
        found = found - step
        if np.abs(step).max() < 1e-6:
            break
    return Level(centre, scale, found)


# --------------------------------------------------------------------------------------
# All of it for targets of one size.
# --------------------------------------------------------------------------------------


class Correction(NamedTuple):
    """Corrected probabilities are ``softmax(scale a + bias)``.

    Attributes:
        scale: Of the logits over the clean temperature.
        bias: ``(k,)``.
        weights: ``(3,)`` of the experts: same prior, moved prior, plain.
        shift: Added to the log-odds of the model's own prediction, after ``slope``.
        slope: Of those log-odds.
        errors: ``(2, 200)`` quantiles of the errors of the estimated accuracies of the model's
            own and of corrected predictions.
    """

    scale: float
    bias: Array
    weights: Array
    shift: float
    slope: float
    errors: Array


@dataclass(frozen=True)
class Panel:
    """The experts, their gate and the level, learned from draws of one size.

    Attributes:
        size: Rows of those targets.
        moved: The expert for a moved prior.
        plain: The expert without biases.
        gate: Weighs the experts.
        level: Recalibrates the model's own predictions.
        error_scales: ``(2, 1 + g)``: logarithm of the size of the errors of the estimated
            accuracies (own predictions, corrected ones), linear in the gate's statistics.
        errors: ``(2, 200)`` quantiles of those errors over that size, on corruptions left out.
    """

    size: int
    moved: Expert
    plain: Expert
    gate: Gate
    level: Level
    error_scales: Array
    errors: Array

    def answer(
        self, outputs: Outputs, a: Array, w: Array, prior: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Scale, biases ``(k,)``, weights of the experts, and errors of estimated accuracies."""
        answers = _ask(outputs, self.moved, self.plain)
        statistics = _gate_statistics(outputs, answers, a, w, prior)
        weights = self.gate(statistics)
        scale, bias = answers.pooled(weights)
        sizes = np.exp(self.error_scales @ np.clip(self.gate.standard(statistics), -3, 3))
        return np.asarray(scale), bias, weights, _WIDER * sizes[:, None] * self.errors


def consult(
    panels: Sequence[Panel], a: Array, w: Array, prior: Array, n: int, n_calibration: int
) -> Correction:
    """The mean answer of the panels, between those for few and for many rows.

    Args:
        panels: As :func:`learn` gives them.
        a: ``(k, m)`` logits over the clean temperature.
        w: ``(m,)`` weights of the rows.
        prior: ``(k,)`` of the calibration set.
        n: Rows of the target.
        n_calibration: Rows of the calibration set.
    """
    outputs = describe(a, w, prior, n, n_calibration)
    few, many = SIZES
    share = min(max(math.log(n / few) / math.log(many / few), 0.0), 1.0)
    parts = {size: part / PANELS for size, part in ((few, 1 - share), (many, share)) if part > 0}
    asked = [panel for panel in panels if panel.size in parts]
    each = np.array([parts[panel.size] for panel in asked])

    def pooled(values: Iterable[object]) -> Array:
        return np.tensordot(each, np.stack([np.asarray(value) for value in values]), 1)

    found = [panel.answer(outputs, a, w, prior) for panel in asked]
    scale, _, weights, errors = (pooled(values) for values in zip(*found, strict=True))
    biases = PANELS * each[:, None] * [bias for _, bias, *_ in found]
    bias = _agreed(biases.reshape(-1, PANELS, len(prior)).sum(axis=0))
    mean = float(w @ _own(_softmax(scale * a + bias[:, None]), a))
    shift, slope = pooled(panel.level(mean) for panel in asked).tolist()
    return Correction(float(scale), bias, weights, shift, slope, errors)


def _agreed(biases: Array) -> Array:
    """Mean of the panels' biases ``(p, k)``, shrunk where they disagree.

    With ``v`` their variance around the mean ``b``, summed over classes: ``b / (1 + v / |b|²)``.
    """
    mean = biases.mean(axis=0)
    variance = float(((biases - mean) ** 2).sum()) / (len(biases) - 1)
    return np.asarray(mean / (1 + variance / max(float(mean @ mean), _TINY)))


def _ask(outputs: Outputs, moved: Expert, plain: Expert) -> Answers:
    """What the three experts answer."""
    (s, b), (p, none) = moved(outputs), plain(outputs)
    return Answers(np.array([outputs.scale, s, p]), np.stack([outputs.bias, b, none]))


def _own(q: Array, a: Array) -> Array:
    """The probability of the model's own prediction."""
    return np.asarray(np.take_along_axis(q, a.argmax(axis=-2)[..., None, :], -2)[..., 0, :])


class _Sets(NamedTuple):
    """All surrogate sets, one after another.

    Attributes:
        a: ``(k, n)`` logits over the clean temperature.
        labels: ``(n,)``.
        ends: Where each set ends.
        folds: Of every set the number of the fold it is left out with, -1 for the clean one.
    """

    a: Array
    labels: Labels
    ends: NDArray[np.intp]
    folds: NDArray[np.int64]

    def rows(self, j: int) -> NDArray[np.intp]:
        """The rows of a set."""
        return np.arange(self.ends[j - 1] if j else 0, self.ends[j])


class _Draw(NamedTuple):
    """A surrogate set under one class prior: rows with weights, and labelled rows."""

    outputs: Outputs
    fold: int
    rows: NDArray[np.intp]
    weights: Array
    labelled: NDArray[np.intp]
    moved: bool


def learn(
    sets: Sequence[Logits],
    labels: Sequence[Labels],
    ladders: Sequence[int],
    temperature: float,
    prior: Array,
    *,
    seed: int,
) -> tuple[Panel, ...]:
    """Panels for every size, learned on surrogate sets under many class priors.

    Args:
        sets: Logits of every set, the clean one first.
        labels: Their labels.
        ladders: Number of the corruption of every set, 0 for the clean one. Some corruptions are
            left out in turn when the gate and the level are fitted.
        temperature: Of the clean set.
        prior: ``(k,)`` of the calibration set.
        seed: Of the draws.

    Returns:
        ``PANELS`` for the first size, then for the second.
    """
    rng = np.random.default_rng(seed)
    stacked = np.concatenate([np.asarray(z, np.float64) for z in sets])
    a = np.ascontiguousarray(stacked.T) / temperature
    ends = np.cumsum([len(y) for y in labels])
    folds = np.array([-1 if ladder == 0 else ladder % _FOLDS for ladder in ladders])
    every = _Sets(a, np.concatenate(labels), ends, folds)
    with one_blas_thread():  # the matrices are too small to share
        sizes = track([size for size in SIZES for _ in range(PANELS)], "learning class biases")
        return tuple(_learn(size, every, prior, rng) for size in sizes)


def _learn(size: int, sets: _Sets, prior: Array, rng: np.random.Generator) -> Panel:
    draws = _draw(size, sets, prior, rng)
    logits = np.stack([sets.a.take(d.labelled, axis=1) for d in draws])
    truth = sets.labels[np.stack([d.labelled for d in draws])]
    fold = np.array([d.fold for d in draws])
    moved = np.array([d.moved for d in draws])

    def experts(kept: NDArray[np.bool_]) -> tuple[Expert, Expert]:
        some, every = np.flatnonzero(kept & moved), np.flatnonzero(kept)
        found = [
            _fit_expert(
                [draws[i].outputs for i in rows],
                logits[rows, :, :_EXPERT_ROWS],
                truth[rows, :_EXPERT_ROWS],
                biases=biases,
            )
            for rows, biases in ((some, True), (every, False))
        ]
        return found[0], found[1]

    answers: dict[int, Answers] = {}
    for left_out in sorted(set(fold.tolist()) - {-1}):
        pair = experts(fold != left_out)
        # The clean set is never left out: every target has it in the bank.
        for i in np.flatnonzero((fold == left_out) | (fold == -1)).tolist():
            answers.setdefault(i, _ask(draws[i].outputs, *pair))
    statistics, losses = [], []
    for i, d in enumerate(draws):
        rows = sets.a.take(d.rows, axis=1)
        statistics.append(_gate_statistics(d.outputs, answers[i], rows, d.weights, prior))
        pooled = (answers[i].pooled(node) for node in _NODES)
        losses.append([_losses(s * logits[i] + b[:, None], truth[i]).mean() for s, b in pooled])
    gate = _fit_gate(np.stack(statistics), np.array(losses))

    means, odds, correct, seen, corrected = [], [], [], [], []
    for i, d in enumerate(draws):
        scale, bias = answers[i].pooled(gate(statistics[i]))
        rows, y = sets.a.take(d.rows, axis=1), sets.labels[d.rows]
        q = _softmax(scale * rows + bias[:, None])
        means.append(float(d.weights @ _own(q, rows)))
        seen.append((log_odds(_own(q, rows)), rows.argmax(axis=0) == y))
        corrected.append(d.weights @ (q.max(axis=0) - (q.argmax(axis=0) == y)))
        odds.append(log_odds(_own(_softmax(scale * logits[i] + bias[:, None]), logits[i])))
        correct.append(logits[i].argmax(axis=0) == truth[i])
    level = _fit_level(np.array(means), np.stack(odds), np.stack(correct).astype(np.float64))
    kept = []
    for d, mean, (of_rows, right) in zip(draws, means, seen, strict=True):
        shift, slope = level(mean)
        kept.append(d.weights @ (sigmoid(shift + slope * of_rows) - right))
    errors = np.array([kept, corrected])
    x = np.clip(gate.standard(np.stack(statistics)), -3, 3)
    penalty = _ERROR_RIDGE * len(x) * np.diag([0.0, *np.ones(x.shape[1] - 1)])
    logs = np.log(np.abs(errors) + 0.005)
    scales = np.linalg.solve(x.T @ x + penalty, x.T @ logs.T).T.copy()
    quantiles = np.quantile(errors / np.exp(scales @ x.T), (np.arange(200) + 0.5) / 200, axis=1).T
    pair = experts(np.ones(len(draws), np.bool_))
    return Panel(size, *pair, gate, level, scales, quantiles.copy())


def _draw(size: int, sets: _Sets, prior: Array, rng: np.random.Generator) -> list[_Draw]:
    """Targets of ``size`` rows drawn from every set under many class priors."""
    k, many = len(prior), len(sets.ends)
    priors = (*_MOVED, *_UNMOVED)
    count = min(_DRAWS, max(2, _MOST_DRAWN // (many * k)))
    found = []
    for j, fold in enumerate(sets.folds.tolist()):
        # What a set is mixed with is left out together with it, or never.
        partners = np.flatnonzero(sets.folds == fold)
        chosen = rng.permutation(len(priors))[:count].tolist()
        for concentration in [priors[i] for i in chosen] * (1 if j else _CLEAN):
            own = prior if concentration is None else rng.dirichlet(concentration * k * prior)
            shares = {j: 1.0}
            if j and rng.random() < _MIXED:
                other = 0 if rng.random() < 0.5 else int(rng.choice(partners))
                share = rng.uniform(0.2, 0.8)
                shares = {other: share, j: 1 - share}
            index = np.concatenate([sets.rows(part) for part in shares])
            weights = np.concatenate(
                [
                    share * _normalised((own / prior)[sets.labels[sets.rows(part)]])
                    for part, share in shares.items()
                ]
            )
            weights = _normalised(weights)
            counts = rng.multinomial(size, weights)
            drawn = np.flatnonzero(counts)
            rows, w = index[drawn], counts[drawn] / size
            n_calibration = len(sets.rows(j))
            outputs = describe(sets.a.take(rows, axis=1), w, prior, size, n_calibration)
            labelled = index[rng.choice(len(index), _LABELLED, p=weights)]
            moved = concentration is not None and concentration < 20
            found.append(_Draw(outputs, fold, rows, w, labelled, moved))
    return found


def _normalised(x: Array) -> Array:
    return np.asarray(x / x.sum())
