"""The page in a browser: no complaint, no sideways scrolling, with and without scripts."""

from __future__ import annotations

import json

import pytest
from browser import Browser, chromium
from report_facts import hostile, labelled, unlabelled
from seen_contrast import FAINT

from shiftcal.report.html import write_report

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
PAGES = {"labelled": labelled, "unlabelled": unlabelled, "hostile": hostile}
NUMBERS = """JSON.stringify([...document.querySelectorAll("data")].map(
    (one) => [one.dataset.fact, Number(one.value), one.textContent]))"""
OPENED = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: write_report(made(), folder / f"{name}.html") for name, made in PAGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_complained_of_and_nothing_is_fetched(browser, pages, name):
    browser.open(pages[name])
    assert browser.complaints() == []
    names = "JSON.stringify(performance.getEntriesByType('resource').map(one => one.name))"
    assert all(name.startswith("data:") for name in json.loads(browser.evaluate(names)))
    assert browser.evaluate("document.title").endswith(PAGES[name]().title[-10:])


@pytest.mark.parametrize("name", PAGES)
def test_the_numbers_seen_are_those_of_the_json(browser, pages, name):
    browser.open(pages[name])
    document = json.loads(browser.evaluate("document.getElementById('facts').textContent"))
    assert document == json.loads(json.dumps(PAGES[name]().to_dict()))
    shown = json.loads(browser.evaluate(NUMBERS))
    assert len(shown) > 60
    for path, value, words in shown:
        found = document
        for key in path.split("."):
            found = found[int(key)] if isinstance(found, list) else found[key]
        assert value == found
        digits = float(words.replace("\u00a0%", "").replace(",", ""))
        scale = 1 if value == digits else 100 if abs(digits) > 1.5 * abs(value) else 1
        assert digits == pytest.approx(scale * value, rel=0.006, abs=0.051)


@pytest.mark.parametrize("name", PAGES)
def test_tables_and_tips_of_charts_are_those_of_the_json(browser, pages, name):
    browser.open(pages[name])
    document = json.loads(browser.evaluate("document.getElementById('facts').textContent"))
    raw = next(one for one in document["methods"] if one["name"] == "vanilla")
    found = browser.evaluate("""JSON.stringify((() => {
        const chart = document.getElementById("reliability-before-vanilla-title").closest("figure");
        const rows = [...chart.querySelectorAll("tbody tr")];
        const tips = [...chart.querySelectorAll("circle.mark")].map((one) => one.dataset.tip);
        return [rows.map((row) => [...row.cells].map((one) => one.textContent)), tips];
    })())""")
    rows, tips = json.loads(found)
    held = [one for one in raw["bins"] if one["count"]]
    assert len(rows) == len(raw["bins"])
    assert len(tips) == len(held)
    for one, row, tip in zip(held, [row for row in rows if row[4] != "0"], tips, strict=True):
        sure, right = f"{100 * one['confidence']:.1f}", f"{100 * one['accuracy']:.1f}"
        ends = f"{100 * one['low']:.1f} to {100 * one['high']:.1f}"
        assert row[1:] == [sure, right, ends, f"{one['count']:,}"]
        assert tip.startswith(f"{sure} % sure, {right} % right ({ends}), {one['count']:,} row")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [320, 360, 768])
def test_no_page_is_wider_than_its_window(browser, pages, name, width):
    browser.open(pages[name], width=width, height=740)
    browser.evaluate(OPENED)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_all_is_there(browser, pages):
    browser.open(pages["labelled"], script=False)
    facts = labelled()
    tree = browser.call("DOM.getDocument", depth=-1)["root"]
    html = browser.call("DOM.getOuterHTML", nodeId=tree["nodeId"])["outerHTML"]
    assert facts.verdict.headline in html
    assert html.count("<svg") > 8
    assert "<title>mean confidence: " in html  # tips are the browser's own then
    assert 'data-fact="methods.0.mean_confidence"' in html


