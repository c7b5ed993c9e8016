"""Intervals cover: sampling where nothing shifts, and shifts like those of the bank."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ladder_data import draw
from scipy.stats import norm, t

from shiftcal import SurrogateBank, SurrogateSet, estimates

# SAC on one set equals TS and warns of it.
pytestmark = pytest.mark.filterwarnings("ignore:.*fitted on one set")

NAMES = ("atc", "doc", "surrogate-curve", "mean-confidence")


def accuracy_of(logits, labels):
    return (logits.argmax(axis=1) == labels).mean()


@pytest.mark.parametrize("name", NAMES)
def test_without_shift_they_cover_the_accuracy_as_often_as_they_say(name):
    population = accuracy_of(*draw(200_000, 1.0, seed=0))
    hits = []
    for seed in range(250):
        clean, labels = draw(200, 1.0, seed=1000 + seed)
        target, truth = draw(300, 1.0, seed=5000 + seed)
        found = estimates.get(name)().fit(clean, labels).estimate(target, level=0.9)
        hits.append(
            [found.low <= a <= found.high for a in (population, accuracy_of(target, truth))]
        )
    # 0.9 less three standard errors of a share of 250; cautious, and so more often than they say
    assert (np.mean(hits, axis=0) >= 0.9 - 3 * math.sqrt(0.09 / 250)).all()


def shifted_world(seed, *, n=250):
    """A clean set, four corruptions that fade and overstate each in its own way, and a fifth."""
    rng = np.random.default_rng(seed)
    sets = [SurrogateSet(*draw(n, 1.3, seed=seed), "clean", severity=0)]
    kinds = [(rng.uniform(0.3, 0.9), math.exp(rng.normal(0, 0.2))) for _ in range(5)]
    drawn = []
    for c, (fade, scale) in enumerate(kinds):
        for severity, part in enumerate((0.5, 1.0), start=1):
            logits, labels = draw(n, 1.3 - fade * part, seed=seed + 7 * c + severity)
            drawn.append((logits * scale**part, labels, str(c), severity))
    *known, mild, strong = drawn
    target, truth, _, _ = strong if rng.random() < 0.5 else mild
    sets += [
        SurrogateSet(z, y, f"{c}-{severity}", corruption=c, severity=severity)
        for z, y, c, severity in known
    ]
    return SurrogateBank(sets), target, truth


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
def test_under_a_shift_of_another_corruption_they_cover_too(name):
    hits, sampling_only = [], []
    for seed in range(40):
        bank, target, truth = shifted_world(100 * seed)
        found = estimates.get(name)().fit(bank).estimate(target)
        accuracy = accuracy_of(target, truth)
        hits.append(found.low <= accuracy <= found.high)
        half = norm.ppf(0.975) * math.hypot(
            found.details["sampling_sd"], found.details["calibration_sd"]
        )
        sampling_only.append(abs(found.value - accuracy) <= half)
    assert np.mean(hits) >= 0.85  # 0.95 less three standard errors of a share of 40
    assert np.mean(sampling_only) < np.mean(hits)  # what the shift error is there for


def test_the_width_is_the_root_of_three_squares_with_students_quantile_for_the_few():
    bank, target, _ = shifted_world(3)
    found = estimates.get("atc")().fit(bank).estimate(target, level=0.2)
    sampling, calibration, error, fits = (
        found.details[key] for key in ("sampling_sd", "calibration_sd", "shift_error", "shift_fits")
    )
    assert fits == 4
    drawn = norm.ppf(0.6) ** 2 * (sampling**2 + calibration**2)
    half = math.sqrt(drawn + (t.ppf(0.6, 4) * error) ** 2)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


def test_a_corruption_is_left_out_whole():
    bank, *_ = shifted_world(3)
    curve = estimates.get("surrogate-curve")
    fitted = curve().fit(bank)
    assert [out.name for out in fitted.left_out_] == [s.name for s in bank][1:]
    for out, s in zip(fitted.left_out_, list(bank)[1:], strict=True):
        rest = SurrogateBank([r for r in bank if r.corruption != s.corruption])
        assert out.estimate == curve().fit(rest).estimate(s.logits).value
        assert out.accuracy == accuracy_of(s.logits, s.labels)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("network", ["resnet_basic_110", "wrn_28_10", "vgg_15_BN_64"])
def test_the_accuracy_of_real_clean_images_is_covered(shared_data, name, network):
    with np.load(shared_data / "logits" / f"jcpeterson_{network}_cifar10test.npz") as file:
        logits, labels = file["logits"], file["labels"]
    rows = np.random.default_rng(0).permutation(len(labels))
    known, unseen = rows[:5000], rows[5000:]
    found = estimates.get(name)().fit(logits[known], labels[known]).estimate(logits[unseen])
    assert found.low <= accuracy_of(logits[unseen], labels[unseen]) <= found.high
    assert found.high - found.low < 0.03
