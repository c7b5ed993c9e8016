"""Temperature by entropy against a grid, known truths and plain temperature scaling."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import make_bank
from map_data import draw, nll, quiet_fit, softmax
from numeric_gradient import numeric_gradient
from scipy.stats import entropy as scipy_entropy

from shiftcal import STS
from shiftcal.errors import FitWarning, InputError
from shiftcal.maps.entropy_temperature import EntropyTemperature
from shiftcal.maps.temperature import Temperature
from shiftcal.numerics.temperature.entropy_power import _Problem, log_relative_entropy


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


@pytest.mark.parametrize("name", SETS)
def test_any_small_step_from_the_optimum_is_worse(name):
    logits, labels = SETS[name]
    fitted = EntropyTemperature().fit(logits, labels)
    a, b = fitted.log_scale_, fitted.power_
    least = nll(by_hand(logits, a, b), labels)
    for step in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3), (1e-3, 1e-3), (1e-3, -1e-3)):
        assert nll(by_hand(logits, a + step[0], b + step[1]), labels) > least


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.3), (0.3, -0.15), (0.5, 0.0)])
def test_a_known_power_is_found(a, b):
    fitted = EntropyTemperature().fit(*bent(20_000, 5, a=a, b=b, seed=6))
    # 20,000 rows tell both to about 0.02
    assert fitted.log_scale_ == pytest.approx(a, abs=0.08)
    assert fitted.power_ == pytest.approx(b, abs=0.04)
    assert fitted.status_.converged


def test_the_slopes_are_those_of_differences():
    logits, labels = SETS["rising"]
    log_h = log_relative_entropy(logits)
    place = (log_h - log_h.min()) / np.ptp(log_h)
    weights = np.random.default_rng(7).random(len(labels))
    problem = _Problem(logits, labels, weights / weights.sum(), place)
    for ends in ([0.0, 0.0], [-1.0, 1.5], [2.0, -0.5]):
        expected = numeric_gradient(lambda x: problem.loss(x)[0], np.array(ends))
        np.testing.assert_allclose(problem.loss(np.array(ends))[1], expected, atol=1e-8)


def test_data_of_one_temperature_are_scaled_as_by_one_temperature():
    logits, labels = draw(20_000, 5, temperature=2.0, seed=8)
    ours = EntropyTemperature().fit(logits, labels)
    plain = Temperature().fit(logits, labels)
    assert ours.power_ == pytest.approx(0, abs=0.03)
    np.testing.assert_allclose(
        ours.predict_proba(logits), plain.predict_proba(logits), rtol=0, atol=0.03
    )
    assert nll(ours.predict_proba(logits), labels) <= nll(plain.predict_proba(logits), labels)


def test_rows_of_one_entropy_get_plain_temperature_scaling():
    rng = np.random.default_rng(9)
    logits = np.array([rng.permutation([3.0, 1.0, 0.0, -1.0]) for _ in range(500)])
    labels = np.where(rng.random(500) < 0.6, logits.argmax(axis=1), rng.integers(0, 4, 500))
    ours, plain = EntropyTemperature().fit(logits, labels), Temperature().fit(logits, labels)
    assert ours.power_ == 0
    assert np.exp(ours.log_scale_) == pytest.approx(plain.temperature_, rel=1e-14)


def test_the_order_of_the_classes_of_a_row_is_kept():
    logits, labels = SETS["rising"]
    probs = EntropyTemperature().fit(logits, labels).predict_proba(logits)
    order = np.argsort(logits, axis=1)
    assert (np.diff(np.take_along_axis(probs, order, axis=1), axis=1) >= 0).all()


def test_rows_surer_than_any_of_the_fit_are_not_scaled_beyond_the_range():
    logits, labels = SETS["rising"]
    unsure = log_relative_entropy(logits) > np.log(0.05)
    fitted = EntropyTemperature(t_range=(0.5, 50.0)).fit(logits[unsure], labels[unsure])
    sure = np.array([[9.0, 0.0, 0.0, 0.0, 0.0]])
    assert (
        np.exp(fitted.log_scale_ + fitted.power_ * log_relative_entropy(sure))[0] < 0.4
    )  # if it were not for the range
    np.testing.assert_allclose(fitted.predict_proba(sure), softmax(sure / 0.5), rtol=1e-9)


@pytest.mark.parametrize(
    ("t_range", "b", "words"),
    [
        ((0.8, 50.0), 0.3, r"rows of least entropy stopped at 0\.8, the lower end of t_range"),
        ((0.01, 2.0), 0.3, r"rows of greatest entropy stopped at 2, the upper end of t_range"),
    ],
)
def test_an_end_of_the_range_is_reported(t_range, b, words):
    logits, labels = bent(1500, 5, a=1.0, b=b, seed=1)
    estimator = EntropyTemperature(t_range=t_range)
    with pytest.warns(FitWarning, match=words):
        estimator.fit(logits, labels)
    log_t = estimator.log_scale_ + estimator.power_ * log_relative_entropy(logits)
    assert t_range[0] * (1 - 1e-9) <= np.exp(log_t).min()
    assert np.exp(log_t).max() <= t_range[1] * (1 + 1e-9)


def test_a_set_without_an_optimum_gets_what_temperature_scaling_gets():
    logits, _ = draw(300, 4, temperature=2.0, seed=10)
    ours = quiet_fit(EntropyTemperature(), logits, logits.argmin(axis=1))
    plain = quiet_fit(Temperature(), logits, logits.argmin(axis=1))
    assert ours.power_ == 0
    assert ours.status_ == plain.status_
    assert np.exp(ours.log_scale_) == pytest.approx(plain.temperature_, rel=1e-14)


def test_a_search_that_stops_early_is_reported(monkeypatch):
    import shiftcal.numerics.temperature.entropy_power as module

    monkeypatch.setattr(module, "_FLAT", 0.0)
    with pytest.warns(FitWarning, match="stopped before it converged .*use the temperature map"):
        EntropyTemperature().fit(*SETS["rising"])


def test_many_rows_end_where_few_rows_pointed():
    logits, labels = SETS["rising"]
    few = EntropyTemperature().fit(logits, labels)
    # more than twice the rows the starts are tried on, so that some are left out there
    many = EntropyTemperature().fit(np.tile(logits, (6, 1)), np.tile(labels, 6))
    assert many.power_ == pytest.approx(few.power_, abs=1e-6)
    assert many.log_scale_ == pytest.approx(few.log_scale_, abs=1e-6)


def test_inside_sts_it_is_fitted_on_the_union():
    bank = make_bank(500)
    sts = STS(map="entropy-temperature").fit(bank)
    alone = EntropyTemperature().fit(*bank.union())
    assert (sts.map_.log_scale_, sts.map_.power_) == (alone.log_scale_, alone.power_)
    assert sts.adapt(bank[2].logits).temperature is None


def test_a_range_of_temperatures_that_is_none_is_refused():
    with pytest.raises(InputError, match="t_range must be two positive numbers"):
        EntropyTemperature(t_range=(2.0, 1.0)).fit(*SETS["rising"])
