"""The page in a browser: no complaint, no sideways scrolling, with and without scripts."""

from __future__ import annotations

import json

import pytest
from browser import FAINT, Browser, chromium
from report_facts import hostile, labelled, unlabelled

from shiftcal.report.render import write_report

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
PAGES = {"labelled": labelled, "unlabelled": unlabelled, "hostile": hostile}
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
    assert "<title>mean confidence: " in html  # the browser's own tip


def test_tables_sort_by_a_click_on_a_heading(browser, pages):
    browser.open(pages["labelled"])
    table = "document.querySelector('#methods .sortable')"
    browser.evaluate(f"{table}.querySelectorAll('thead button')[1].click()")
    names = f"JSON.stringify([...{table}.querySelectorAll('tbody th')].map(t => t.innerText))"
    wanted = sorted(labelled().methods, key=lambda one: -one.temperature)
    assert json.loads(browser.evaluate(names)) == [one.name for one in wanted]
    assert browser.complaints() == []


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
    listed = json.loads(browser.evaluate(FAINT))
    assert listed["looked"] > 300
    assert listed["found"] == []
