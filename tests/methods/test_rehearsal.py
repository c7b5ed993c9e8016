"""Rehearsal on worlds whose truth is known, at its edges, and on real images."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest
from cifar_net import cifar_images
from gaussian_world import CORRUPTIONS, SEVERITIES, K, oracle_log_t, outputs, world
from scipy.special import softmax
from scipy.stats import entropy

import shiftcal as sc
from shiftcal import SurrogateBank, SurrogateSet, methods

Rehearsal = methods.get("rehearsal")


@pytest.fixture(scope="module")
def bank():
    return world(n=600)


@pytest.fixture(scope="module")
def fitted(bank):
    return Rehearsal().fit(bank)


def log_t_of(fitted, logits):
    return math.log(fitted.adapt(logits).temperature)


def test_the_calibration_set_itself_gets_the_temperature_of_ts(bank, fitted):
    ts = methods.get("ts")().fit(bank)
    selection = fitted.adapt(bank.clean.logits)
    assert selection.temperature == pytest.approx(ts.adapt(bank.clean.logits).temperature, rel=1e-9)
    assert selection.details["from_clean"] <= 1
    (flag,) = selection.flags
    assert flag.code == "like-clean"
    assert "look like the clean set's" in str(flag)
    # told all the same, though it is not used
    assert selection.details["temperature_nearest"] == fitted.temperatures_[0]


def test_of_targets_of_known_corruptions_it_errs_less_than_sac(bank, fitted):
    sac = methods.get("sac")().fit(bank)
    errors = []
    for number, (name, severity) in enumerate(itertools.product(CORRUPTIONS, (2, 4))):
        logits, labels = outputs(2000, name, severity, seed=900 + number)
        wanted = oracle_log_t(logits, labels)
        errors.append([log_t_of(m, logits) - wanted for m in (fitted, sac)])
    ours, theirs = np.abs(errors).mean(axis=0)
    assert ours < theirs


def information(logits):
    """Entropy of the mean output minus mean entropy: what a collapse lowers, and label shift."""
    p = softmax(logits, axis=1)
    return entropy(p.mean(axis=0)) - entropy(p, axis=1).mean()


def test_under_label_shift_it_errs_less_than_interpolation_that_never_saw_other_priors(
    bank, fitted
):
    ladder = sorted(
        (information(s.logits), math.log(t))
        for s, t in zip(bank, fitted.temperatures_, strict=True)
    )
    rng = np.random.default_rng(4)
    errors, flagged = [], []
    for number, (name, severity) in enumerate(itertools.product(CORRUPTIONS, SEVERITIES)):
        prior = rng.dirichlet(np.full(K, 0.3))
        logits, labels = outputs(2000, name, severity, seed=700 + number, prior=prior)
        wanted = oracle_log_t(logits, labels)
        interpolated = np.interp(information(logits), *zip(*ladder, strict=True))
        errors.append([log_t_of(fitted, logits) - wanted, interpolated - wanted])
        flagged.append(fitted.selection_.has("label-shift"))
    ours, theirs = np.abs(errors).mean(axis=0)
    assert ours < 0.6 * theirs
    assert np.mean(flagged) > 0.5


def test_label_shift_is_told_with_both_answers(fitted):
    prior = [0.9, 0.1, 0, 0, 0, 0]
    selection = fitted.adapt(outputs(2000, "noise", 1, seed=3, prior=prior)[0])
    (flag,) = (f for f in selection.flags if f.code == "label-shift")
    said = selection.details
    assert said["prior_moved"] > 0.5
    assert f"T = {said['temperature_moved_prior']:.3g}, not" in str(flag)
    between = sorted((said["temperature_same_prior"], said["temperature_moved_prior"]))
    if not selection.has("outside-bank"):
        assert between[0] <= selection.temperature <= between[1]


def test_a_bank_of_one_set_is_ts_and_says_so(bank):
    clean, target = bank.clean, outputs(300, "noise", 3, seed=5)[0]
    alone = Rehearsal().fit(clean.logits, clean.labels)
    ts = methods.get("ts")().fit(clean.logits, clean.labels)
    selection = alone.adapt(target)
    ts.adapt(target)
    np.testing.assert_array_equal(alone.predict_proba(target), ts.predict_proba(target))
    assert [flag.code for flag in selection.flags] == ["one-set"]
    assert "Build a bank with corruptions" in str(selection.flags[0])
    assert selection.temperature_interval is None


def test_a_target_beyond_the_bank_is_flagged_and_drawn_halfway_to_the_nearest(fitted):
    noise = 60.0 * np.random.default_rng(1).standard_normal((2000, K))
    selection = fitted.adapt(noise)
    (flag,) = (f for f in selection.flags if f.code == "outside-bank")
    said = selection.details
    assert said["distance"] > said["reach"] == fitted.memory_.reach
    assert "halfway to the set nearest in confidence" in str(flag)
    answers = [math.log(said[f"temperature_{kind}_prior"]) for kind in ("same", "moved")]
    answer = answers[0] + said["prior_moved"] * (answers[1] - answers[0])
    halfway = (answer + math.log(said["temperature_nearest"])) / 2
    assert math.log(selection.temperature) == pytest.approx(halfway)
    assert said["estimated_accuracy"] == pytest.approx(halfway_accuracy(fitted, noise), rel=1e-9)
    interval = selection.temperature_interval
    assert interval.low <= said["temperature_nearest"] <= interval.high


def within_reach(fitted):
    """The same, for which no target is outside the bank."""
    other = copy.copy(fitted)
    other.memory_ = dataclasses.replace(fitted.memory_, reach=math.inf)
    return other


def halfway_accuracy(fitted, target):
    """Halfway from what is said of a target within reach to the set nearest in confidence."""
    said = within_reach(fitted).adapt(target).details["estimated_accuracy"]
    confidence = softmax(target, axis=1).max(axis=1).mean()
    nearest = min(fitted.ladder_, key=lambda s: abs(s.mean_confidence - confidence))
    return (said + nearest.accuracy) / 2


def test_a_bank_of_one_corruption_is_flagged_and_one_of_two_is_not():
    target = outputs(300, "noise", 3, seed=8)[0]
    one, two = (
        Rehearsal().fit(world(names, n=150)).adapt(target)
        for names in (("noise",), ("noise", "haze"))
    )
    (flag,) = (f for f in one.flags if f.code == "one-corruption")
    assert "Build a bank of several corruptions" in str(flag)
    assert not two.has("one-corruption")


def test_the_interval_holds_the_temperature_and_is_wider_for_fewer_rows(fitted):
    target = outputs(5000, "noise", 3, seed=6)[0]
    widths = []
    for n in (50, 5000):
        selection = fitted.adapt(target[:n])
        interval = selection.temperature_interval
        assert interval.low <= selection.temperature == interval.value <= interval.high
        widths.append(math.log(interval.high / interval.low))
    assert widths[0] > widths[1]


@pytest.mark.slow
def test_intervals_cover_temperatures_of_corruptions_that_the_bank_lacks():
    hits = []
    for seed, lacking in itertools.product((1, 2, 3), CORRUPTIONS):
        rest = [name for name in CORRUPTIONS if name != lacking]
        known = Rehearsal(level=0.9).fit(world(rest, n=300, seed=1000 * seed))
        for severity in SEVERITIES:
            logits, labels = outputs(500, lacking, severity, seed=1000 * seed + 500 + severity)
            interval = known.adapt(logits).temperature_interval
            hits.append(interval.low <= math.exp(oracle_log_t(logits, labels)) <= interval.high)
    # three standard errors of 36; targets of one world have errors alike, and count for fewer
    assert np.mean(hits) >= 0.9 - 3 * math.sqrt(0.09 / 36)


def test_classes_that_the_calibration_set_lacks_are_no_trouble():
    sets = [
        SurrogateSet(
            s.logits[s.labels < 4], s.labels[s.labels < 4], s.name, corruption=s.corruption
        )
        for s in world(("noise", "haze"), n=400)
    ]
    fitted = Rehearsal().fit(SurrogateBank(sets))
    logits, labels = outputs(2000, "noise", 3, seed=8)
    selection = fitted.adapt(logits[labels < 4])
    wanted = oracle_log_t(logits[labels < 4], labels[labels < 4])
    assert math.log(selection.temperature) == pytest.approx(wanted, abs=0.3)
    assert math.isfinite(fitted.adapt(logits).temperature)


def edges():
    ordinary = outputs(200, "noise", 3, seed=8)[0]
    return {
        "one row": ordinary[:1],
        "two rows": ordinary[:2],
        "constant": np.zeros((50, K)),
        "one row many times": np.repeat(ordinary[:1], 500, axis=0),
        "huge": 1e4 * ordinary,
        "tiny": 1e-6 * ordinary,
        "one class": np.where(np.eye(K)[np.zeros(300, dtype=int)] > 0, 800.0, 0.0),
    }


@pytest.mark.parametrize("name", edges())
def test_any_target_has_a_temperature_near_those_rehearsed(fitted, name):
    target = edges()[name]
    selection = fitted.adapt(target)
    interval = selection.temperature_interval
    least, most = min(fitted.temperatures_), max(fitted.temperatures_)
    assert least / 4 < selection.temperature < 4 * most
    assert 0 < interval.low <= selection.temperature <= interval.high < math.inf
    assert all(math.isfinite(value) for value in selection.details.values())
    assert np.isfinite(fitted.predict_proba(target)).all()


@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1e4])
def test_banks_of_any_scale_can_be_learnt_from(scale):
    sets = [
        SurrogateSet(scale * s.logits, s.labels, s.name, corruption=s.corruption)
        for s in world(("noise", "haze"), n=150)
    ]
    fitted = Rehearsal().fit(SurrogateBank(sets))
    for target in (scale * outputs(200, "noise", 3, seed=8)[0], np.zeros((20, K))):
        selection = fitted.adapt(target)
        assert 0 < selection.temperature < math.inf
        assert np.isfinite(fitted.predict_proba(target)).all()


TAUGHT = ("pixelate", "gaussian_noise", "brightness", "defocus_blur")
ASKED = ("shot_noise", "fog", "jpeg_compression", "motion_blur", "contrast")


@pytest.mark.slow
def test_on_real_images_of_other_corruptions_it_errs_less_than_sac(shared_data):
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from onnx_resnet import resnet20_onnx

    (weights,) = (shared_data / "cifar10-resnet-weights").glob("resnet20*.th")
    slow = sc.models.as_model(sc.models.cifar_resnet(20, weights=weights))
    state = {name: value.numpy() for name, value in slow.module.state_dict().items()}
    network = sc.models.as_model(resnet20_onnx(state), preprocessing=slow.preprocessing)
    images, labels = cifar_images(shared_data, 1000)
    bank = SurrogateBank.synthesize(
        network, images[:500], labels[:500], corruption=list(TAUGHT), severities=(1, 3, 5)
    )
    pixelated = SurrogateBank([s for s in bank if s.corruption in (None, "pixelate")])
    fitted = [Rehearsal().fit(bank), sc.SAC().fit(bank), sc.SAC().fit(pixelated)]
    errors, apart = [], []
    for corruption, severity in itertools.product(ASKED, (3, 5)):
        shifted = sc.corrupt(images[500:], corruption, severity=severity)
        z = sc.score(network, shifted).logits()
        wanted = oracle_log_t(z.astype(np.float64), labels[500:])
        apart.append([abs(log_t_of(method, z) - wanted) for method in fitted])
        right = z.argmax(axis=1) == labels[500:]
        errors.append([sc.ece(method.confidence(z), right) for method in fitted])
    ours, *theirs = np.mean(errors, axis=0)
    assert ours < min(theirs)
    # the ECE of 500 rows is mostly chance; the temperature tells more
    ours, _, of_one_ladder = np.mean(apart, axis=0)
    assert ours < 0.8 * of_one_ladder
