"""How things show themselves: in a line, in lines, and in a notebook."""

from __future__ import annotations

import dataclasses

import pytest
from digits_bank import digits_bank, digits_target
from html_words import HOSTILE, Reader
from report_facts import labelled

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
