"""The page: complete in itself, well-formed, escaped, with the numbers of the JSON in it."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import itertools
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from absent_package import hide
from ladder_data import draw, make_bank
from report_facts import HOSTILE, hostile, labelled, unlabelled

import shiftcal as sc
from shiftcal.errors import FileError, MissingExtra
from shiftcal.report.facts import ClassFacts, Judging, make_facts
from shiftcal.report.render import MOST_SHOWN, render, write_report

VOID = {"meta", "input"}
UNIT = '<span class="unit">\u00a0%</span>'
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


@functools.cache
def page(made):
    return render(made())


class Parsed(HTMLParser):
    """Elements in order, with the text directly inside them; tags must be balanced."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        if tag not in VOID:
            self.open.append((tag, len(self.elements) - 1))

    def handle_startendtag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        name, _ = self.open.pop()
        assert name == tag, (name, tag)

    def handle_data(self, data):
        if self.open:
            self.elements[self.open[-1][1]][2] += data

    def all(self, tag):
        return [(at, text) for name, at, text in self.elements if name == tag]


def facts_in(text):
    (listed,) = [t for at, t in Parsed(text).all("script") if at.get("id") == "facts"]
    return json.loads(listed)


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_the_json_in_the_page_is_the_facts_and_tables_have_its_numbers(made):
    text, facts = page(made), made()
    assert facts_in(text) == json.loads(json.dumps(facts.to_dict()))
    for one in facts.methods:
        assert f">{100 * one.mean_confidence:.1f}{UNIT}</data>" in text
        found = one.ece or one.gap
        assert f'<data value="{found.low}">{100 * found.low:.2f}</data>' in text
    for one in facts.classes:
        assert f'<data value="{one.after}">{100 * one.after:.1f}{UNIT}</data>' in text
        assert one.gap is None or f">{100 * one.gap.value:+.1f}</data>" in text
    for one in facts.sets:
        assert f'<data value="{one.temperature}">{one.temperature:.3g}</data>' in text


def test_charts_are_text_in_the_colours_of_the_page_and_always_the_same():
    text = page(labelled)
    assert render(labelled()) == text
    assert len(text) < 300_000
    charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(charts) == 10
    for chart in charts:
        assert not re.search(r": #[0-9a-f]{6}", chart)
        assert "<text" in chart
    style = _style(text)
    names = set(re.findall(r"var\(--(\w+)\)", "".join(charts)))
    assert names <= {name for name, _ in re.findall(r"--(\w+): (#\w+)", style)}


def _style(text):
    return next(words for _, words in Parsed(text).all("style"))


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_the_page_asks_for_nothing_from_outside(made):
    text = page(made)
    parsed = Parsed(text)
    for tag, at, _ in parsed.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert not any(name.startswith("on") for name in at), (tag, at)
        for name in ("src", "href", "xlink:href"):
            if name in at:
                assert at[name].startswith("#")
    assert not re.search(r"url\((?!#)|@import|https?://", text)


def test_the_policy_allows_its_own_style_and_script_and_no_other():
    parsed = Parsed(page(hostile))
    policy = next(at["content"] for at, _ in parsed.all("meta") if "http-equiv" in at)
    assert policy.startswith("default-src 'none'; ")
    assert policy.count("unsafe") == policy.count("style-src-attr 'unsafe-inline'") == 1
    (style,) = [text for _, text in parsed.all("style")]
    (script,) = [text for at, text in parsed.all("script") if "type" not in at]
    for kind, content in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_names_that_are_hostile_are_words():
    text = page(hostile)
    parsed = Parsed(text)
    assert len(parsed.all("script")) == 2
    assert "alert" not in next(t for at, t in parsed.all("script") if "type" not in at)
    for raw in ("<img src=x", "</script><script>alert", "<!-- so", "\u202e", "\x07"):
        assert raw not in text
    assert "{{ 7 * 7 }}" in text
    names = [words for _, words in parsed.all("bdi")]
    assert HOSTILE[0] in names
    assert HOSTILE[3] in names
    assert max(map(len, (one.name for one in hostile().classes))) == 120


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_the_page_can_be_read_by_everybody(made):
    parsed = Parsed(page(made))
    heads = [int(tag[1]) for tag, _, _ in parsed.elements if re.fullmatch(r"h[1-6]", tag)]
    assert heads[0] == 1
    assert heads.count(1) == 1
    assert all(later <= before + 1 for before, later in itertools.pairwise(heads))
    ids = [at["id"] for _, at, _ in parsed.elements if "id" in at]
    assert len(ids) == len(set(ids))
    for tag, at, _ in parsed.elements:
        assert set(at.get("aria-labelledby", "").split()) <= set(ids)
        assert tag != "svg" or at["role"] == "img"
        assert tag != "th" or at["scope"] in {"row", "col"}
    assert {at["href"][1:] for at, _ in parsed.all("a")} <= set(ids)


def test_many_classes_are_cut_on_the_page_and_not_in_the_json():
    names = [f"class {i} {'x' * 100}" for i in range(1000)]
    classes = tuple(
        ClassFacts(i, name, 5, 0.001, 0.9, 0.6, labelled().classes[0].accuracy)
        for i, name in enumerate(names)
    )
    target = dataclasses.replace(labelled().target, n_classes=1000)
    text = render(dataclasses.replace(labelled(), classes=classes, target=target))
    assert len(text.encode()) < 3_000_000
    assert f"The {MOST_SHOWN} classes that are predicted most, of 1,000" in text
    assert len(facts_in(text)["classes"]) == 1000
    assert text.count("class 99 x") == 2
    assert text.count("class 100 x") == 1


