"""The docs say what is there: code runs, names are on their pages, tables equal the results."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import re
from pathlib import Path

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
# Methods that need no model run over mixed images, which the digits experiment has not.
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
def results(name):
    path = ROOT / "benchmarks" / "accuracy" / "results" / f"{name}.json"
    return json.loads(path.read_text("utf-8"))


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


def test_the_site_asks_for_no_font_from_elsewhere():
    assert site()["theme"]["font"] is False


@pytest.mark.parametrize("page", PAGES)
def test_links_inside_the_docs_lead_somewhere(page):
    for target in _LINK.findall(prose_of(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        other = (DOCS / page).parent / name if name else DOCS / page
        assert other.is_file(), f"{page} links to {target}, which does not exist"
        if anchor and other.name != "reference.md":  # its anchors are made from docstrings
            assert anchor in anchors_of(other), f"{page} links to {target}: no such heading"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_one_title(page):
    assert len(re.findall(r"^# ", prose_of(page), re.MULTILINE)) == 1


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


@pytest.mark.parametrize(("page", "name"), PLUGINS)
def test_the_settings_of_a_method_or_map_and_their_defaults_are_those_of_its_class(page, name):
    plugin = (sc.methods if page == "methods.md" else sc.maps).get(name)
    defaults = plugin().get_params()
    assert defaults.pop("input") == "logits"  # said once for all, on top of the page
    assert settings_on(page, name) == defaults


@pytest.mark.parametrize("page", ["methods.md", "maps.md"])
def test_no_table_of_settings_stands_where_nobody_checks_it(page):
    checked = [name for where, name in PLUGINS if where == page and settings_on(page, name)]
    assert len(_SETTINGS.findall(text_of(page))) == len(checked)
    assert 'setting `input`, `"logits"` by default' in text_of(page)


@pytest.mark.parametrize(("page", "name"), PLUGINS)
def test_every_method_and_map_has_a_section_on_its_page(page, name):
    assert slug(name) in anchors_of(page)


@pytest.mark.parametrize("name", sc.metrics.names())
def test_every_metric_has_a_section_and_a_row_in_the_table(name):
    function = name.replace("-", "_")
    assert function in anchors_of("metrics.md")
    assert f"| [`{name}`](#{function})" in text_of("metrics.md")


@pytest.mark.parametrize("name", sc.methods.names())
def test_every_method_has_a_row_in_the_table_of_needs(name):
    assert f"| `{sc.methods.get(name).__name__}` |" in text_of("choose.md")


@pytest.mark.parametrize("name", sc.maps.names())
def test_the_maps_page_says_truly_whether_a_map_keeps_the_predicted_class(name):
    row = next(r for r in text_of("maps.md").splitlines() if r.startswith(f"| [`{name}`]"))
    keeps = row.split("|")[3].strip()
    assert keeps == ("yes" if sc.maps.get(name).preserves_accuracy else "no")


@pytest.mark.parametrize("name", sc.corruptions.names())
def test_every_corruption_has_a_row_that_says_truly_what_kind_it_is(name):
    listed = text_of("corruptions.md").partition("## What they do to a network")[0]
    (row,) = (r for r in listed.splitlines() if r.startswith(f"| `{name}` |"))
    group, random, does, setting = (cell.strip() for cell in row.split("|")[2:6])
    corruption = sc.corruptions.get(name)
    assert group == corruption.group
    assert random == ("yes" if corruption.random else "no")
    assert does
    assert setting


def test_the_corruptions_page_names_those_whose_severity_is_no_order():
    (sentence,) = re.findall(
        r"- Severity is an order of names[^:]*:(.*?)\n\n", text_of("corruptions.md"), re.DOTALL
    )
    named = set(re.findall(r"`(\w+)`", sentence))
    assert named == {n for n in sc.corruptions.names() if not sc.corruptions.get(n).monotone}


def test_the_corruptions_page_says_which_table_a_size_has():
    from shiftcal.corruptions.corruption import table_for

    rows = re.findall(
        r"^\| (\d+)(?: to (\d+)| and more).*? \| `([a-z-]+)` \|$",
        text_of("corruptions.md"),
        re.MULTILINE,
    )
    assert [table for *_, table in rows] == ["cifar", "tiny-imagenet", "imagenet"]
    for least, most, table in rows:
        assert table_for(int(least), 5000) == table
        assert table_for(5000, int(most or 9999)) == table
    assert [int(row[0]) for row in rows] == [8, *(int(row[1]) + 1 for row in rows[:-1])]


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


def test_what_the_corrupt_section_prints_is_what_the_program_prints(tmp_path, monkeypatch, capsys):
    from shiftcal.cli.main import run

    monkeypatch.chdir(tmp_path)
    page = text_of("command-line.md")
    making = next(block for language, block in _FENCE.findall(page) if language == "python")
    exec(compile(making, "docs/command-line.md", "exec"), {"__name__": "__docs__"})
    section = section_of("command-line.md", "`shiftcal corrupt`")
    blocks = [block for language, block in _FENCE.findall(section) if language == "console"]
    assert len(blocks) == 3
    for block in blocks:
        command, _, shown = block.partition("\n")
        words = command.split()
        assert words[:3] == ["$", "shiftcal", "corrupt"]
        capsys.readouterr()
        assert run(words[2:]) == 0
        # A line of three dots stands for lines that were shown before.
        lines = [r"(.*\n)+" if x == "..." else re.escape(x) + r"\n" for x in shown.splitlines()]
        assert re.fullmatch("".join(lines), capsys.readouterr().out), command


@functools.cache
def speed_of_corruptions():
    """The benchmark's module, which sets variables and looks for its sibling when imported."""
    folder = ROOT / "benchmarks" / "speed"
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            patch.setenv(variable, "1")
        patch.syspath_prepend(folder)
        return script(folder / "corruptions.py")


