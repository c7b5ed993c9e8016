"""Temperature scaling as a map: its settings, its status, what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_logits import draw_logits
from scipy.special import softmax

from shiftcal import maps
from shiftcal.errors import FitWarning, InputError

Temperature = maps.get("temperature")


def test_it_gives_back_the_temperature_the_labels_were_drawn_with():
    logits, labels = draw_logits(20_000, 6, temperature=1.8, seed=1)
    # Twenty thousand rows leave a standard error of about 1 %.
    assert Temperature().fit(logits, labels).temperature_ == pytest.approx(1.8, rel=0.03)


def test_probabilities_are_the_softmax_of_logits_over_temperature(overconfident):
    logits, labels = overconfident
    fitted = Temperature().fit(logits, labels)
    wanted = softmax(logits / fitted.temperature_, axis=1)
    assert np.allclose(fitted.predict_proba(logits), wanted, rtol=1e-12)


def test_a_bound_is_a_warning_that_says_why(overconfident):
    logits, _ = overconfident
    with pytest.warns(FitWarning, match="error-free"):
        fitted = Temperature().fit(logits, logits.argmax(axis=1))
    assert fitted.temperature_ == 0.01
    assert fitted.status_.code == "at-lower-bound"
    with pytest.warns(FitWarning, match="no better than chance"):
        fitted = Temperature().fit(logits, logits.argmin(axis=1))
    assert fitted.status_.code == "at-upper-bound"
    with pytest.warns(FitWarning, match="constant"):
        Temperature().fit(np.ones((4, 3)) * 7, [0, 1, 2, 0])


@pytest.mark.parametrize(
    "t_range", [(0, 1), (2, 1), (1, 1), (-1, 3), (1,), (1, 2, 3), 5, None, ("a", "b"),
                (1, np.inf), (np.nan, 2)]
)  # fmt: skip
def test_a_range_that_is_none_is_refused(overconfident, t_range):
    with pytest.raises(InputError, match=r"t_range must be two positive numbers, the smaller"):
        Temperature(t_range=t_range).fit(*overconfident)
    with pytest.raises(InputError, match="t_range"):
        maps.get("brier-temperature")(t_range=t_range).fit(*overconfident)