def test_many_sets_are_cut_to_the_nearest():
    near = labelled().sets[0]
    sets = tuple(
        dataclasses.replace(near, name=f"set {j}", distance=j / 1000, chosen=j == 700)
        for j in range(1000)
    )
    text = render(dataclasses.replace(labelled(), sets=sets))
    assert len(text.encode()) < 3_000_000
    assert f"The {MOST_SHOWN} nearest of 1,000 sets" in text
    assert "set 700</bdi> (chosen)" in text
    assert len(facts_in(text)["sets"]) == 1000


def browser(page, folder):
    """The document as Chromium has it, and what it logged."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    options += ["--allow-file-access-from-files", f"--user-data-dir={folder / 'home'}"]
    command = [CHROMIUM, *options, "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


WIDE = """<iframe src="report.html" style="width:{width}px;height:9000px"></iframe><script>
onload = () => {{
  const page = document.querySelector("iframe").contentDocument;
  for (const one of page.querySelectorAll("details")) one.open = true;
  const wide = [...page.querySelectorAll("body, .scroll, pre, figure")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1);
  document.title = "too wide: " + wide.map((one) => one.outerHTML.slice(0, 99)).join("; ");
}};
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("made", [labelled, unlabelled])
def test_nothing_is_cut_off_on_a_phone_or_a_desk(made, width, tmp_path):
    write_report(made(), tmp_path / "report.html")
    (tmp_path / "frame.html").write_text(WIDE.format(width=width))
    assert "<title>too wide: </title>" in browser(tmp_path / "frame.html", tmp_path).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("made", [labelled, hostile])
def test_a_browser_shows_it_and_has_no_complaint(made, tmp_path):
    done = browser(write_report(made(), tmp_path / "report.html"), tmp_path)
    assert "CONSOLE" not in done.stderr  # errors, and what the policy does not allow
    assert done.stdout.count('<button type="button">') > 10  # its script has run
    assert made().verdict.headline in done.stdout


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_the_suffix_chooses_the_format(tmp_path, monkeypatch, made):
    facts = made()
    path = write_report(facts, tmp_path / "report.html")
    assert path.read_bytes().decode("utf-8") == render(facts)
    hide(monkeypatch, "jinja2")
    path = write_report(facts, tmp_path / "report.json")
    assert json.loads(path.read_text("utf-8")) == json.loads(json.dumps(facts.to_dict()))
    text = write_report(facts, tmp_path / "report.md").read_text("utf-8")
    assert facts.verdict.headline in text
    assert facts.provenance.date in text
    for method in facts.methods:
        assert re.search(rf"\| {method.name} .*{100 * method.mean_confidence:.2f}", text)
    for flag in facts.warnings:
        assert f"**{flag.code}**" in text
    for one in (*facts.classes, *facts.sets):
        assert re.search(rf"\| {one.n:,} \|", text)
    used = facts.verdict.use and bool(facts.provenance.usage)
    assert ("## How to use this calibration" in text) is used
    assert ("Most confident mistakes" in text) is (facts.target.accuracy is not None)
    assert "<img src" not in text
    with pytest.raises(MissingExtra, match=r"needs jinja2.*pip install 'shiftcal\[report\]'"):
        write_report(facts, tmp_path / "again.html")
    with pytest.raises(FileError, match="could not be written"):
        write_report(facts, tmp_path / "missing" / "report.md")
    with pytest.raises(FileError, match=r"must end in \.html, \.md or \.json"):
        write_report(facts, tmp_path / "report.pdf")
    assert len(list(tmp_path.iterdir())) == 3


LOGITS, LABELS = draw(300, 0.8, seed=5)
TWO = [draw(300, strength, seed=1, k=2) for strength in (1.3, 0.7)]
ODD = {
    "all certain": {"target": sc.Scores(1e4 * LOGITS, labels=LABELS)},
    "all alike": {"target": sc.Scores(np.tile([[2.0, 1, 0, 0, 0, 0]], (300, 1)), labels=LABELS)},
    "all unknown": {"target": sc.Scores(np.zeros((300, 6)), labels=LABELS)},
    "one row": {"target": sc.Scores(LOGITS[:1], labels=LABELS[:1])},
    "vanilla": {"method": "vanilla"},
    "ts": {"method": "ts"},
    "no temperature": {"method": sc.SAC(map="histogram")},
    "one set": {"bank": sc.SurrogateBank.from_arrays([LOGITS], LABELS)},
    "two classes": {
        "bank": sc.SurrogateBank.from_arrays([z for z, _ in TWO], TWO[0][1], corruption="fading"),
        "target": TWO[1][0],
    },
}


@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
def test_odd_banks_targets_and_methods_have_a_page(given):
    usual = {"bank": make_bank(150), "target": LOGITS, "judging": Judging(n_resamples=0)}
    facts = make_facts(**{**usual, **given})
    text = render(facts)
    assert text.rstrip().endswith("</html>")
    for word in ("nan", "inf", "None"):
        assert not [t for t in text.split(">") if t.partition("<")[0].strip() == word]
        assert f'="{word}"' not in text
    assert facts.verdict.headline in text.replace("&#39;", "'")
    assert f"<strong>{facts.method}</strong>" in text
    assert ("target: T = " in text) == (facts.of(facts.method).selection.temperature is not None)
    assert sum(one.n for one in facts.classes) == facts.target.n
