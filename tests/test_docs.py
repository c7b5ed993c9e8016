"""The docs say what is there: code runs, links work, names and defaults are those of the code."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml
from PIL import Image

import shiftcal as sc
from shiftcal.studies.records import Record

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
METHODS, MAPS = "reference/methods.md", "reference/maps.md"
PLUGINS = [(METHODS, name) for name in sc.methods.names()]
PLUGINS += [(MAPS, name) for name in sc.maps.names()]
GENERATED = "reference/cli.md"
ZENSICAL = Path(sys.executable).with_name("zensical")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


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


# Pages to follow have blocks for a shell between those of Python: test_tutorials.py runs them.
FOLLOWED = (
    *("tutorials/", "how-to/", "index.md", "quickstart.md"),
    "reference/python/integrations.md",
)
RUN_HERE = [p for p in PAGES if "```python" in text_of(p) and not p.startswith(FOLLOWED)]


@pytest.mark.parametrize("page", [*RUN_HERE, "../README.md"])
def test_the_python_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__docs__"}
    blocks = [block for language, block in _FENCE.findall(text_of(page)) if language == "python"]
    assert blocks
    for block in blocks:
        exec(compile(block, f"docs/{page}", "exec", dont_inherit=True), namespace)


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
        assert f"`{command}`" in " ".join(text_of("reference/corruptions.md").split())
        made, committed = (Image.open(f / name) for f in (tmp_path, DOCS / "figures"))
        message = "run docs/figures/corruptions.py"
        assert made.size == committed.size, message
        # Another version of the encoder rounds a little; a corruption that changed moves far more.
        apart = np.abs(np.asarray(made, int) - np.asarray(committed, int))
        assert np.percentile(apart, 99.9) <= 8, message


def test_every_flag_of_the_source_is_explained():
    source = "\n".join(p.read_text("utf-8") for p in (ROOT / "src").rglob("*.py"))
    raised = set(_FLAG.findall(source))
    first_cells = re.findall(r"^\| (`[a-z0-9-]+`.*?) \|", section_of(METHODS, "Flags"), re.M)
    assert len(raised) >= 10
    assert raised <= set(re.findall(r"`([a-z0-9-]+)`", " ".join(first_cells)))


def test_the_picture_of_the_layers_is_drawn_from_the_import_contract_as_it_is():
    layers = script(DOCS / "figures" / "layers.py")
    committed = (DOCS / "figures" / "layers.svg").read_text("utf-8")
    assert layers.drawn() == committed, "run docs/figures/layers.py"
    (alt,) = re.findall(r"!\[(.*)\]\(figures/layers\.svg\)", text_of("contributing.md"))
    named = [n for row in layers.layers() for n in row if not n.startswith("_")]
    assert [name for name in named if not re.search(rf"\b{name}\b", alt)] == []


@pytest.mark.parametrize("page", [*PAGES, "../README.md"])
def test_links_lead_somewhere(page):
    for target in _LINK.findall(prose_of(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        other = (DOCS / page).parent / name if name else DOCS / page
        assert other.exists(), f"{page} links to {target}, which does not exist"
        # Anchors of the Python pages are made from docstrings; those of pictures name a theme.
        if anchor and other.suffix == ".md" and other.parent.name != "python":
            assert anchor in anchors_of(other), f"{page} links to {target}: no such heading"


@pytest.mark.parametrize(("page", "name"), PLUGINS)
def test_settings_and_their_defaults_are_those_of_the_class(page, name):
    plugin = (sc.methods if page == METHODS else sc.maps).get(name)
    defaults = plugin().get_params()
    assert defaults.pop("input") == "logits"  # said once for all, on top of the page
    assert settings_on(page, name) == defaults


def test_every_metric_corruption_and_column_of_a_record_is_on_its_page():
    for name in sc.metrics.names():
        assert name.replace("-", "_") in anchors_of("reference/metrics.md")
    kinds = (sc.corruptions, sc.corruptions.tabular, sc.corruptions.text)
    for name in (name for kind in kinds for name in kind.names()):
        assert f"| `{name}` |" in text_of("reference/corruptions.md")
    for field in fields(Record):
        assert f"`{field.name}`" in section_of("reference/file-formats.md", "Run folders")


def test_every_public_name_is_in_the_reference():
    text = "\n".join(text_of(p) for p in PAGES if p.startswith("reference/python/"))
    last = {name.rpartition(".")[2] for name in re.findall(r"^::: shiftcal\.([\w.]+)$", text, re.M)}
    public = {name for name in sc.__all__ if not isinstance(getattr(sc, name), ModuleType)}
    assert public - {"__version__"} <= last
    for registry in (sc.maps, sc.corruptions, sc.adaptation):
        assert {registry.get(name).__name__ for name in registry.names()} <= last


def test_the_commands_are_those_of_the_program():
    generator = script(DOCS / "scripts" / "cli_reference.py")
    text = text_of(GENERATED)
    assert generator.renewed(text) == text, "run docs/scripts/cli_reference.py"


def test_readme_and_home_show_the_committed_results():
    figures = script(DOCS / "figures" / "benchmarks.py")
    for page in figures.SHOWN_ON:
        text = (ROOT / page).read_text("utf-8")
        assert "raw softmax |" in text
        assert figures.renewed(page, text) == text, "run docs/figures/benchmarks.py"


def test_the_readme_is_short():
    prose = re.sub(r"^(\||!\[).*$", "", _FENCE.sub("", text_of("../README.md")), flags=re.MULTILINE)
    assert len(prose.split()) <= 500


def test_the_header_has_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert site()["repo_name"] == f"shiftcal {project['version']}"


@pytest.mark.parametrize("page", sorted(set(PAGES) - {GENERATED}))
def test_pages_and_tables_are_short(page):
    assert len(text_of(page).split()) <= 3000
    tables = re.findall(r"(?:^\|.*\n)+", text_of(page), re.MULTILINE)
    assert all(table.count("\n") <= 2 + 12 for table in tables)


SEARCH = """<script>
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
addEventListener("load", async () => {
  document.querySelector(".md-search__button").click();
  await wait(1000);
  const shadow = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).find((e) => e);
  const input = shadow.querySelector("input");
  input.value = "isotonic";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  await wait(3000);
  document.body.dataset.found = [...shadow.querySelectorAll("a")].map((a) => a.href).join(" ");
});
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_from_a_folder_search_finds_a_heading_and_formulas_are_drawn(tmp_path):
    shutil.copytree(DOCS, tmp_path / "docs")
    (page,) = pages = ["reference/maps.md"]
    config = {**site(), "nav": pages, "plugins": ["search", "offline"]}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(config))
    subprocess.run([ZENSICAL, "build"], cwd=tmp_path, check=True, capture_output=True)
    built = tmp_path / "site" / page.replace(".md", ".html")
    built.write_text(built.read_text("utf-8").replace("</body>", SEARCH), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    options += [f"--user-data-dir={tmp_path / 'home'}", "--virtual-time-budget=10000"]
    command = [CHROMIUM, *options, "--dump-dom", built.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    assert f"{built.as_uri()}?h=isotonic#isotonic" in done.stdout
    assert done.stdout.count('class="katex"') > 30
    assert "http://" not in done.stdout.replace("http://www.w3.org", "")
