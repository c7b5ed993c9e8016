"""The estimator that shares the rehearsals of a fitted method."""

from __future__ import annotations

import pytest
from ladder_data import draw, make_bank

import shiftcal as sc
from shiftcal import estimates
from shiftcal.errors import NotFittedError


@pytest.mark.parametrize("sets", [6, 1])
def test_it_is_what_a_fit_on_the_bank_gives(sets, tmp_path):
    whole = make_bank(300, classes=list("abcdef"))
    bank = sc.SurrogateBank(whole.sets[:sets], classes=whole.classes)
    shared = estimates.Rehearsed.of(sc.Rehearsal(seed=4).fit(bank))
    fitted = estimates.Rehearsed(seed=4).fit(bank)
    target = draw(200, 0.6, seed=1)[0]
    assert shared.estimate(target) == fitted.estimate(target)
    assert shared.left_out_ == fitted.left_out_
    assert shared.class_names_ == fitted.class_names_
    for name, estimator in (("shared", shared), ("fitted", fitted)):
        (tmp_path / name).mkdir()
        estimator.save(tmp_path / name / "saved.json")
    texts = [(tmp_path / name / "saved.json").read_text() for name in ("shared", "fitted")]
    assert texts[0] == texts[1]


def test_a_method_that_is_not_fitted_lends_nothing():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        estimates.Rehearsed.of(sc.Rehearsal())
