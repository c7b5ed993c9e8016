"""What every accuracy estimator in the folder promises."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.special import softmax
from sklearn.base import clone

from shiftcal import SurrogateBank, estimates, load
from shiftcal.errors import InputError, NotFittedError
from shiftcal.scores import Scores

BANK = make_bank(600)
TARGET, _ = draw(500, STEPS[3], seed=77)


@pytest.fixture(params=estimates.names())
def estimator(request):
    return estimates.get(request.param)()


def test_the_estimate_is_a_fraction_inside_its_interval(estimator):
    found = estimator.fit(BANK).estimate(TARGET)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high
    assert (found.level, found.n_target) == (0.95, 500)
    assert found.estimator == estimator.name


def test_intervals_stay_inside_zero_and_one(estimator):
    estimator.fit(BANK)
    for scale in (1e-3, 50.0):
        found = estimator.estimate(TARGET * scale, level=0.999)
        assert found.low >= 0
        assert found.high <= 1


def test_more_certainty_is_wider(estimator):
    estimator.fit(BANK)
    narrow, wide = (estimator.estimate(TARGET, level=level) for level in (0.5, 0.9))
    assert wide.low < narrow.low
    assert narrow.high < wide.high


@pytest.mark.filterwarnings("ignore:.* was fitted on one set")
def test_fewer_rows_are_wider_where_only_sampling_counts(estimator):
    estimator.fit(SurrogateBank([BANK.clean]))
    many, few = estimator.estimate(TARGET), estimator.estimate(TARGET[:50])
    assert few.details["sampling_sd"] > many.details["sampling_sd"]


def test_the_shift_error_is_that_of_the_sets_left_out(estimator):
    estimator.fit(BANK)
    assert [out.name for out in estimator.left_out_] == [s.name for s in BANK][1:]
    errors = [out.estimate - out.accuracy for out in estimator.left_out_]
    found = estimator.estimate(TARGET)
    assert found.details["shift_error"] == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    assert not found.has("no-shift-error")


@pytest.mark.filterwarnings("ignore:.* was fitted on one set")
def test_a_bank_of_one_set_is_flagged(estimator):
    alone = estimator.fit(BANK.clean.logits, BANK.clean.labels).estimate(TARGET)
    assert alone.has("no-shift-error")
    assert "shift_error" not in alone.details
    again = clone(estimator).fit(SurrogateBank([BANK.clean])).estimate(TARGET)
    assert alone == again


def test_the_order_of_the_target_does_not_matter(estimator):
    estimator.fit(BANK)
    rows = np.random.default_rng(5).permutation(len(TARGET))
    first, second = estimator.estimate(TARGET), estimator.estimate(TARGET[rows])
    assert second.value == pytest.approx(first.value, rel=1e-12)


def test_an_estimate_changes_nothing(estimator):
    estimator.fit(BANK)
    before, copied = estimator.estimate(TARGET), TARGET.copy()
    estimator.estimate(draw(300, STEPS[0], seed=3)[0])
    assert estimator.estimate(TARGET) == before
    np.testing.assert_array_equal(TARGET, copied)


def test_saved_and_loaded_it_gives_the_same_estimate(estimator, tmp_path):
    estimator.fit(BANK).save(tmp_path / "estimator.json")
    again = load(tmp_path / "estimator.json")
    assert type(again) is type(estimator)
    assert again.get_params(deep=False) == estimator.get_params(deep=False)
    assert again.left_out_ == estimator.left_out_
    assert again.estimate(TARGET) == estimator.estimate(TARGET)


def test_clone_and_parameters_follow_scikit_learn(estimator):
    parameters = estimator.get_params(deep=False)
    assert parameters["input"] == "logits"
    assert clone(estimator).get_params(deep=False) == parameters


def test_probabilities_with_their_kind_said_equal_logits(estimator):
    by_logits = clone(estimator).fit(BANK).estimate(TARGET)
    bank = SurrogateBank.from_arrays(
        [softmax(s.logits, axis=1) for s in BANK],
        BANK.clean.labels,
        corruption="fading",
        input="probabilities",
    )
    estimator.set_params(input="probabilities").fit(bank)
    by_probs = estimator.estimate(softmax(TARGET, axis=1))
    # a row that lies on the threshold up to rounding may change its side
    assert by_probs.value == pytest.approx(by_logits.value, abs=2.5e-3)


def test_scores_are_taken_and_must_have_the_classes_of_the_bank(estimator):
    classes = ("ant", "bee", "cat", "dog", "elk", "fox")
    sets = [s.logits for s in BANK]
    bank = SurrogateBank.from_arrays(sets, BANK.clean.labels, classes=classes)
    estimator.fit(bank)
    scores = Scores(TARGET, "logits", classes=classes)
    assert estimator.estimate(scores) == estimator.estimate(TARGET)
    with pytest.raises(InputError, match="column 0 is 'fox' here and 'ant' there"):
        estimator.estimate(Scores(TARGET, "logits", classes=classes[::-1]))


def test_an_unfitted_one_says_so(estimator):
    with pytest.raises(NotFittedError, match="call fit"):
        estimator.estimate(TARGET)
    with pytest.raises(NotFittedError, match="call fit"):
        estimator.save("never-written.json")


def test_a_one_row_target_works(estimator):
    found = estimator.fit(BANK).estimate(TARGET[:1])
    assert found.n_target == 1
    assert found.details["sampling_sd"] > 0.1
