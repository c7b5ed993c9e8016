"""How things show themselves: in a line, in lines, and in a notebook."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from digits_bank import digits_bank, digits_target
from html_words import HOSTILE, Reader
from report_facts import labelled, unlabelled

import shiftcal as sc
from shiftcal.estimates import AccuracyEstimate
from shiftcal.methods.method import Selection
from shiftcal.types import Flag


def words(shown):
    read = Reader(shown._repr_html_())
    assert not read.open
    return read.words


def selection(**given):
    return Selection("sac", **{"set_name": HOSTILE, "index": 0, "n_sets": 2, **given})


def bank_of(n, name="s"):
    clean = digits_bank().clean
    return sc.SurrogateBank(
        [sc.SurrogateSet(clean.logits[:20], clean.labels[:20], f"{name}{j}") for j in range(n)]
    )


def test_a_bank_is_a_table_of_its_sets():
    told = words(digits_bank())
    assert told[0] == "SurrogateBank of 6 sets, 10 classes (logits)"
    for j, s in enumerate(digits_bank().summaries()):
        row = told[7 + 6 * j : 13 + 6 * j]
        assert row == [
            f"{j + 1}",
            s.name,
            f"{s.n}",
            f"{s.mean_confidence:.3f}",
            f"{s.accuracy:.3f}",
            f"{s.mean_confidence - s.accuracy:+.3f}",
        ]


def test_a_selection_tells_what_was_chosen_why_and_what_to_beware_of():
    sac = sc.SAC().fit(digits_bank())
    chosen = sac.adapt(digits_target())
    told = words(chosen)
    assert told[0] == f"sac: {chosen}"
    assert f"797 rows, mean {chosen.mean_confidence:.4f}" in told
    assert f"{chosen.margin:.4g}" in told
    at = told.index(f"{chosen.set_name}, chosen")
    assert told[at - 1 : at + 2] == ["3", "noise 2, chosen", f"{min(chosen.distances):.4f}"]
    for flag in chosen.flags:
        assert flag.code in told
        assert f": {flag.message}" in told


def test_an_estimate_tells_its_interval_and_what_it_is_made_of():
    made = AccuracyEstimate(
        0.9, 0.85, 0.95, 0.9, 1200, "atc", {"shift_error": 0.02}, (Flag("few-rows", "few"),)
    )
    assert words(made) == [
        "atc: estimated accuracy 90.0 % (85.0 to 95.0)",
        "interval",
        "0.8500 to 0.9500, at 90 %",
        "rows of the target",
        "1,200",
        "shift error",
        "0.02",
        "few-rows",
        ": few",
    ]


def test_a_table_of_bins_is_a_table_and_in_a_line_its_ece():
    table = sc.bin_table([0.2, 0.4, 0.9], [False, True, True], n_bins=4, binning="width")
    assert repr(table) == f"<BinTable of 4 bins, 3 rows, ECE {table.ece:.4f}>"
    told = words(table)
    assert told[1:8] == ["bin", "lower", "upper", "count", "confidence", "accuracy", "gap"]
    rows = [told[8 + 7 * i : 15 + 7 * i] for i in range(4)]
    assert rows[3] == ["4", "0.7500", "1.0000", "1", "0.9000", "1.0000", "-0.1000"]
    assert rows[2] == ["3", "0.5000", "0.7500", "0", "-", "-", "-"]
    many = sc.bin_table(np.linspace(0, 1, 300), np.ones(300), n_bins=300)
    assert words(many)[-1] == "... 250 more"


@pytest.mark.parametrize("facts", [labelled, unlabelled])
def test_facts_of_a_report_are_their_verdict(facts):
    made = facts()
    assert repr(made) == f"<ReportFacts: {made.target.name}, 797 rows: {made.verdict.headline}>"
    told = words(made)
    assert told[: 2 + len(made.verdict.advice)] == [
        made.verdict.headline, made.verdict.reason, *made.verdict.advice
    ]  # fmt: skip


SHOWN = {
    "bank": lambda: bank_of(2, name=HOSTILE),
    "selection": lambda: selection(distances=(0.1, 0.2), flags=(Flag(HOSTILE, HOSTILE),)),
    "details": lambda: selection(details={HOSTILE: 1.0}, distance=HOSTILE),
    "report": lambda: dataclasses.replace(
        labelled(), verdict=dataclasses.replace(labelled().verdict, reason=HOSTILE)
    ),
    "estimate": lambda: AccuracyEstimate(
        0.9, 0.8, 1.0, 0.95, 9, HOSTILE, {HOSTILE: 1.0}, (Flag(HOSTILE, HOSTILE),)
    ),
}


@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_hostile_names_are_words(make):
    html = make()._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "".join(Reader(html).words).count("<script>alert('x')</script>") >= 1


def test_a_fitted_method_shows_its_settings_as_scikit_learn_does():
    sac = sc.SAC(map=sc.maps.Temperature(t_range=(0.1, 10))).fit(digits_bank())
    html = sac._repr_html_()
    assert "SAC" in html
    assert "t_range" in html
    assert "scikit-learn.org/stable/modules/generated/shiftcal" not in html
    assert repr(sac) == "SAC(map=Temperature(t_range=(0.1, 10)))"
