"""The page: complete in itself, well-formed, escaped, and the same numbers as the JSON in it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from absent_package import hide
from PIL import Image
from report_facts import HOSTILE, hostile, labelled, unlabelled

from shiftcal.errors import FileError, MissingExtra
from shiftcal.report.html import render, write_report
from shiftcal.report.html._examples import picture
from shiftcal.report.html.evidence import ClassFacts
from shiftcal.report.html.render import MOST_SHOWN

VOID = {"meta", "img", "input"}


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
    (told,) = [t for at, t in Parsed(text).all("script") if at.get("id") == "facts"]
    return json.loads(told)


def looked_up(document, path):
    for key in path.split("."):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


FORMS = {
    "percent": lambda v: f"{100 * v:.1f}\u00a0%",
    "hundredths": lambda v: f"{100 * v:.1f}",
    "points": lambda v: f"{100 * v:.2f}",
    "count": lambda v: f"{v:,}",
    "fixed": lambda v: f"{v:.4f}",
    "number": lambda v: f"{v:.3g}",
}


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_the_json_in_the_page_is_the_facts(made):
    assert facts_in(render(made())) == json.loads(json.dumps(made().to_dict()))


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_every_number_is_that_of_the_json(made):
    text = render(made())
    document, page = facts_in(text), Parsed(text)
    shown = page.all("data")
    assert len(shown) > 60
    for at, words in shown:
        value = looked_up(document, at["data-fact"])
        assert float(at["value"]) == value
        assert words == FORMS[at["data-form"]](value)


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_the_page_asks_for_nothing_from_outside(made):
    text = render(made())
    page = Parsed(text)
    for tag, at, _ in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert not any(name.startswith("on") or name == "style" for name in at), (tag, at)
        for name in ("src", "href"):
            if name in at:
                assert at[name].startswith(("data:image/", "#"))
    assert not re.search(r"url\(|@import|https?://", text)


def test_the_policy_allows_its_own_style_and_script_and_no_other():
    page = Parsed(render(hostile()))
    policy = next(at["content"] for at, _ in page.all("meta") if "http-equiv" in at)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    (style,) = [text for _, text in page.all("style")]
    (script,) = [text for at, text in page.all("script") if "type" not in at]
    for kind, content in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_names_that_mean_harm_are_words():
    text = render(hostile())
    page = Parsed(text)
    assert len(page.all("script")) == 2
    assert {at["src"][:11] for at, _ in page.all("img")} == {"data:image/"}
    assert "alert" not in next(t for at, t in page.all("script") if "type" not in at)
    for raw in ("<img src=x", "</script><script>alert", "<!-- so", "\u202e", "\x07"):
        assert raw not in text
    assert "{{ 7 * 7 }}" in text
    names = [words for _, words in page.all("bdi")]
    assert HOSTILE[0] in names
    assert HOSTILE[3] in names
    assert max(map(len, (one.name for one in hostile().classes))) == 120


@pytest.mark.parametrize("made", [labelled, unlabelled, hostile])
def test_the_page_can_be_read_by_everybody(made):
    page = Parsed(render(made()))
    (root,) = page.all("html")
    assert root[0]["lang"] == "en"
    heads = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert heads[0] == 1
    assert heads.count(1) == 1
    assert all(later <= before + 1 for before, later in itertools.pairwise(heads))
    ids = [at["id"] for _, at, _ in page.elements if "id" in at]
    assert len(ids) == len(set(ids))
    for tag, at, _ in page.elements:
        for name in at.get("aria-labelledby", "").split():
            assert name in ids
        if tag == "img":
            assert at["alt"]
        if tag == "svg":
            assert at.get("aria-hidden") == "true" or at["role"] == "img"
        if tag == "th":
            assert at["scope"] in {"row", "col"}
    assert {at["href"][1:] for at, _ in page.all("a")} <= set(ids)
    regions = [at for tag, at, _ in page.elements if tag == "section" or at.get("role") == "region"]
    named = [at.get("aria-label") or at["aria-labelledby"] for at in regions]
    assert len(named) == len(set(named))
    assert "<bdi></bdi>" not in render(made())  # a heading of a table without a word


def colours():
    from importlib.resources import files

    css = files("shiftcal.report.html").joinpath("templates", "page.css").read_text("utf-8")
    light, dark, printed = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    return [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]+);", block)) for block in (light, dark, printed)
    ]


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
def test_text_stands_out_from_what_is_behind_it(scheme):
    told = colours()[scheme]
    cards = [told[name] for name in ("paper", "card", "bad-card", "good-card", "open-card")]
    for name in ("ink", "muted", "after", "bad", "good", "open"):
        for behind in cards:
            assert contrast(told[name], behind) >= 4.5, (name, behind)
    for name in ("before", "truth", "rest", "near", "target"):  # marks of charts
        assert contrast(told[name], told["paper"]) >= 3, name


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
    assert text.count('data-fact="classes.') == MOST_SHOWN * 7


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


def test_pictures_are_small_and_true():
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (8, 9, 3), dtype=np.uint8)
    uri = picture(small)
    read = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))
    np.testing.assert_array_equal(read, small)
    large = picture(rng.integers(0, 256, (900, 300, 3), dtype=np.uint8))
    assert large.startswith("data:image/jpeg;base64,")
    assert len(large) < 60_000
    assert Image.open(io.BytesIO(base64.b64decode(large.partition(",")[2]))).size == (48, 144)


def test_examples_are_the_largest_changes():
    facts = hostile()
    assert len(facts.examples) == 12
    changes = [abs(one.after - one.before) for one in facts.examples]
    assert changes == sorted(changes, reverse=True)
    assert "picture" not in facts.to_dict()["examples"][0]


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_report(labelled(), tmp_path / "report.html")
    assert path.read_bytes().decode("utf-8") == render(labelled())
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileError, match="could not be written"):
        write_report(labelled(), tmp_path / "missing" / "report.html")


def test_without_jinja2_the_extra_is_named(monkeypatch):
    hide(monkeypatch, "jinja2")
    with pytest.raises(MissingExtra, match=r"needs jinja2.*pip install 'shiftcal\[report\]'"):
        render(labelled())
