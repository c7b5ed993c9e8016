"""Realign: class biases that a shift caused are undone, and what is not known is left alone."""

from __future__ import annotations

import numpy as np
import pytest

import shiftcal as sc
from shiftcal.errors import InputError

K = 5
BIAS = np.array([1.6, 0.4, 0.0, -0.8, -1.2])


def sample(n, strength, *, bias=0.0, prior=None, seed=0):
    """Logits whose best temperature is 2, some classes favoured; and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(K, n, p=prior)
    signal = strength * np.eye(K)[labels] + rng.standard_normal((n, K))
    return 2 * (strength * signal + bias), labels


@pytest.fixture(scope="module")
def bank():
    """A clean set and five corruptions, each of which favours classes of its own."""
    rng = np.random.default_rng(1)
    sets = [sc.SurrogateSet(*sample(1500, 1.8, seed=10), "clean", None, 0)]
    for name in ("first", "second", "third", "fourth", "fifth"):
        direction = rng.standard_normal(K)
        for severity in (1, 2, 3):
            z, y = sample(
                1500, 1.8 - 0.1 * severity, bias=0.7 * severity * direction, seed=severity
            )
            sets.append(sc.SurrogateSet(z, y, f"{name} {severity}", name, severity))
    return sc.SurrogateBank(sets)


@pytest.fixture(scope="module")
def realign(bank):
    return sc.Realign().fit(bank)


def accuracy(probs, labels):
    return (probs.argmax(axis=1) == labels).mean()


@pytest.mark.parametrize("n", [100, 700, 3000])
def test_biases_are_undone(realign, n):
    z, y = sample(4000, 1.6, bias=BIAS, seed=5)
    chosen = realign.adapt(z[:n])
    gained = accuracy(realign.predict_proba(z), y) - accuracy(z, y)
    assert gained > (0.02 if n == 100 else 0.04)
    assert chosen.details["changed"] > 0.05
    own = z.argmax(axis=1) == y
    raw = sc.ece(sc.Vanilla().fit(z, y).confidence(z), own)
    assert sc.ece(realign.confidence(z), own) < raw / 2


def test_a_clean_target_is_left_alone(realign, bank):
    z, _ = sample(1500, 1.8, seed=77)
    chosen = realign.adapt(z)
    assert chosen.has("like-clean")
    np.testing.assert_allclose(realign.predict_proba(z), sc.TS().fit(bank).predict_proba(z))


def test_estimated_accuracies_are_in_their_intervals(realign):
    z, y = sample(3000, 1.6, bias=BIAS, seed=6)
    found = realign.adapt(z).details
    probs = realign.predict_proba(z)
    for name, truth in (("estimated", accuracy(z, y)), ("corrected", accuracy(probs, y))):
        assert found[f"{name}_accuracy_low"] <= truth <= found[f"{name}_accuracy_high"]
    assert realign.confidence(z).mean() == pytest.approx(found["estimated_accuracy"])


def test_the_prior_can_be_said():
    clean = sample(2000, 1.8, seed=3)
    same = sc.Realign(prior="calibration").fit(*clean)
    z, y = sample(3000, 1.6, bias=BIAS, seed=8)
    same.adapt(z)
    assert accuracy(same.predict_proba(z), y) > accuracy(z, y) + 0.04
    # Matched means: that is what was claimed.
    np.testing.assert_allclose(same.predict_proba(z).mean(axis=0), 1 / K, atol=0.03)

    prior = np.array([0.6, 0.2, 0.1, 0.06, 0.04])
    z, y = sample(3000, 1.3, prior=prior, seed=9)
    known = sc.Realign(prior=prior).fit(*clean)
    known.adapt(z)
    same.adapt(z)
    right, wrong = (accuracy(m.predict_proba(z), y) for m in (known, same))
    assert right > accuracy(z, y) > wrong


@pytest.mark.parametrize("prior", ["often", [0.5, 0.5], [1.0, 0, 0, 0, 1.0], [2, -1, 0, 0, 0], {}])
def test_a_prior_that_cannot_be_is_rejected(prior):
    with pytest.raises(InputError, match="prior"):
        sc.Realign(prior=prior).fit(*sample(200, 1.8))


@pytest.mark.parametrize(
    ("n", "names", "words"),
    [(40, "abcde", "10 or more calibration rows a class"), (200, "abcd", "5 or more corruptions")],
)
def test_too_few_rows_or_corruptions_give_rehearsal(n, names, words):
    sets = [sc.SurrogateSet(*sample(n, 1.8, seed=10), "clean", None, 0)]
    sets += [sc.SurrogateSet(*sample(n, 1.2, seed=4), name, name, 1) for name in names]
    z, _ = sample(500, 1.2, seed=1)
    realign, rehearsal = (cls().fit(sc.SurrogateBank(sets)) for cls in (sc.Realign, sc.Rehearsal))
    (flag,) = (f for f in realign.adapt(z).flags if f.code == "too-few")
    assert words in flag.message
    rehearsal.adapt(z)
    np.testing.assert_allclose(realign.predict_proba(z), rehearsal.predict_proba(z), rtol=1e-12)


def test_a_saved_one_predicts_the_same(realign, tmp_path):
    z, _ = sample(500, 1.6, bias=BIAS, seed=5)
    realign.adapt(z)
    realign.save(tmp_path / "realign.json")
    loaded = sc.load(tmp_path / "realign.json")
    np.testing.assert_array_equal(loaded.predict_proba(z), realign.predict_proba(z))
    np.testing.assert_array_equal(loaded.confidence(z), realign.confidence(z))
    assert loaded.adapt(z) == realign.selection_
