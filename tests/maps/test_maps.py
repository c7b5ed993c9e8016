"""Calibration maps against other solvers, other libraries and known truths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from map_data import draw_logits, nll, quiet_fit, softmax, top1
from map_data import draw_logits as draw
from scipy import special
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit, log_softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from shiftcal import maps
from shiftcal.errors import FitWarning
from shiftcal.maps import (
    Beta,
    Dirichlet,
    EnsembleTemperature,
    EntropyTemperature,
    Histogram,
    Isotonic,
    Matrix,
    Spline,
    Temperature,
    Vector,
)
from shiftcal.numerics.fits import (
    beta_log_odds,
    linear_softmax,
    lowest_top1,
    rows_with_top1,
    solve_beta,
    solve_mixture,
    top1_log_odds,
)
from shiftcal.numerics.temperature import solve_brier_temperature


def two_columns(confidence):
    return np.column_stack([np.log(confidence), -np.log1p(-confidence)])


def drawn_from(a, b, m, *, n, seed):
    """Log-odds of confidences and correctness that follows the curve exactly."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(1.5, 1.5, n)
    truth = expit(beta_log_odds(log_odds, a, b, m))
    return log_odds, (rng.random(n) < truth).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_logistic_regression_where_both_are_positive(weighted):
    logits, labels = draw(4000, 5, temperature=2.5, seed=3)
    weights = np.random.default_rng(4).exponential(size=4000) if weighted else np.ones(4000)
    confidence, correct = top1(logits, labels)
    oracle = LogisticRegression(C=1e10, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    oracle.fit(two_columns(confidence), correct, sample_weight=weights)
    fitted = Beta(ridge=0.0).fit(logits, labels, sample_weight=weights)
    assert oracle.coef_.min() > 0
    np.testing.assert_allclose([fitted.a_, fitted.b_], oracle.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(fitted.m_, oracle.intercept_[0], rtol=1e-5)


def test_the_confidence_is_netcals():
    from netcal.scaling import BetaCalibration

    logits, labels = draw(3000, 5, temperature=2.5, seed=5)
    confidence, correct = top1(logits, labels)
    oracle = BetaCalibration()
    oracle.fit(confidence, correct.astype(int))
    fitted = Beta(ridge=0.0).fit(logits, labels)
    # netcal stops its search early
    np.testing.assert_allclose(
        fitted.predict_proba(logits).max(axis=1), oracle.transform(confidence), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("truth", [(-1.0, 0.8, 0.0), (1.5, -0.6, 0.4), (-0.7, -0.7, 0.5)])
@pytest.mark.parametrize("seed", [7, 8])
def test_coefficients_are_the_best_of_those_not_negative(truth, seed):
    log_odds, correct = drawn_from(*truth, n=3000, seed=seed)
    columns = two_columns(expit(log_odds))

    def loss(theta):
        s = columns @ theta[:2] + theta[2]
        penalty = 1e-6 * ((theta[:2] - 1) ** 2).sum() + 1e-6 * theta[2] ** 2
        return np.mean(np.logaddexp(0, s) - correct * s) + penalty

    starts = ([1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0])
    bounds = [(0, None), (0, None), (None, None)]
    best = min(minimize(loss, start, bounds=bounds, tol=1e-13).fun for start in starts)
    found, converged = solve_beta(log_odds, correct, np.ones(3000), ridge=1e-6)
    assert converged
    assert found[:2].min() == 0
    assert loss(found) <= best + 1e-9


def test_a_set_without_an_optimum_says_so_when_there_is_no_ridge():
    logits = np.array([[1.0, 0.0], [1.5, 0.0], [4.0, 0.0], [5.0, 0.0]])
    labels = np.array([1, 1, 0, 0])
    with pytest.warns(FitWarning, match="do not overlap; use a larger set, or a ridge"):
        Beta(ridge=0.0).fit(logits, labels)
    assert quiet_fit(Beta(), logits, labels).status_.converged


def brier(temperature, logits, labels, weights=None):
    probs = special.softmax(logits.astype(np.float64) / temperature, axis=1)
    probs[np.arange(len(labels)), labels] -= 1
    return np.average((probs**2).sum(axis=1), weights=weights)


def by_search(logits, labels, weights=None):
    """The best of 200 temperatures, then scipy's bounded search around it."""
    grid = np.linspace(np.log(0.01), np.log(100), 200)
    best = grid[np.argmin([brier(np.exp(u), logits, labels, weights) for u in grid])]
    found = minimize_scalar(
        lambda u: brier(np.exp(u), logits, labels, weights),
        bounds=(best - 0.1, best + 0.1),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return np.exp(found.x)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(("n", "k"), [(500, 3), (4000, 10)])
def test_it_is_what_a_slow_search_finds(n, k, temperature):
    logits, labels = draw_logits(n, k, temperature=temperature, seed=k)
    weights = np.random.default_rng(3).random(n)
    for w in (None, weights):
        found = solve_brier_temperature(logits, labels, w)
        assert found.status.converged
        # Comparing values finds a minimum to the square root of their precision only.
        assert found.temperature == pytest.approx(by_search(logits, labels, w), rel=1e-6)
        assert found.loss == pytest.approx(brier(found.temperature, logits, labels, w), rel=1e-9)


@pytest.mark.parametrize(("many", "temperature"), [(100, 0.0213), (400, 43.1)])
def test_of_two_minima_the_lower_is_taken(many, temperature):
    # Rows of tiny logits want a temperature of 0.02, rows of huge ones, half of them wrong, one
    # of 43; in between the score has a hump, and which side is lower depends on their number.
    tiny, right = draw_logits(300, 3, temperature=0.02, seed=1)
    half_wrong = np.where(np.arange(many) % 2 == 0, 0, 1 + np.arange(many) // 2 % 2)
    logits = np.concatenate([tiny, np.tile([[30.0, 0.0, 0.0]], (many, 1))])
    labels = np.concatenate([right, half_wrong])
    scores = np.array([brier(t, logits, labels) for t in np.geomspace(0.01, 100, 400)])
    dips = (scores[1:-1] < scores[:-2]) & (scores[1:-1] < scores[2:])
    assert dips.sum() == 2
    found = solve_brier_temperature(logits, labels)
    assert found.temperature == pytest.approx(temperature, rel=0.01)
    assert found.loss <= scores.min()


def test_it_finds_the_truth_when_probabilities_are_dirichlet_distributed():
    rng = np.random.default_rng(1)
    shapes = np.array([[6.0, 2.0, 1.0], [1.5, 4.0, 2.0], [1.0, 1.5, 5.0]])
    labels = rng.integers(0, 3, 30_000)
    probs = np.array([rng.dirichlet(shapes[y]) for y in labels])
    # Bayes: log p(y | probs) = sum_j (shape_yj - 1) log p_j - log B(shape_y) + constant
    from scipy.special import gammaln

    log_beta = gammaln(shapes).sum(axis=1) - gammaln(shapes.sum(axis=1))
    truth = softmax(np.log(probs) @ (shapes - 1).T - log_beta)
    fitted = Dirichlet(off_diagonal=0.0, intercept=0.0, ridge=1e-7, input="probabilities")
    found = fitted.fit(probs, labels).predict_proba(probs)
    # 9 free numbers on 30,000 rows
    assert np.abs(found - truth).mean() < 0.01
    np.testing.assert_allclose(
        fitted.weight_ - fitted.weight_.mean(axis=0), shapes - shapes.mean(axis=0), atol=0.15
    )


def test_on_a_real_network_it_improves_on_temperature_scaling(shared_data):
    with np.load(shared_data / "logits" / "jcpeterson_resnet_basic_110_cifar10test.npz") as file:
        logits, labels = file["logits"], file["labels"].astype(int)
    loss = {
        name: nll(maps.get(name)().fit(logits[::2], labels[::2]).predict_proba(logits[1::2]),
                  labels[1::2])
        for name in ("temperature", "vector", "matrix", "dirichlet")
    }  # fmt: skip
    assert max(loss["vector"], loss["matrix"], loss["dirichlet"]) < loss["temperature"]


def noisy(n, k, *, share, temperature, seed):
    """Known temperature, but a share of the labels is drawn at random."""
    logits, labels = draw(n, k, temperature=temperature, seed=seed)
    rng = np.random.default_rng(seed + 100)
    return logits, np.where(rng.random(n) < share, rng.integers(0, k, n), labels)


def by_expectation_maximisation(densities, weights, steps):
    point = np.full(densities.shape[1], 1 / densities.shape[1])
    for _ in range(steps):
        shares = densities * point
        shares /= shares.sum(axis=1, keepdims=True)
        point = weights @ shares / weights.sum()
    return point


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mixture_weights_are_those_of_expectation_maximisation(seed):
    rng = np.random.default_rng(seed)
    densities = rng.dirichlet(np.ones(3), 400) + 0.01
    weights = rng.exponential(size=400)
    found, gap = solve_mixture(densities, weights)
    np.testing.assert_allclose(
        found, by_expectation_maximisation(densities, weights, 5000), atol=2e-4
    )
    assert gap < 1e-7


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_the_fit_is_as_good_as_a_search_over_all_weights(temperature):
    logits, labels = noisy(3000, 5, share=0.2, temperature=temperature, seed=5)
    fitted = EnsembleTemperature().fit(logits, labels)
    parts = [softmax(logits / fitted.temperature_), softmax(logits), np.full_like(logits, 0.2)]

    def loss(point):
        w = np.exp(point) / np.exp(point).sum()
        return nll(sum(a * p for a, p in zip(w, parts, strict=True)), labels)

    found = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"maxiter": 4000})
    assert nll(fitted.predict_proba(logits), labels) <= found.fun + 1e-8


def by_hand(logits, a, b):
    """softmax(z / T) with T = exp(a) h^b, written out."""
    probs = softmax(logits)
    h = np.clip(scipy_entropy(probs, axis=1) / np.log(logits.shape[1]), 1e-6, 1)
    return softmax(logits / (np.exp(a) * h**b)[:, None])


def bent(n, k, *, a, b, seed, spread=3.0):
    """Logits and labels, the labels drawn from softmax(z / (exp(a) h^b))."""
    rng = np.random.default_rng(seed)
    # rows of many sizes, so that there are sure ones and unsure ones
    logits = spread * rng.uniform(0.2, 2, (n, 1)) * rng.standard_normal((n, k))
    chances = by_hand(logits, a, b).cumsum(axis=1)
    return logits, (chances < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)


SETS = {
    "rising": bent(1500, 5, a=1.0, b=0.3, seed=1),
    "falling": bent(1500, 5, a=0.2, b=-0.2, seed=2),
    "two classes": bent(1500, 2, a=0.7, b=0.15, seed=3),
    "many classes": bent(800, 40, a=1.0, b=0.5, seed=4),
    "random labels in part": (
        bent(1500, 4, a=0.0, b=0.0, seed=5)[0],
        np.where(np.arange(1500) % 3 == 0, np.arange(1500) % 4, bent(1500, 4, a=0, b=0, seed=5)[1]),
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_the_rows_are_those_of_the_formula(name):
    logits, labels = SETS[name]
    fitted = EntropyTemperature().fit(logits, labels)
    expected = by_hand(logits, fitted.log_scale_, fitted.power_)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_no_point_of_a_grid_is_better(name):
    logits, labels = SETS[name]
    fitted = EntropyTemperature().fit(logits, labels)
    ours = nll(fitted.predict_proba(logits), labels)
    grid = {
        (a, b): nll(by_hand(logits, a, b), labels)
        for a in np.linspace(-1, 3, 21)
        for b in np.linspace(-0.5, 1, 16)
    }
    best = min(grid, key=grid.get)
    assert ours <= grid[best] + 1e-12
    # a step of the grid from its best point
    assert abs(fitted.log_scale_ - best[0]) < 0.4
    assert abs(fitted.power_ - best[1]) < 0.2


@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_bins_are_equal_slices_of_the_sorted_rows(n_bins):
    logits, labels = draw(60 * n_bins, 4, temperature=1.5, seed=n_bins)
    confidence, correct = top1(logits, labels)
    slices = np.split(np.argsort(confidence), n_bins)
    fitted = Histogram(n_bins=n_bins).fit(logits, labels)
    np.testing.assert_allclose(fitted.accuracy_, [correct[rows].mean() for rows in slices])
    got = fitted.predict_proba(logits).max(axis=1)
    for rows in slices:
        np.testing.assert_allclose(got[rows], max(correct[rows].mean(), lowest_top1(4)))


def test_equal_confidences_are_never_parted():
    logits = np.array([[1.0, 0.0]] * 70 + [[2.0, 0.0]] * 20 + [[3.0, 0.0]] * 10)
    labels = np.tile([0, 0, 0, 0, 1], 20)
    fitted = Histogram(n_bins=10).fit(logits, labels)
    assert len(fitted.accuracy_) == 3
    assert len(np.unique(fitted.predict_proba(logits)[:, 0])) <= 3
    np.testing.assert_allclose(fitted.accuracy_, [0.8, 0.8, 0.8])


def test_weights_set_the_sizes_and_the_accuracies():
    logits = np.array([[float(s), 0.0] for s in (1, 2, 3, 4)])
    labels = np.array([0, 1, 0, 1])
    fitted = quiet_fit(Histogram(n_bins=2), logits, labels, sample_weight=[1, 1, 1, 3])
    # half of the weight lies on the last row
    np.testing.assert_allclose(fitted.accuracy_, [2 / 3, 0.0])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_confidence_is_scikit_learns(seed, weighted):
    logits, labels = draw(1500, 4, temperature=2.5, seed=seed)
    fresh, fresh_labels = draw(500, 4, temperature=2.5, seed=seed + 10)
    weights = np.random.default_rng(seed).exponential(size=1500) if weighted else None
    confidence, correct = top1(logits, labels)
    oracle = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    oracle.fit(confidence, correct, sample_weight=weights)
    fitted = Isotonic().fit(logits, labels, sample_weight=weights)
    wanted = np.clip(oracle.predict(top1(fresh, fresh_labels)[0]), lowest_top1(4), 1)
    # ours are rounded to 12 decimals, and a step may be 1e-6 wide
    np.testing.assert_allclose(fitted.predict_proba(fresh).max(axis=1), wanted, rtol=0, atol=1e-6)


def centred(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def log_probs(logits):
    return np.log(softmax(logits))


FAMILIES = [(Matrix, centred), (Dirichlet, log_probs)]


@pytest.mark.parametrize(("family", "features"), FAMILIES)
def test_without_penalties_it_is_multinomial_logistic_regression(family, features):
    logits, labels = draw(1500, 4, temperature=2.0, seed=1)
    weights = np.random.default_rng(2).exponential(size=1500)
    oracle = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000)
    oracle.fit(features(logits), labels, sample_weight=weights)
    fitted = family(off_diagonal=0.0, intercept=0.0, ridge=0.0)
    fitted.fit(logits, labels, sample_weight=weights)
    np.testing.assert_allclose(
        fitted.predict_proba(logits), oracle.predict_proba(features(logits)), rtol=0, atol=2e-5
    )


@pytest.mark.parametrize(("family", "features"), FAMILIES)
@pytest.mark.parametrize("penalties", [(1.0, 1.0, 0.01), (0.01, 0.1, 0.0), (0.0, 0.0, 1e-3)])
def test_the_optimum_is_the_one_another_method_finds_matrix(family, features, penalties):
    off_diagonal, intercept, ridge = penalties
    logits, labels = draw(400, 4, temperature=2.0, seed=3)
    t = Temperature().fit(logits, labels).temperature_
    x, y, eye = torch.tensor(features(logits)), torch.tensor(labels), torch.eye(4).double()

    def value_and_slopes(point):
        both = torch.tensor(point, requires_grad=True)
        w, b = both[:16].reshape(4, 4), both[16:]
        value = torch.nn.functional.cross_entropy(x @ w.T + b, y)
        value = value + off_diagonal * ((w * (1 - eye)) ** 2).sum() + intercept * (b**2).sum()
        value = value + ridge * (((w - eye / t) ** 2).sum() + (b**2).sum())
        value.backward()
        return value.item(), both.grad.numpy()

    start = np.append(np.eye(4).ravel(), np.zeros(4))
    options = {"gtol": 1e-8, "maxiter": 5000}
    best = minimize(value_and_slopes, start, jac=True, method="BFGS", options=options)
    fitted = family(off_diagonal=off_diagonal, intercept=intercept, ridge=ridge)
    fitted.fit(logits, labels)
    found, slopes = value_and_slopes(np.append(fitted.weight_.ravel(), fitted.intercept_))
    assert abs(found - best.fun) < 1e-10
    assert np.abs(slopes).max() < 1e-5


def test_matrix_scaling_is_dirichlet_calibration_with_equal_row_sums():
    rng = np.random.default_rng(5)
    logits, weight, b = rng.normal(0, 3, (50, 4)), rng.normal(size=(4, 4)), rng.normal(size=4)
    # to add a constant to a row of W does nothing to centred logits
    even = weight + (1.7 - weight.sum(axis=1, keepdims=True)) / 4
    np.testing.assert_allclose(
        linear_softmax(centred(logits), weight, b),
        linear_softmax(log_probs(logits), even, b),
        rtol=1e-9,
    )
    assert not np.allclose(
        linear_softmax(centred(logits), weight, b), linear_softmax(log_probs(logits), weight, b)
    )


def drawn(n: int, offsets, *, seed: int):
    """Logits, labels, and the true log-probabilities ``0.5 log p + offset``."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.standard_normal((n, len(offsets)))
    truth = log_softmax(0.5 * log_softmax(logits, axis=1) + offsets, axis=1)
    labels = (np.exp(truth).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return logits, labels.clip(max=len(offsets) - 1), truth


def natural_basis(t, knots):
    """Natural cubic splines by truncated powers, all zero at zero (without the constant)."""

    def power(i):
        above = np.maximum(t - knots[i], 0) ** 3 - np.maximum(t - knots[-1], 0) ** 3
        return above / (knots[-1] - knots[i])

    return np.column_stack([t, *(power(i) - power(-2) for i in range(len(knots) - 2))])


@pytest.mark.parametrize("n_knots", [3, 6, 9])
def test_the_confidence_is_that_of_a_spline_by_truncated_powers(n_knots):
    logits, labels = draw(2000, 4, temperature=2.5, seed=1)
    confidence, correct = top1(logits, labels)
    order = np.argsort(confidence)
    t = np.arange(1, 2001) / 2000
    running = np.cumsum(correct[order] - confidence[order]) / 2000
    basis = natural_basis(t, np.linspace(0, 1, n_knots))
    d = basis @ np.linalg.lstsq(basis, running, rcond=None)[0]
    wanted = confidence[order] + np.diff(d, prepend=0) * 2000
    got = Spline(n_knots=n_knots).fit(logits, labels).predict_proba(logits).max(axis=1)
    np.testing.assert_allclose(got[order], np.clip(wanted, lowest_top1(4), 1), atol=1e-7)


def test_two_knots_add_the_mean_gap_to_every_confidence():
    logits, labels = draw(1000, 3, temperature=1.2, seed=3)
    confidence, correct = top1(logits, labels)
    fitted = Spline(n_knots=2).fit(logits, labels)
    added = fitted.accuracy_ - fitted.confidence_
    free = (fitted.accuracy_ > 0) & (fitted.accuracy_ < 1)
    assert np.ptp(added[free]) < 1e-9
    # a line through the origin by least squares: near the mean gap, which is its right end
    np.testing.assert_allclose(added[free].mean(), (correct - confidence).mean(), atol=0.03)


def test_it_gives_back_the_temperature_the_labels_were_drawn_with():
    logits, labels = draw_logits(20_000, 6, temperature=1.8, seed=1)
    # Twenty thousand rows leave a standard error of about 1 %.
    assert Temperature().fit(logits, labels).temperature_ == pytest.approx(1.8, rel=0.03)


def test_probabilities_are_the_softmax_of_logits_over_temperature(overconfident):
    logits, labels = overconfident
    fitted = Temperature().fit(logits, labels)
    wanted = special.softmax(logits / fitted.temperature_, axis=1)
    assert np.allclose(fitted.predict_proba(logits), wanted, rtol=1e-12)


TOP1 = ("beta", "histogram", "isotonic", "spline")


def filled_by_search(probs, confidence):
    """The same row, by looking for the scale at which capped shares add up."""
    top = int(probs.argmax())
    others = np.delete(probs, top)
    cap, rest = confidence * (1 - 1e-6), 1 - confidence
    scale = brentq(lambda s: np.minimum(cap, s * others).sum() - rest, 0, 1e12, xtol=1e-14)
    return np.insert(np.minimum(cap, scale * others), top, confidence)


@pytest.mark.parametrize("confidence", [0.21, 0.25, 0.3, 0.45, 0.6, 0.9, 0.9999])
def test_rows_are_filled_as_a_plain_search_fills_them(confidence):
    logits, _ = draw(40, 5, temperature=1.0, seed=1)
    rows = rows_with_top1(logits, np.full(40, confidence))
    wanted = [filled_by_search(p, confidence) for p in softmax(logits)]
    np.testing.assert_allclose(rows, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 1000])
def test_a_confidence_below_chance_is_raised_to_the_least_there_is(k):
    logits = np.random.default_rng(3).standard_normal((5, k))
    rows = rows_with_top1(logits, np.zeros(5))
    np.testing.assert_allclose(rows.max(axis=1), lowest_top1(k), rtol=1e-12)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(rows.argmax(axis=1), logits.argmax(axis=1))
    assert 1 / k < lowest_top1(k) < 1 / k + 1e-6


@pytest.mark.parametrize("name", TOP1)
def test_the_largest_probability_is_the_calibrated_confidence(name):
    logits, labels = draw(2000, 5, temperature=2.5, seed=5)
    fitted = maps.get(name)().fit(logits, labels)
    wanted = np.clip(fitted._calibrate(top1_log_odds(logits)), lowest_top1(5), 1)
    np.testing.assert_array_equal(fitted.predict_proba(logits).max(axis=1), wanted)


def loss_of(logits, labels, weights, ridge):
    """The published loss plus the ridge, in torch."""
    t = Temperature().fit(logits, labels, sample_weight=weights).temperature_
    s = torch.log_softmax(torch.tensor(logits), dim=1)
    y, share = torch.tensor(labels), torch.tensor(weights / weights.sum())

    def loss(w, b):
        each = torch.nn.functional.cross_entropy(w * s + b, y, reduction="none")
        return share @ each + ridge * (((w - 1 / t) ** 2).sum() + (b**2).sum())

    return loss


@pytest.mark.parametrize("ridge", [1e-4, 0.01])
def test_the_optimum_is_the_one_another_method_finds_vector(ridge):
    logits, labels = draw(600, 4, temperature=2.0, seed=1)
    weights = np.random.default_rng(2).exponential(size=600)
    loss = loss_of(logits, labels, weights, ridge)

    def value_and_slopes(point):
        both = torch.tensor(point, requires_grad=True)
        value = loss(both[:4], both[4:])
        value.backward()
        return value.item(), both.grad.numpy()

    best = minimize(value_and_slopes, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-9})
    fitted = Vector(ridge=ridge).fit(logits, labels, sample_weight=weights)
    np.testing.assert_allclose(fitted.weight_, best.x[:4], atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, best.x[4:], atol=1e-5)


def test_two_classes_are_beta_calibration():
    # log-odds of class 0 are w0 log p - w1 log(1 - p) + b0 - b1: the beta curve, in class 0
    logits, labels = draw(3000, 2, temperature=2.0, seed=4)
    fitted = Vector(ridge=0.0).fit(logits, labels)
    p = softmax(logits)
    columns = np.column_stack([np.log(p[:, 0]), -np.log(p[:, 1]), np.ones(3000)])

    def loss(theta):
        s = columns @ theta
        return np.mean(np.logaddexp(0, s) - (labels == 0) * s)

    best = minimize(loss, np.zeros(3), tol=1e-12)
    assert nll(fitted.predict_proba(logits), labels) <= best.fun + 1e-9
    np.testing.assert_allclose(fitted.weight_, best.x[:2], atol=1e-4)
