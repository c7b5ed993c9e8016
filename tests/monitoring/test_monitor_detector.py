"""What a shift is seen by, against brute force and packages that nobody here wrote."""

from __future__ import annotations

import numpy as np
import pytest
from monitored import bank, monitor, rows
from scipy.spatial.distance import mahalanobis
from scipy.special import entr, softmax
from scipy.stats import chi2
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from shiftcal import SurrogateBank
from shiftcal.monitoring import Sliding
from shiftcal.monitoring.detector import count_alarms, find_limits, learn, row_features, scales_of
from shiftcal.monitoring.monitor import Running
from shiftcal.numerics.blocks import kernel_for


def plain_features(logits):
    p = softmax(logits, axis=1)
    top = p.max(axis=1)
    rest = np.maximum(1 - top, 1e-6)
    return np.column_stack([top, top**2, entr(p).sum(axis=1), (p**2).sum(axis=1), -np.log(rest)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "scale"), [(2, 0.01), (10, 3.0), (100, 400.0)])
def test_the_sums_of_a_block_are_those_of_softmax_rows(dtype, k, scale):
    logits = (scale * np.random.default_rng(k).standard_normal((211, k))).astype(dtype)
    sums = np.zeros(2 * k + 4, np.int64)
    confidence, predicted, probs = np.empty(211), np.empty(211, np.intp), np.empty((211, k))
    kernel_for("pass_rows", logits)(logits, 0.6, sums, confidence, predicted, probs)
    p = softmax(logits.astype(np.float64), axis=1)
    means = sums * 2.0**-40 / 211
    # every value is rounded to 2**-40
    near = {"rtol": 0, "atol": 2e-12}
    np.testing.assert_allclose(means[1], entr(p).sum(axis=1).mean(), **near)
    np.testing.assert_allclose(means[2 : 2 + k], p.mean(axis=0), **near)
    np.testing.assert_allclose(means[2 + k : 2 + 2 * k], (p**2).mean(axis=0), **near)
    wanted = plain_features(logits.astype(np.float64)).mean(axis=0)
    found = [means[0], means[-2], means[1], means[2 + k : 2 + 2 * k].sum(), means[-1]]
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=2e-12)
    scaled = softmax(logits.astype(np.float64) / 0.6, axis=1)
    np.testing.assert_allclose(confidence, scaled.max(axis=1), rtol=1e-13)
    # 2**-126 stands for all that is smaller
    np.testing.assert_allclose(probs, scaled, rtol=2e-12, atol=1e-37)
    np.testing.assert_array_equal(predicted, logits.argmax(axis=1))


def test_the_first_direction_is_that_of_fishers_discriminant():
    sets = bank()
    two = SurrogateBank([sets[0], sets[2]])
    found = learn(two, scales_of(Sliding().plan()), false_alarms=10.0, patience=3, seed=0)
    clean, moved = (plain_features(s.logits) for s in two)
    # within the classes both have the covariance of the clean one: residuals of it, about each mean
    residuals = clean - clean.mean(axis=0)
    x = np.concatenate([residuals, residuals + moved.mean(axis=0) - clean.mean(axis=0)])
    y = np.repeat([0, 1], len(clean))
    fisher = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y).coef_[0]
    along = found.directions[:, 0]
    spread = np.cov(clean.T)
    cosine = along @ spread @ fisher / np.sqrt(along @ spread @ along * (fisher @ spread @ fisher))
    assert cosine > 0.98  # a thousandth of each variance is added to it
    assert np.std(clean @ along) == pytest.approx(1.0, rel=0.03)


def test_the_other_directions_make_mahalanobis_distances():
    found = learn(bank(), scales_of(Sliding().plan()), false_alarms=10.0, patience=3, seed=0)
    clean = plain_features(bank().clean.logits)
    some = [0, 2, 4]
    inverse = np.linalg.inv(np.cov(clean[:, some].T))
    moved = plain_features(bank()[3].logits).mean(axis=0)
    wanted = mahalanobis(moved[some], clean.mean(axis=0)[some], inverse)
    length = np.linalg.norm((moved - found.reference) @ found.directions[:, 1:])
    assert length == pytest.approx(wanted, rel=0.05)  # for the same reason


@pytest.mark.parametrize("seed", [1, 2])
def test_the_statistic_is_the_largest_ratio_over_scales(seed):
    watch = monitor("sac")
    stream = np.concatenate([rows(1700, seed=seed), rows(240, 0.9, seed=seed)])
    update = watch.feed(stream)
    detector = watch.detector_
    seen = plain_features(stream[:1900])
    ratios = []
    for span, limits in zip((1, 2, 4, 10), detector.limits.squares, strict=True):
        n = 100 * span
        apart = (seen[-n:].mean(axis=0) - detector.reference) @ detector.directions
        apart /= np.sqrt(1 / n + 1 / detector.n_clean)
        ratios += [apart[0] / np.sqrt(limits[0]), np.linalg.norm(apart[1:]) / np.sqrt(limits[1])]
    assert update.statistic == pytest.approx(max(ratios), rel=1e-7)


def walked(ratios, outsides=(), *, state="normal", full=True, lower=0.7, patience=3):
    """The number of the look and the kind of every event, and the state at the end."""
    run, events = Running(None, None, None, state=state), []
    padded = [*outsides, *[0.0] * (len(ratios) - len(outsides))]
    for look, (run.statistic, run.outside) in enumerate(zip(ratios, padded, strict=True), start=1):
        kind = run.move_on(full=full, lower=lower, patience=patience)
        if kind is not None:
            events.append((look, kind))
    return events, run.state


