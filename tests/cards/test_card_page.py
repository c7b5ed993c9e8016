"""The markdown of a card: the numbers of its JSON, in tables that no name can break."""

from __future__ import annotations

import html
import itertools
import re
from dataclasses import replace

import markdown
import numpy as np
import pytest
from digits_bank import digits_bank, digits_target
from hypothesis import given
from hypothesis import strategies as st
from ladder_data import draw, make_bank
from markdown_it import MarkdownIt

import shiftcal as sc
from shiftcal._types import Flag
from shiftcal.cards import Judging, Limit, Provenance, make_card
from shiftcal.cards._text import code, fenced

FAST = Judging(n_resamples=50, folds=2)
SECTIONS = [
    "What was calibrated",
    "Data",
    "Bank",
    "Method",
    "Choice for the target",
    "Measured on the bank",
    "Measured on the target",
    "Accuracy estimated without labels",
    "Limits",
    "How to make it again",
]
NASTY = [
    "a|b",
    "two\nlines",
    "<script>alert(1)</script>",
    "`tick` ``two``",
    "\\|",
    "trailing\\",
    "[link](http://x) ![i](y)",
    "*b* _i_ ~s~ $m$",
    "&lt;b&gt; &#124;",
    "# heading",
    "- item | --- |",
    "| --- |",
    "   ",
    "\u2028line\x0bfeed\x1c",
    "12. x",
    "{: .c }",
    "`",
]


@pytest.fixture(scope="module")
def card():
    provenance = Provenance(date="2024-05-31", command="shiftcal card x", files={"x": "0" * 64})
    return make_card(
        "sac",
        digits_bank(),
        digits_target(),
        judging=FAST,
        provenance=provenance,
        estimator="surrogate-curve",
    )


def tables_of(text):
    """Every table as rows of cells, as a parser of code hosts' markdown reads it."""
    tables, row = [], None
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
            row = tables[-1][-1]
        elif token.type in ("td_open", "th_open"):
            row.append(None)
        elif token.type == "inline" and row and row[-1] is None:
            row[-1] = shown(token)
        elif token.type == "table_close":
            row = None
    return tables


def shown(token):
    """What a reader sees of a piece of text."""
    return "".join(
        "\n" if child.type == "html_inline" and child.content == "<br>" else child.content
        for child in token.children
    )


def table(text, corner):
    (found,) = (t for t in tables_of(text) if t[0][0] == corner)
    return found[1:]


def close(cell, value, digits=4):
    return abs(float(cell.replace(",", "")) - value) <= 0.5000001 * 10**-digits


def interval(cell):
    return [float(x) for x in re.fullmatch(r"(\S+) \((\S+) to (\S+)\)", cell).groups()]


def test_the_sections_stand_in_order(card):
    assert re.findall(r"^## (.+)$", card.to_markdown(), re.MULTILINE) == SECTIONS


def test_sections_without_facts_are_left_out():
    plain = make_card("ts", make_bank(120), judging=FAST).to_markdown()
    found = re.findall(r"^## (.+)$", plain, re.MULTILINE)
    assert found == [s for s in SECTIONS if "on the target" not in s and "without" not in s]
    assert "nothing was chosen" in plain


def test_the_numbers_of_the_bank_are_those_of_the_json(card):
    facts = card.to_dict()["bank"]
    (rows,) = (t[1:] for t in tables_of(card.to_markdown()) if t[0][:2] == ["set", "corruption"])
    assert len(rows) == len(facts)
    for row, fact in zip(rows, facts, strict=True):
        name, corruption, severity, n, accuracy, confidence, t = row
        assert (name, corruption) == (fact["name"], fact["corruption"] or "–")
        assert (int(severity), int(n.replace(",", ""))) == (fact["severity"], fact["n"])
        assert close(accuracy, fact["accuracy"])
        assert close(confidence, fact["mean_confidence"])
        assert float(t) == pytest.approx(fact["temperature"], rel=5e-4)


@pytest.mark.parametrize(
    ("name", "metric"), [("accuracy", "accuracy"), ("ECE", "ece"), ("NLL", "nll")]
)
def test_the_metrics_of_the_bank_are_those_of_the_json(card, name, metric):
    facts = card.to_dict()["on_bank"]
    rows = table(card.to_markdown(), name)
    assert [row[0] for row in rows] == [fact["name"] for fact in facts]
    for row, fact in zip(rows, facts, strict=True):
        for cell, when in zip(row[1:], ("before", "after"), strict=True):
            told = fact[when][metric]
            for shown_number, key in zip(interval(cell), ("value", "low", "high"), strict=True):
                assert close(str(shown_number), told[key])


def test_the_metrics_of_the_target_are_those_of_the_json(card):
    fact = card.to_dict()["on_target"]
    rows = table(card.to_markdown(), "metric")
    keys = ("accuracy", "ece", "nll", "brier")
    for row, metric in zip(rows, keys, strict=True):
        for cell, when in zip(row[1:], ("before", "after"), strict=True):
            ends = [fact[when][metric][key] for key in ("value", "low", "high")]
            assert interval(cell) == pytest.approx(ends, abs=0.5001e-4)


def test_the_choice_is_that_of_the_json(card):
    fact = card.to_dict()["choice"]
    tables = tables_of(card.to_markdown())
    (choice,) = (dict(t[1:]) for t in tables if t[1][0] == "set")
    assert choice["set"] == fact["set_name"]
    assert float(choice["T"]) == pytest.approx(fact["temperature"], rel=5e-4)
    assert close(choice["margin to the next set"], fact["margin"])
    (distances,) = (t[1:] for t in tables if t[0] == ["set", "distance"])
    assert [row[0] for row in distances] == [s.name for s in card.bank]
    for (_, cell), distance in zip(distances, fact["distances"], strict=True):
        assert close(cell, distance)


