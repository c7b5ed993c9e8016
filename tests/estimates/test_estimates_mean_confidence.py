"""Mean calibrated confidence is that of the method, whichever way the method is given."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank

from shiftcal import SAC, TS, SurrogateBank, estimates, load, methods
from shiftcal.errors import FitWarning, InputError

# SAC on one set equals TS and warns of it.
pytestmark = pytest.mark.filterwarnings("ignore:.*fitted on one set")

BANK = make_bank(500)
TARGET, _ = draw(400, STEPS[3], seed=77)
MeanConfidence = estimates.get("mean-confidence")


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


def test_warnings_of_the_method_are_said_once_and_point_at_the_caller():
    logits, labels = draw(200, 1.3, seed=4)
    easy = logits.copy()
    easy[np.arange(200), labels] += 40
    bank = SurrogateBank.from_arrays([easy, logits, logits * 0.7, logits * 0.4], labels)
    with pytest.warns(FitWarning, match="set 1 of 4") as caught:
        MeanConfidence().fit(bank)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (3, "method must be the name of a method or a method; got 3"),
        (SAC, "method must be the name of a method or a method"),
        ("sax", "no method is called 'sax'"),
        ("cpcs", "works with outputs only, and cpcs needs features"),
        (TS(input="probabilities"), "the method was made for probabilities"),
    ],
)
def test_what_is_no_usable_method_is_refused(method, words):
    with pytest.raises(InputError, match=words):
        MeanConfidence(method=method).fit(BANK)