def slow_rule(ratios, lower, patience):
    events, _ = walked(ratios, lower=lower, patience=patience)
    return sum(kind == "shift-began" for _, kind in events)


@pytest.mark.parametrize("patience", [1, 3, 7])
def test_noise_about_a_limit_makes_one_event(patience):
    near = [0.7] * patience
    almost = [1.2, *near[1:], 0.71]
    back = walked([*almost, *almost, *near], state="shifted", patience=patience)
    assert back == ([(3 * patience + 2, "back-to-normal")], "normal")
    almost = [0.9, *[1.0] * (patience - 1)]
    out = [*almost, *almost, 0.9, *[1.0] * patience]
    inside = [*[0.9] * (patience - 1), 1.0, *[0.9] * patience]
    found = walked([1.5] * len(out + inside), [*out, *inside], state="shifted", patience=patience)
    events = [(len(out), "outside-bank"), (len(out + inside), "back-inside")]
    assert found == (events, "shifted")


def test_alarms_begin_at_the_limit_and_only_a_shifted_stream_leaves_the_bank():
    assert walked([0.99, 1.0]) == ([(2, "shift-began")], "shifted")
    assert walked([0.999] * 50, [9.0] * 50) == ([], "normal")
    assert walked([1.5] * 4, [9.0] * 4)[0] == [(1, "shift-began"), (4, "outside-bank")]
    assert walked([0.5], state="filling", full=False)[1] == "filling"
    assert walked([0.5] * 3, state="shifted", full=False)[1] == "filling"


def test_alarms_are_counted_by_the_rule_that_raises_them():
    ratios = np.abs(np.random.default_rng(3).standard_normal((20, 400))) / 2
    wanted = sum(slow_rule(one, 0.4, 2) for one in ratios)
    assert wanted > 20
    assert count_alarms(ratios, 0.4, 2) == wanted


def as_they_are(features):
    return np.eye(features.shape[1])


def one_and_three(features):
    """Less confidence, and any direction of three features, with variance 1 over these rows."""
    found = np.zeros((5, 4))
    found[[0, 2, 4], 1:] = np.linalg.cholesky(np.linalg.inv(np.cov(features[:, [0, 2, 4]].T)))
    found[0, 0] = -1 / features[:, 0].std()
    return found


def test_limits_of_normal_features_are_near_those_of_theory():
    """One look per window, so that looks hardly overlap: then they are quantiles of chi square."""
    rng = np.random.default_rng(5)
    clean = rng.standard_normal((4000, 4))
    clean -= clean.mean(axis=0)
    scales = scales_of(Sliding(rows=1000, blocks=1).plan())
    found = find_limits(
        clean, scales, directions=as_they_are, false_alarms=1.0, patience=1, rng=rng
    )
    # 1 alarm in 100 looks; all but those at which it is shifted already
    directed, undirected = found.squares[0]
    share = chi2.sf(directed, 1) / 2 + chi2.sf(undirected, 3)
    assert share == pytest.approx(0.01, rel=0.3)
    assert chi2.sf(undirected, 3) < chi2.sf(directed, 1) / 2
    assert found.expected == pytest.approx(1.0, rel=0.1)


def test_streams_like_the_clean_set_raise_as_many_alarms_as_were_allowed():
    """Brute force: clean sets and streams drawn from one world, fed to the rule row by row."""
    world = row_features(rows(60_000, seed=77))
    scales = scales_of(Sliding(rows=1000).plan())
    weights = scales.weights / scales.weights.sum(axis=1, keepdims=True)
    span = weights.shape[1]
    alarms = looks = 0
    rng = np.random.default_rng(9)
    for _ in range(8):
        clean = world[rng.integers(0, len(world), 2000)]
        directions = one_and_three(clean)
        limits = find_limits(
            clean, scales, directions=one_and_three, false_alarms=10.0, patience=3, rng=rng
        )
        drawn = world[rng.integers(0, len(world), (1500, scales.block))].mean(axis=1)
        blocks = (drawn - clean.mean(axis=0)) @ directions
        past = np.lib.stride_tricks.sliding_window_view(blocks, span, axis=0)[..., ::-1]
        apart = np.einsum("tdb,sb->tsd", past, weights)
        apart /= np.sqrt(1 / scales.rows + 1 / 2000)[:, None]
        directed = apart[..., 0] * np.abs(apart[..., 0]) / limits.squares[:, 0]
        undirected = (apart[..., 1:] ** 2).sum(axis=-1) / limits.squares[:, 1]
        ratios = np.sqrt(np.maximum(directed, undirected).max(axis=1))
        alarms += slow_rule(ratios, limits.lower, 3)
        looks += len(ratios)
    rate = 1e5 * alarms / (looks * scales.block)
    # about 120 alarms are expected, in clumps: some clean sets are further off than others
    assert 5 < rate < 18


def test_rarer_alarms_have_higher_limits_also_beyond_what_was_simulated():
    clean = row_features(bank().clean.logits)
    centred = (clean - clean.mean(axis=0))[:, [0, 0, 2, 4]]
    scales = scales_of(Sliding(rows=4000).plan())
    often, seldom = (
        find_limits(
            centred,
            scales,
            directions=as_they_are,
            false_alarms=rate,
            patience=3,
            rng=np.random.default_rng(0),
        )
        for rate in (10.0, 0.01)
    )
    assert (seldom.squares > often.squares).all()
    assert seldom.lower < often.lower
