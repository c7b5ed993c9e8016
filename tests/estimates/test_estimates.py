"""Estimators of accuracy by hand, and against scipy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from scipy.stats import entropy
from sklearn.isotonic import IsotonicRegression

from shiftcal import SAC, TS, Scores, SurrogateBank, SurrogateSet, load, maps, methods
from shiftcal.errors import InputError
from shiftcal.estimates import ATC, DoC, MeanConfidence, SurrogateCurve, agreement

# SAC on one set equals TS and warns of it.
pytestmark = pytest.mark.filterwarnings("ignore:.*fitted on one set")

BANK = make_bank(500)
TARGET, _ = draw(400, STEPS[3], seed=77)


def scores_of(logits, score, temperature):
    probs = softmax(logits / temperature, axis=1)
    return probs.max(axis=1) if score == "confidence" else -entropy(probs, axis=1)


@pytest.mark.parametrize("score", ["confidence", "entropy"])
@pytest.mark.parametrize("calibrated", [True, False])
def test_no_threshold_of_all_fits_the_errors_better(score, calibrated):
    clean = BANK.clean
    temperature = 1.0
    if calibrated:
        temperature = maps.get("temperature")().fit(clean.logits, clean.labels).temperature_
    known = scores_of(clean.logits, score, temperature)
    wrong = (clean.logits.argmax(axis=1) != clean.labels).sum()
    misfits = [abs((known < t).sum() - wrong) for t in known]
    threshold = known[int(np.argmin(misfits))]
    assert min(misfits) == 0
    expected = (scores_of(TARGET, score, temperature) >= threshold).mean()
    atc = ATC(score=score, calibrated=calibrated).fit(BANK)
    found = atc.estimate(TARGET)
    # scores are rounded in another order here: a row at the threshold may change its side
    assert found.value == pytest.approx(expected, abs=1 / len(TARGET))
    assert found.details["temperature"] == pytest.approx(temperature)
    assert found.details["threshold"] == pytest.approx(threshold, rel=1e-9)


def test_by_hand():
    # Six clean rows of two classes with growing confidence, two of them wrong; of four target rows
    # three are at least as sure as the third clean row.
    margins = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    logits = np.column_stack([margins, np.zeros(6)])
    labels = np.array([0, 1, 0, 0, 1, 0])
    target = np.column_stack([[2.9, 3.0, 3.1, 7.0], np.zeros(4)])
    assert ATC(calibrated=False).fit(logits, labels).estimate(target).value == 0.75


def test_with_calibration_it_is_so_after_the_temperature_of_least_nll():
    clean = BANK.clean
    rows = np.arange(len(clean))

    def nll(log_t):
        return -log_softmax(clean.logits / np.exp(log_t), axis=1)[rows, clean.labels].mean()

    temperature = np.exp(minimize_scalar(nll, bounds=(-3, 3), method="bounded").x)
    accuracy = (clean.logits.argmax(axis=1) == clean.labels).mean()
    here, there = (
        softmax(z / temperature, axis=1).max(axis=1).mean() for z in (TARGET, clean.logits)
    )
    found = DoC().fit(BANK).estimate(TARGET)
    # scipy's bounded search ends within 1e-5
    assert found.value == pytest.approx(accuracy + here - there, abs=1e-5)
    assert found.details["temperature"] == pytest.approx(temperature, rel=1e-4)


def test_a_change_that_leads_out_of_zero_to_one_is_cut():
    flat = np.zeros((50, 6))
    flat[:, 0] = 1e-3
    logits, labels = draw(400, 1.3, seed=1)
    doc = DoC(calibrated=False).fit(logits / 100, labels)
    assert doc.estimate(logits).value == 1
    under = DoC(calibrated=False).fit(logits, 5 - labels)
    assert under.estimate(flat).value == 0


@pytest.mark.parametrize(
    "name", [n for n in methods.names() if n in ("vanilla", "ts", "sts", "sac")]
)
def test_it_is_the_mean_of_the_adapted_methods_confidence(name):
    method = methods.get(name)().fit(BANK)
    method.adapt(TARGET)
    expected = method.confidence(TARGET)
    found = MeanConfidence(method=name).fit(BANK).estimate(TARGET)
    assert found.value == expected.mean()
    assert found.flags == method.selection_.flags


def test_its_sampling_is_that_of_right_rows_given_confidence_and_of_confidence():
    found = MeanConfidence(method="ts").fit(BANK).estimate(TARGET)
    c = TS().fit(BANK).confidence(TARGET)
    variance = (c * (1 - c)).mean() / len(c) + c.var() / len(c)
    # two rows more on either side, which keep shares of 0 and 1 from being certain
    assert found.details["sampling_sd"] == pytest.approx(np.sqrt(variance), rel=0.01)
    calibration = (c * (1 - c)).mean() / len(BANK.clean)
    assert found.details["calibration_sd"] == pytest.approx(np.sqrt(calibration))


def test_a_method_with_settings_is_used_and_left_as_it_was(tmp_path):
    given = SAC(distance="ks", map="isotonic")
    estimator = MeanConfidence(method=given).fit(BANK)
    assert not hasattr(given, "n_classes_")
    assert estimator.method_.distance_ == "ks"
    fitted = SAC(distance="ks", map="isotonic").fit(BANK)
    fitted.adapt(TARGET)
    before = fitted.selection_
    again = MeanConfidence(method=fitted).fit(BANK)
    assert again.estimate(TARGET) == estimator.estimate(TARGET)
    assert fitted.selection_ is before
    estimator.save(tmp_path / "x.json")
    assert load(tmp_path / "x.json").estimate(TARGET) == estimator.estimate(TARGET)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (3, "a method or the name of one; got 3"),
        (SAC, "a method or the name of one"),
        ("sax", "no method is called 'sax'"),
        ("cpcs", "works with outputs only.*cpcs"),
        (TS(input="probabilities"), "a method for logits.*ts is for probabilities"),
    ],
)
def test_what_is_no_usable_method_raises(method, words):
    with pytest.raises(InputError, match=words):
        MeanConfidence(method=method).fit(BANK)


def tangled_bank():
    """Three corruptions that have other accuracies at the same confidence, and sets of any size."""
    sets = [SurrogateSet(*draw(500, 1.3, seed=1), "clean", severity=0)]
    for c, scale in enumerate((0.6, 1.0, 1.7)):
        for severity, strength in enumerate((1.0, 0.7, 0.4), start=1):
            n = 150 + 40 * severity + 90 * c
            logits, labels = draw(n, strength, seed=10 * c + severity)
            name = f"{c}-{severity}"
            sets.append(
                SurrogateSet(logits * scale, labels, name, corruption=str(c), severity=severity)
            )
    return SurrogateBank(sets)


def mean_p_max(logits):
    return softmax(logits, axis=1).max(axis=1).mean()


def test_it_is_isotonic_regression_over_the_sets():
    bank = tangled_bank()
    mu = [mean_p_max(s.logits) for s in bank]
    accuracy = [(s.logits.argmax(axis=1) == s.labels).mean() for s in bank]
    oracle = IsotonicRegression(out_of_bounds="clip").fit(
        mu, accuracy, sample_weight=[len(s) for s in bank]
    )
    assert (np.diff(np.array(accuracy)[np.argsort(mu)]) < 0).any()  # so that it has work to do
    curve = SurrogateCurve().fit(bank)
    for scale in (0.05, 0.3, 0.5, 0.8, 1.0, 1.5, 4.0):
        target = draw(300, 0.8, seed=3)[0] * scale
        expected = oracle.predict([mean_p_max(target)])[0]
        assert curve.estimate(target).value == pytest.approx(expected, abs=1e-9)


def test_the_target_that_is_a_set_of_a_ladder_has_its_accuracy():
    bank = make_bank(800)
    curve = SurrogateCurve().fit(bank)
    for s in bank:
        found = curve.estimate(s.logits)
        assert found.value == pytest.approx((s.logits.argmax(axis=1) == s.labels).mean())
        assert not found.has("outside-range")


def test_beyond_the_ends_it_is_clamped_and_flagged():
    bank = make_bank(800)
    summaries = bank.summaries()
    curve = SurrogateCurve().fit(bank)
    target, _ = draw(400, STEPS[2], seed=9)
    for scale, end, word in ((0.1, summaries[-1], "below"), (20.0, summaries[0], "above")):
        found = curve.estimate(target * scale)
        assert found.value == pytest.approx(end.accuracy)
        (flag,) = found.flags
        assert flag.code == "outside-range"
        assert f"lies {word} that of every surrogate set" in flag.message
        assert end.name in flag.message


def outputs_of(predicted, k=4):
    return 5.0 * np.eye(k)[predicted] - 1.0


def test_agreement_by_hand():
    model = outputs_of([0, 1, 2, 3, 0, 1, 2, 3, 0, 0])
    one, other = model.copy(), model.copy()
    one[:2], other[:4] = one[[1, 0]], other[[1, 0, 3, 2]]
    model, one, other = (np.tile(z, (10, 1)) for z in (model, one, other))
    found = agreement(model, one, other)
    assert found.value == pytest.approx(0.7)
    assert (found.details["least"], found.details["most"]) == pytest.approx((0.6, 0.8))
    p = 72 / 104  # two more rows on either side
    half = 1.959964 * np.sqrt(p * (1 - p) / 100)
    assert found.low == pytest.approx(0.7 - np.hypot(half, 0.75 * 0.3))
    assert found.high == pytest.approx(0.7 + np.hypot(half, 0.3 - 0.3 / 1.75))
    assert agreement(model, one, other, level=0.5).low > found.low


def test_agreement_is_the_accuracy_of_models_drawn_as_the_labels_are():
    rng = np.random.default_rng(0)
    cumulated = rng.dirichlet(np.full(5, 0.3), size=20_000).cumsum(axis=1)[:, :-1]
    labels, first, second = ((rng.random((20_000, 1)) > cumulated).sum(axis=1) for _ in range(3))
    found = agreement(outputs_of(first, 5), outputs_of(second, 5))
    assert found.value == pytest.approx((first == labels).mean(), abs=0.015)


def scores(n=6, k=4, start=0, classes=None):
    predicted = np.arange(n) % k
    return Scores(outputs_of(predicted, k), ids=np.arange(start, start + n), classes=classes)


@pytest.mark.parametrize(
    ("model", "others", "words"),
    [
        (scores(), [], "two or more models"),
        (scores(), [scores(n=5)], "same rows"),
        (scores(), [scores(k=5)], "columns"),
        (scores(), [scores(start=1)], "ids of these scores differ"),
        (scores(classes=list("abcd")), [scores(classes=list("abdc"))], "in their order"),
        (np.zeros(3), [scores()], r"\(n, k\)"),
    ],
)
def test_agreement_needs_outputs_for_the_same_rows(model, others, words):
    with pytest.raises(InputError, match=words):
        agreement(model, *others)