def test_the_corruptions_page_names_those_that_are_slower_image_by_image():
    path = ROOT / "benchmarks" / "speed" / "results" / "corruptions.json"
    found = json.loads(path.read_text("utf-8"))["seconds an image"]
    slower = {
        side: {
            name
            for name, ratio in speed_of_corruptions()
            .ratios(found[side], tool="shiftcal, image by image")
            .items()
            if ratio < 1
        }
        for side in ("32", "224")
    }
    page = " ".join(text_of("corruptions.md").split())
    (sentence,) = re.findall(r"With one image of 32 pixels a call, (.*?) are slower", page)
    assert slower == {"32": set(re.findall(r"`(\w+)`", sentence)), "224": set()}
    for name in slower["32"]:  # "than Albumentations' own"
        times = found["32"][name]
        ours = times["shiftcal, image by image"]
        assert [tool for tool in times if times[tool] < ours and "shiftcal" not in tool] == [
            "albumentations"
        ]
    least = min(times["shiftcal, image by image"] for times in found["32"].values())
    assert 40e-6 <= least < 50e-6  # "some 40 microseconds or more"


def test_every_flag_of_the_source_is_explained():
    source = "\n".join(p.read_text("utf-8") for p in (ROOT / "src").rglob("*.py"))
    raised = set(_FLAG.findall(source))
    explained = set(re.findall(r"^\| `([a-z0-9-]+)` \|", text_of("methods.md"), re.MULTILINE))
    assert len(raised) >= 10
    assert raised <= explained


def test_every_public_name_is_in_the_reference():
    shown = set(re.findall(r"^::: shiftcal\.([\w.]+)$", text_of("reference.md"), re.MULTILINE))
    last = {name.rpartition(".")[2] for name in shown}
    packages = {"__version__", *sc._MODULES} - {"errors"}
    assert set(sc.__all__) - packages <= last
    for registry in (sc.maps, sc.corruptions):
        for name in registry.names():
            assert registry.get(name).__name__ in last


@pytest.mark.parametrize(
    "page",
    [
        *("accuracy.md", "banks.md", "choose.md", "corruptions.md", "metrics.md"),
        *("research.md", "scale.md"),
        *(f"adaptation/{name}.md" for name in (*adaptation.names(), "index")),
    ],
)
def test_tables_equal_the_committed_results(page):
    tables = script(DOCS / "figures" / "tables.py")
    message = "run docs/figures/tables.py"
    assert tables.renewed(text_of(page)) == text_of(page), message


def test_every_figure_of_the_docs_and_the_readme_exists():
    assert (DOCS / "figures" / "overview.svg").is_file()
    for target in _LINK.findall((ROOT / "README.md").read_text("utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (ROOT / target.partition("#")[0]).exists(), f"README links to {target}"


def test_the_picture_of_the_layers_is_drawn_from_the_import_contract_as_it_is():
    layers = script(DOCS / "figures" / "layers.py")
    committed = (DOCS / "figures" / "layers.svg").read_text("utf-8")
    assert layers.drawn() == committed, "run docs/figures/layers.py"
    (alt,) = re.findall(r"!\[(.*)\]\(figures/layers\.svg\)", text_of("design.md"))
    named = [n for row in layers.layers() for n in row if not n.startswith("_")]
    assert [name for name in named if not re.search(rf"\b{name}\b", alt)] == []


def test_docstrings_lose_what_only_another_tool_understands():
    readable = script(DOCS / "docstring_roles.py").readable
    assert (
        readable("a :class:`Bank` or :func:`~shiftcal.metrics.ece`") == "a `Bank` or `metrics.ece`"
    )
    assert readable("plus::\n\n    x") == "plus:\n\n    x"
    assert readable("====  ===\na     b\n====  ===") == "```text\na     b\n```"