def test_every_limit_flag_version_and_digest_is_on_the_page(card):
    text = card.to_markdown()
    for limit in card.limits:
        assert f"- **{limit.code}.** " in text
    for flag in card.choice.flags:
        assert f"| {flag.code} | " in text
    for number in card.provenance.versions.values():
        assert number in text
    for digest in (card.calibration.digest, card.target.digest, "0" * 64, "2024-05-31"):
        assert digest in text
    assert "```text\nshiftcal card x\n```" in text


def test_without_intervals_no_ends_are_shown():
    card = make_card("ts", make_bank(120), judging=Judging(n_resamples=0))
    text = card.to_markdown()
    assert "No intervals were asked for" in text
    assert all(re.fullmatch(r"\d+\.\d{4}", row[1]) for row in table(text, "ECE"))


def test_many_classes_are_told_in_a_sentence():
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 40
    logits = rng.standard_normal((200, 40)) + 3 * np.eye(40)[labels]
    card = make_card("ts", sc.SurrogateBank.from_arrays([logits], labels), judging=FAST)
    assert "40 classes; the rarest has 5 rows" in card.to_markdown()


def with_names(card, names):
    """The card with these names wherever a name of anybody's can stand."""
    drawn = itertools.cycle(names)
    classes = tuple(f"{next(drawn)}{i}" for i in range(card.model.n_classes))
    bank = tuple(replace(s, name=next(drawn), corruption=next(drawn)) for s in card.bank)
    on_bank = tuple(replace(m, name=s.name) for m, s in zip(card.on_bank, bank, strict=True))
    flag = Flag(next(drawn), next(drawn))
    return replace(
        card,
        title=next(drawn),
        notes=next(drawn),
        model=replace(card.model, classes=classes, spec=next(drawn), fingerprint=next(drawn)),
        calibration=replace(card.calibration, images=next(drawn), images_digest=next(drawn)),
        target=replace(card.target, source=next(drawn)),
        bank=bank,
        on_bank=on_bank,
        choice=replace(card.choice, set_name=f"s{next(drawn)}", flags=(flag,)),
        method=replace(card.method, settings={next(drawn): next(drawn)}),
        limits=(Limit(next(drawn), next(drawn)),),
        provenance=Provenance(
            date=next(drawn),
            command=next(drawn),
            versions={next(drawn): next(drawn)},
            files={next(drawn): next(drawn)},
        ),
    )


def shape_of(text):
    return [[len(row) for row in t] for t in tables_of(text)]


def tags_of(text):
    """What Python-Markdown makes of it, tags alone; breaks are part of a text."""
    page = markdown.markdown(text, extensions=["tables", "fenced_code", "attr_list"])
    return [tag for tag in re.findall(r"<[^>]*>", page) if not tag.startswith("<br")]


def check_not_broken(card, names):
    plain, nasty = with_names(card, ["plain"]), with_names(card, names)
    text = nasty.to_markdown()
    assert shape_of(text) == shape_of(plain.to_markdown())
    rows = [row for t in tables_of(text) for row in t if row[0] is not None]
    seen = [row[0].split() for row in rows]
    for one in nasty.bank:
        assert (one.name.split() or ["–"]) in seen
    for one in nasty.model.classes:
        assert one.split() in seen
    kinds = {re.match(r"</?\w+", tag).group() for tag in tags_of(text)}
    allowed = "p h1 h2 ul li table thead tbody tr th td code pre strong"
    assert kinds <= {f"{start}{name}" for name in allowed.split() for start in ("<", "</")}


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_name_breaks_no_table_and_makes_no_markup(card, name):
    check_not_broken(card, [name])


@given(st.lists(st.text(alphabet="ab |\\`*_<>&[]()#-~$\n{}:!;1.", max_size=12), min_size=1))
def test_no_names_break_a_table_or_make_markup(card, names):
    check_not_broken(card, names)


@pytest.mark.parametrize("text", ["plain", "a`b", "a|b", "", " x", "é", "a\nb", "``"])
def test_code_is_code_only_where_nothing_can_end_it(text):
    assert (code(text) == f"`{text}`") == (text == "plain")


@pytest.mark.parametrize("command", ["a b", "a ``` b", "```\nb", "x\n`````"])
def test_a_fence_is_longer_than_any_in_the_command(command):
    (token,) = MarkdownIt("commonmark").parse(fenced(command))
    assert (token.type, token.content) == ("fence", f"{command}\n")


def test_html_of_a_name_is_text(card):
    text = with_names(card, ["<img src=x onerror=alert(1)>"]).to_markdown()
    assert "<img" not in markdown.markdown(text, extensions=["tables"])
    assert "<img" in html.unescape(markdown.markdown(text, extensions=["tables"]))


def test_a_card_of_a_target_with_labels_shows_both_mixtures():
    logits, labels = draw(150, 0.6, seed=2)
    card = make_card("ts", make_bank(120), sc.Scores(logits, labels=labels), judging=FAST)
    rows = table(card.to_markdown(), "class")
    assert sum(int(row[3]) for row in rows) == 150
    assert sum(float(row[4]) for row in rows) == pytest.approx(1, abs=6 * 0.5e-4)
