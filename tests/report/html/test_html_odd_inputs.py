"""Targets and banks at the edge of what there can be: every page is made, and is whole."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ladder_data import draw, make_bank

import shiftcal as sc
from shiftcal.report.html import Judging, make_facts, render

PLAIN = Judging(n_resamples=0)


def two_classes(n, strength, *, seed):
    return draw(n, strength, seed=seed, k=2)


def bank_of_two():
    sets = [two_classes(300, strength, seed=1) for strength in (1.3, 0.7)]
    return sc.SurrogateBank.from_arrays([z for z, _ in sets], sets[0][1], corruption="fading")


def sure_of_all():
    logits, labels = draw(300, 0.8, seed=5)
    return sc.Scores(1e4 * logits, labels=labels)


def all_alike():
    return sc.Scores(np.tile([[2.0, 1.0, 0, 0, 0, 0]], (300, 1)), labels=np.zeros(300, dtype=int))


def no_idea():
    return sc.Scores(np.zeros((300, 6)), labels=np.arange(300) % 6)


def one_row():
    return sc.Scores(draw(1, 0.8, seed=5)[0], labels=[0])


ODD = [sure_of_all, all_alike, no_idea, one_row]


def check(facts):
    text = render(facts)
    assert text.rstrip().endswith("</html>")
    for word in ("nan", "inf", "None"):
        assert not [t for t in text.split(">") if t.partition("<")[0].strip() == word]
        assert f'="{word}"' not in text
    assert facts.verdict.headline in text.replace("&#39;", "'")
    return text


@pytest.mark.parametrize("made", ODD)
def test_odd_targets_have_a_page(made):
    facts = make_facts(make_bank(150), made(), judging=PLAIN)
    check(facts)
    assert sum(one.n for one in facts.classes) == facts.target.n


@pytest.mark.parametrize("name", ["vanilla", "ts", "sts", "sac"])
def test_a_page_can_be_about_any_method(name):
    logits, _ = draw(200, 0.8, seed=5)
    facts = make_facts(make_bank(150), logits, method=name, judging=PLAIN)
    css = "before" if name == "vanilla" else "after"
    assert re.search(rf'class="name end {css}"[^>]*>{name}<', check(facts))


@pytest.mark.parametrize("map_", ["histogram", "vector"])
def test_maps_that_are_no_temperature_have_a_page(map_):
    logits, labels = draw(200, 0.8, seed=5)
    target = sc.Scores(logits, labels=labels)
    facts = make_facts(make_bank(150), target, method=sc.SAC(map=map_), judging=PLAIN)
    assert facts.of("sac").temperature is None
    assert "diamond" not in check(facts).partition('id="choice"')[2]


def test_two_classes_and_two_sets_have_a_page():
    logits, labels = two_classes(300, 0.9, seed=4)
    facts = make_facts(bank_of_two(), sc.Scores(logits, labels=labels), judging=PLAIN)
    check(facts)
    assert facts.target.n_classes == 2


def test_a_bank_of_the_clean_set_alone_has_a_page():
    logits, labels = draw(300, 1.3, seed=11)
    facts = make_facts(sc.SurrogateBank.from_arrays([logits], labels), logits, judging=PLAIN)
    assert "only clean data" in check(facts)


def test_more_rows_than_a_page_could_hold_cost_no_more_page():
    logits, labels = draw(60_000, 0.8, seed=5)
    target = sc.Scores(logits.astype(np.float32), labels=labels)
    text = check(make_facts(make_bank(150), target, method="sac", judging=PLAIN))
    assert len(text.encode()) < 400_000


def test_a_thousand_classes_stay_below_three_megabytes():
    sets = [draw(1200, strength, seed=3, k=1000) for strength in (2.6, 1.6)]
    names = [f"class {i}, {'long ' * 30}" for i in range(1000)]
    bank = sc.SurrogateBank.from_arrays(
        [z.astype(np.float32) for z, _ in sets], sets[0][1], corruption="fading", classes=names
    )
    logits, labels = draw(1500, 2.0, seed=4, k=1000)
    facts = make_facts(bank, sc.Scores(logits.astype(np.float32), labels=labels), judging=PLAIN)
    assert len(check(facts).encode()) < 3_000_000
    assert len(facts.classes) == 1000
