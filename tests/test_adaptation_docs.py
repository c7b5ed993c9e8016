"""The pages about domain adaptation: options are those of the code, outputs are real."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from shiftcal import adaptation
from shiftcal.cli.main import run
from shiftcal.models.pytorch import torch_threads as cpu_threads

DOCS = Path(__file__).resolve().parents[1] / "docs" / "adaptation"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(\w+)` \| `(.+?)` \| \S.* \|$", re.MULTILINE)


def text_of(page):
    return (DOCS / page).read_text("utf-8")


def table_of(page, head):
    """Name -> default, of the rows of the table with this head."""
    rows = text_of(page).partition(f"| {head} | default | meaning |\n")[2].partition("\n\n")[0]
    return {name: ast.literal_eval(default) for name, default in _ROW.findall(rows)}


@pytest.mark.parametrize("name", adaptation.names())
def test_the_options_of_a_trainer_and_their_defaults_are_those_of_its_class(name):
    defaults = {field.name: field.default for field in fields(adaptation.get(name))}
    assert table_of(f"{name}.md", "option") == defaults


def test_the_settings_and_their_defaults_are_those_of_a_training():
    assert table_of("index.md", "setting") == adaptation.Settings().to_dict()


@pytest.mark.parametrize("name", adaptation.names())
def test_every_trainer_has_a_page_and_a_row_in_the_table_of_trainers(name):
    assert text_of(f"{name}.md").startswith(f"# {name}\n")
    assert f"| [`{name}`]({name}.md) |" in text_of("index.md")


def in_form(text):
    """The words of a line: digits differ between machines, blanks with the width of cells."""
    return re.sub(r"[\d.,]+", "#", " ".join(text.split()))


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.md", "calibrate.md"])
def test_the_outputs_of_a_page_are_real(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = _FENCE.findall(text_of(page))
    commands = [block for language, block in blocks if language == "console"]
    assert commands
    code = "\n".join(block for language, block in blocks if language == "python")
    with cpu_threads(1):
        exec(compile(code, page, "exec"), {"__name__": "__docs__"})
        for block in commands:
            for one in block.removeprefix("$ ").split("\n$ "):
                command, *shown = one.splitlines()
                capsys.readouterr()
                assert run(shlex.split(command)[1:]) == 0
                printed = {in_form(line) for line in capsys.readouterr().out.splitlines()}
                for line in shown:
                    assert line == "..." or in_form(line) in printed, (command, line)
