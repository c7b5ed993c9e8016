"""The docs say what is there: code runs, names are on their pages, tables equal the results."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml
from PIL import Image

import shiftcal as sc
from shiftcal import adaptation

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!\\)!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_FLAG = re.compile(r"\bFlag\(\s*\"([a-z0-9-]+)\"")
_SETTINGS = re.compile(
    r"^\| setting \| default \| meaning \|\n\|[-|]+\|\n((?:\|.*\n)*)", re.MULTILINE
)
_SETTING = re.compile(r"^\| `(\w+)` \| `(.+?)` \| \S.* \|$")
PLUGINS = [("methods.md", name) for name in sc.methods.names()] + [
    ("maps.md", name) for name in sc.maps.names()
]


def text_of(page):
    return (DOCS / page).read_text("utf-8")


def prose_of(page):
    """A page without its blocks of code, in which brackets mean other things."""
    return _FENCE.sub("", text_of(page))


def slug(heading):
    words = re.sub(r"[^\w\s-]", "", heading.strip().lower())
    return re.sub(r"[\s-]+", "-", words).strip("-")


def anchors_of(page):
    return {slug(heading) for heading in _HEADING.findall(prose_of(page))}


def script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def site():
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


# Tutorials have blocks for a shell between those of Python: test_tutorials.py runs them.
RUN_HERE = [p for p in PAGES if "```python" in text_of(p) and not p.startswith("tutorials/")]


@pytest.mark.parametrize("page", [*RUN_HERE, "../README.md"])
def test_the_python_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__docs__"}
    blocks = [block for language, block in _FENCE.findall(text_of(page)) if language == "python"]
    assert blocks
    for block in blocks:
        exec(compile(block, f"docs/{page}", "exec"), namespace)


def listed(entries):
    """Pages of a navigation, those of its sections among them."""
    for entry in entries:
        (page,) = entry.values()
        yield from listed(page) if isinstance(page, list) else [page]


def test_the_navigation_lists_every_page_once():
    assert sorted(listed(site()["nav"])) == PAGES


def section_of(page, name):
    """What stands under the heading ``name``, up to the next heading."""
    start = re.search(rf"^#+ {re.escape(name)}\n", text_of(page), re.MULTILINE)
    assert start, f"{page} has no section {name}"
    return re.split(r"^#+ ", text_of(page)[start.end() :], maxsplit=1, flags=re.MULTILINE)[0]


def settings_on(page, name):
    """Setting -> default, as the table of that section says."""
    tables = _SETTINGS.findall(section_of(page, name))
    assert len(tables) <= 1, f"{page} has two tables of settings for {name}"
    rows = [_SETTING.match(row) for table in tables for row in table.splitlines()]
    assert all(rows), f"a setting of {name} on {page} is not `name` | `default` | meaning"
    return {row[1]: ast.literal_eval(row[2]) for row in rows}


@pytest.mark.slow
def test_the_galleries_are_what_their_commands_draw(tmp_path, capsys):
    figures = script(DOCS / "figures" / "corruptions.py")
    figures.draw(tmp_path)
    for name, command in figures.COMMANDS.items():
        assert f"`{command}`" in " ".join(text_of("corruptions.md").split())
        made, committed = (Image.open(f / name) for f in (tmp_path, DOCS / "figures"))
        message = "run docs/figures/corruptions.py"
        assert made.size == committed.size, message
        # Another version of the encoder rounds a little; a corruption that changed moves far more.
        apart = np.abs(np.asarray(made, int) - np.asarray(committed, int))
        assert np.percentile(apart, 99.9) <= 8, message


def test_every_flag_of_the_source_is_explained():
    source = "\n".join(p.read_text("utf-8") for p in (ROOT / "src").rglob("*.py"))
    raised = set(_FLAG.findall(source))
    explained = set(re.findall(r"^\| `([a-z0-9-]+)` \|", text_of("methods.md"), re.MULTILINE))
    assert len(raised) >= 10
    assert raised <= explained


def test_the_picture_of_the_layers_is_drawn_from_the_import_contract_as_it_is():
    layers = script(DOCS / "figures" / "layers.py")
    committed = (DOCS / "figures" / "layers.svg").read_text("utf-8")
    assert layers.drawn() == committed, "run docs/figures/layers.py"
    (alt,) = re.findall(r"!\[(.*)\]\(figures/layers\.svg\)", text_of("design.md"))
    named = [n for row in layers.layers() for n in row if not n.startswith("_")]
    assert [name for name in named if not re.search(rf"\b{name}\b", alt)] == []


def test_links_inside_the_docs_lead_somewhere():
    for page in [*PAGES, "../README.md"]:
        for target in _LINK.findall(prose_of(page)):
            if target.startswith(("http://", "https://")):
                continue
            name, _, anchor = target.partition("#")
            other = (DOCS / page).parent / name if name else DOCS / page
            assert other.exists(), f"{page} links to {target}, which does not exist"
            if anchor and other.name != "reference.md":  # its anchors are made from docstrings
                assert anchor in anchors_of(other), f"{page} links to {target}: no such heading"


@pytest.mark.parametrize(("page", "name"), PLUGINS)
def test_settings_and_their_defaults_are_those_of_the_class(page, name):
    plugin = (sc.methods if page == "methods.md" else sc.maps).get(name)
    defaults = plugin().get_params()
    assert defaults.pop("input") == "logits"  # said once for all, on top of the page
    assert settings_on(page, name) == defaults


@pytest.mark.parametrize("name", adaptation.names())
def test_options_of_a_trainer_and_their_defaults_are_those_of_its_class(name):
    page = text_of(f"adaptation/{name}.md")
    rows = page.partition("| option | default | meaning |\n")[2].partition("\n\n")[0]
    shown = [row for row in map(_SETTING.match, rows.splitlines()) if row]
    defaults = {field.name: field.default for field in fields(adaptation.get(name))}
    assert {row[1]: ast.literal_eval(row[2]) for row in shown} == defaults
    assert f"| [`{name}`]({name}.md) |" in text_of("adaptation/index.md")


def test_every_metric_and_corruption_is_on_its_page():
    for name in sc.metrics.names():
        assert name.replace("-", "_") in anchors_of("metrics.md")
    for name in sc.corruptions.names():
        assert f"| `{name}` |" in text_of("corruptions.md")
    for name in sc.methods.names():
        assert f"| `{sc.methods.get(name).__name__}` |" in text_of("choose.md")


def test_every_public_name_is_in_the_reference():
    shown = set(re.findall(r"^::: shiftcal\.([\w.]+)$", text_of("reference.md"), re.MULTILINE))
    last = {name.rpartition(".")[2] for name in shown}
    public = {name for name in sc.__all__ if not isinstance(getattr(sc, name), ModuleType)}
    assert public - {"__version__"} <= last
    for registry in (sc.maps, sc.corruptions):
        assert {registry.get(name).__name__ for name in registry.names()} <= last


def test_tables_equal_the_committed_results():
    tables = script(DOCS / "figures" / "tables.py")
    for page in PAGES:
        assert tables.renewed(text_of(page)) == text_of(page), "run docs/figures/tables.py"