def test_methods_are_switched_without_scripts_too(browser, pages):
    browser.open(pages["labelled"])
    shown = """[...document.querySelectorAll(".panel")].filter(
        (one) => getComputedStyle(one).display !== "none").length"""
    assert browser.evaluate(shown) == 1
    first = browser.evaluate("document.querySelector('.panel-1').offsetHeight")
    browser.evaluate("document.querySelector('label[for=after-2]').click()")
    assert browser.evaluate(shown) == 1
    assert browser.evaluate("document.querySelector('.panel-2').offsetHeight") == first
    assert browser.evaluate("document.querySelector('.panel-1').offsetHeight") == 0


def test_a_mark_tells_its_numbers_to_mouse_and_keyboard(browser, pages):
    browser.open(pages["labelled"])
    browser.evaluate("""(() => {
        const drawing = document.querySelector(".chart > svg");
        drawing.focus();
        drawing.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    })()""")
    tip = browser.evaluate("document.getElementById('tip').textContent")
    assert tip.startswith("mean confidence: ")
    assert browser.evaluate("document.getElementById('tip').hidden") is False
    place = json.loads(
        browser.evaluate("""JSON.stringify((() => {
        const box = document.querySelector(".verdict circle.after").getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
    })())""")
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    assert browser.evaluate("document.getElementById('tip').textContent").startswith(
        "mean confidence after rehearsal"
    )
    assert browser.complaints() == []


def test_tables_are_sorted_by_a_button(browser, pages):
    browser.open(pages["labelled"])
    column = """JSON.stringify([...document.querySelectorAll("#classes tbody tr")].map(
        (row) => Number(row.cells[3].querySelector("data").value)))"""
    button = "document.querySelectorAll('#classes thead button')[3].click()"
    browser.evaluate(button)
    falling = json.loads(browser.evaluate(column))
    assert falling == sorted(falling, reverse=True)
    browser.evaluate(button)
    assert json.loads(browser.evaluate(column)) == sorted(falling)
    sort = "document.querySelectorAll('#classes thead th')[3].getAttribute('aria-sort')"
    assert browser.evaluate(sort) == "ascending"


def test_dark_and_printed_pages_have_their_colours(browser, pages):
    paper = "getComputedStyle(document.body).backgroundColor"
    browser.open(pages["labelled"])
    assert browser.evaluate(paper) == "rgb(255, 255, 255)"
    browser.open(pages["labelled"], dark=True)
    assert browser.evaluate(paper) == "rgb(20, 23, 27)"
    browser.open(pages["labelled"], dark=True, media="print")
    assert browser.evaluate(paper) == "rgb(255, 255, 255)"
    assert browser.evaluate("getComputedStyle(document.querySelector('.tall')).maxHeight") == "none"


@pytest.mark.parametrize("media", ["", "print"])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_all_that_is_drawn_stands_out(browser, pages, name, dark, media):
    browser.open(pages[name], dark=dark, media=media)
    browser.evaluate(OPENED)
    told = json.loads(browser.evaluate(FAINT))
    assert told["looked"] > 300
    assert told["found"] == []


def test_paper_has_what_is_folded_and_no_more_than_one_method_to_switch_to(browser, pages):
    browser.open(pages["labelled"], media="print")
    folded = """JSON.stringify([...document.querySelectorAll("details")].map((one) => [
        one.closest(".chart") !== null,
        one.lastElementChild.checkVisibility({ contentVisibilityAuto: true })
            && one.lastElementChild.getBoundingClientRect().height > 0]))"""
    told = json.loads(browser.evaluate(folded))
    assert sum(chart for chart, _ in told) > 3
    assert all(seen is not chart for chart, seen in told)
    tabs = """JSON.stringify([...document.querySelectorAll(".tabs > label")].filter(
        (one) => one.offsetHeight).map((one) => one.textContent))"""
    assert json.loads(browser.evaluate(tabs)) == [labelled().method]
    wrapped = "getComputedStyle(document.querySelector('#again pre')).whiteSpace"
    assert browser.evaluate(wrapped) == "pre-wrap"
    wide = """[...document.querySelectorAll("pre, .scroll")].every(
        (one) => one.scrollWidth <= document.documentElement.clientWidth)"""
    assert browser.evaluate(wide)


def test_keys_reach_everything_that_can_be_used(browser, pages):
    browser.open(pages["labelled"])
    used = "summary, th button, .scroll, .tabs input, pre"
    every = f"[...document.querySelectorAll('{used}')].every((one) => one.tabIndex >= 0)"
    assert browser.evaluate(every)
