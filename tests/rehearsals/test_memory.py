"""What is kept of all rehearsals: sizes, answers between them, and errors without a corruption."""

from __future__ import annotations

import numpy as np
import pytest
from gaussian_world import CORRUPTIONS, SEVERITIES, oracle_log_t, outputs, world

from shiftcal import SurrogateBank, SurrogateSet
from shiftcal.methods import rehearsals as memory
from shiftcal.methods.rehearsals import Answer, grouped_moments, remember


def remembered(bank, *, seed=0):
    return remember(bank, [oracle_log_t(s.logits, s.labels) for s in bank], seed=seed)


@pytest.fixture(scope="module")
def bank():
    return world(n=500)


@pytest.fixture(scope="module")
def kept(bank):
    return remembered(bank)


def test_a_draw_from_a_sample_is_as_noisy_as_fewer_rows(kept):
    sizes = [response.size for response in kept.responses]
    assert sizes == pytest.approx([1 / (1 / m + 1 / 500) for m in memory.SIZES])
    assert sizes == sorted(sizes)


def constant(value):
    """A response that says the same whatever it is asked."""

    class Said:
        def __init__(self, size):
            self.size = size

        def answer(self, statistics):
            return Answer(*(np.full(statistics.shape[:-1], value + i) for i in range(7)))

    return Said


@pytest.mark.parametrize(
    ("n", "wanted"), [(1, 0.0), (100, 0.0), (400, 1.0), (160, 0.5), (9999, 1.0), (10**7, 1.0)]
)
def test_between_two_sizes_answers_are_linear_in_one_over_n(n, wanted):
    """160 is halfway from 100 to 400 so: 1/160 = (1/100 + 1/400) / 2."""
    both = memory.Memory(
        (constant(0.0)(100.0), constant(1.0)(400.0)), None, None, 1.0, (0,), np.zeros(1)
    )
    found = both.answers(np.zeros((3, 4)), n)
    np.testing.assert_allclose(found.log_t, np.full(3, wanted))
    np.testing.assert_allclose(found.distance, np.full(3, wanted + 5))


def test_a_set_of_the_bank_gets_nearly_its_own_temperature_and_accuracy(bank, kept):
    rng = np.random.default_rng(0)
    for s in bank:
        said = kept.answer(grouped_moments(s.logits, rng), rng)
        # a stiff quadratic goes between sets that have other temperatures at like outputs
        assert said.log_t == pytest.approx(oracle_log_t(s.logits, s.labels), abs=0.3)
        accuracy = (s.logits.argmax(axis=1) == s.labels).mean()
        assert said.accuracy == pytest.approx(accuracy, abs=0.1)


def test_samples_of_the_clean_kind_are_near_the_clean_set_and_others_are_not(kept):
    def from_clean(*given, seed, n=1000):
        rng = np.random.default_rng(0)
        return kept.answer(grouped_moments(outputs(n, *given, seed=seed)[0], rng), rng).from_clean

    near = np.mean([from_clean(seed=s) <= 1 for s in range(300, 340)])
    assert near >= 0.8
    assert all(from_clean(name, 3, seed=400) > 1 for name in CORRUPTIONS)


def test_parts_of_a_large_target_are_asked(kept):
    logits, labels = outputs(40_000, "noise", 3, seed=77)
    target = grouped_moments(logits, np.random.default_rng(0))
    said = kept.answer(target, np.random.default_rng(1))
    part = target.at_size(kept.responses[-1].size, np.random.default_rng(1))
    assert said.log_t == kept.responses[-1].answer(part).log_t
    assert said.log_t == pytest.approx(oracle_log_t(logits, labels), abs=0.25)


@pytest.mark.parametrize("n", [200, 20_000])
def test_rows_drawn_anew_answer_around_what_all_rows_answer(n):
    many = remembered(world(("noise", "haze"), n=300, k=60))
    target = grouped_moments(outputs(n, "noise", 3, seed=5, k=60)[0], np.random.default_rng(0))
    said = many.answer(target, np.random.default_rng(1))
    drawn = many.redrawn(target, 400, np.random.default_rng(1))
    assert drawn.log_t.shape == (400,)
    assert np.median(drawn.log_t) == pytest.approx(said.log_t, abs=0.05)
    assert np.median(drawn.accuracy) == pytest.approx(said.accuracy, abs=0.02)


def test_answers_of_rows_drawn_anew_vary_as_those_of_other_samples_do(kept):
    rng = np.random.default_rng(0)
    samples = [grouped_moments(outputs(400, "noise", 3, seed=s)[0], rng) for s in range(100)]
    wanted = np.std([kept.answer(one, rng).log_t for one in samples])
    drawn = [kept.redrawn(one, 200, rng).log_t.std() for one in samples[:10]]
    # the deviation of 100 samples is known to 7 %, and so is each of the ten
    assert np.mean(drawn) == pytest.approx(wanted, rel=0.25)


def test_a_corruption_like_the_others_has_smaller_errors_than_one_of_its_own():
    def alike(strange):
        sets = [SurrogateSet(*outputs(300, seed=1), "clean", severity=0)]
        for number, name in enumerate(("a", "b", "c")):
            for severity in SEVERITIES:
                kind = "drift" if strange and name == "c" else "noise"
                z, y = outputs(300, kind, severity, seed=10 * number + severity)
                sets.append(SurrogateSet(z, y, f"{name}{severity}", corruption=name))
        return remembered(SurrogateBank(sets))

    same, other = alike(False), alike(True)
    assert np.abs(same.errors.log_t).mean() < np.abs(other.errors.log_t).mean()
    assert same.reach < other.reach


def test_errors_of_sets_are_those_of_a_memory_without_their_corruption(bank, kept):
    rest = remembered(SurrogateBank([s for s in bank if s.corruption != "haze"]))
    rng = np.random.default_rng(0)
    for j, s in enumerate(bank):
        if s.corruption == "haze":
            said = rest.answer(grouped_moments(s.logits, rng), rng).accuracy
            accuracy = (s.logits.argmax(axis=1) == s.labels).mean()
            # the one is asked once, with all rows; the other is a mean of large draws
            assert kept.accuracy_errors[j] == pytest.approx(said - accuracy, abs=0.03)
