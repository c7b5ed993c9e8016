"""The help of every command, and the page of the docs, say all there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from photos import photo, photos
from PIL import Image

from shiftcal.cli.main import program

TOP = program().commands
# By their words, such as "data check".
COMMANDS = {
    " ".join(words): command
    for name, top in TOP.items()
    for words, command in (
        [((name, below), command) for below, command in top.commands.items()]
        if hasattr(top, "commands")
        else [((name,), top)]
    )
}
DOCS = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_the_help_lists_every_command_and_exit_status(shiftcal):
    done = shiftcal("--help")
    assert done.status == 0
    for word in (*TOP, "0", "1", "2", "3", "130"):
        assert re.search(rf"^ +{word} ", done.out, re.MULTILINE)


@pytest.mark.parametrize("group", [(), ("data",)], ids=["shiftcal", "data"])
def test_no_summary_is_cut_in_a_terminal_of_80_columns(shiftcal, monkeypatch, group):
    monkeypatch.setenv("COLUMNS", "80")
    listed = shiftcal(*group, "--help").out.partition("Commands:")[2]
    names = TOP["data"].commands if group else TOP
    for name in names:
        (summary,) = re.findall(rf"^ +{name} +(.+)$", listed, re.MULTILINE)
        assert summary.endswith(".")
        assert not summary.endswith("...")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_says_all(shiftcal, command):
    assert shiftcal(command, "-h").out == shiftcal(command, "--help").out
    text = shiftcal(command, "--help").out
    first_line = COMMANDS[command].help.strip().splitlines()[0]
    assert first_line in text
    assert first_line.endswith(".")
    assert f"Example:\n  shiftcal {command}" in text
    assert "--json" in text
    for parameter in COMMANDS[command].params:
        assert parameter.help, parameter.name


def test_the_examples_of_the_help_are_lines_that_parse(shiftcal):
    for name, command in COMMANDS.items():
        text = shiftcal(name, "--help").out
        example = text.partition("Example:\n")[2].replace("\\\n", " ").split()
        context = command.make_context(name, example[1 + len(name.split()) :])
        assert context.params


def test_the_docs_name_every_command_option_and_status():
    text = DOCS.read_text("utf-8")
    for name, command in COMMANDS.items():
        section = text.partition(f"## `shiftcal {name}`")[2].partition("\n## ")[0]
        assert section, name
        for parameter in command.params:
            for word in parameter.opts:
                if parameter.param_type_name == "option":
                    assert f"`{word}" in section, (name, word)
    for status in (0, 1, 2, 3, 130):
        assert f"| {status} |" in text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("corrupt", "corrupt images.npz out --corruption contrast"),
        ("gallery", "gallery photo.png -o out.png --corruption contrast"),
        ("fit", "fit --method ts --surrogate clean.npz -o ts.json"),
        ("apply", "apply sac.json target.npz -o out.npz"),
        ("evaluate", "evaluate target.npz --resamples 0 --table --max-ece 1"),
        ("compare", "compare --surrogate clean.npz --target target.npz --resamples 0"),
        ("estimate", "estimate clean.npz target.npz"),
        ("list", "list"),
    ],
)
def test_the_docs_name_every_key_of_a_document(fitted, shiftcal_json, command, words):
    np.savez("images.npz", images=photos(16, 16))
    Image.fromarray(photo(16, 16)).save("photo.png")
    text = DOCS.read_text("utf-8")
    section = text.partition(f"## `shiftcal {command}`")[2].partition("\n## ")[0]
    common = text.partition("## JSON")[2]
    for key in shiftcal_json(words):
        assert f"`{key}`" in section or f"`{key}`" in common, key


def test_help_is_quick_to_come():
    heavy = ("numpy", "scipy", "sklearn", "numba", "torch", "cv2", "matplotlib", "ray", "rich")
    code = (
        "import sys\n"
        "from shiftcal.cli.main import run\n"
        "assert run(['fit', '--help']) == 0 and run(['--version']) == 0\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def in_form(text):
    """The words of a line: digits differ between machines, blanks with the width of cells."""
    return re.sub(r"[\d.,]+", "#", " ".join(text.split()))


@pytest.mark.slow
def test_the_outputs_in_the_docs_are_real(tmp_path, monkeypatch, capsys, shiftcal):
    monkeypatch.chdir(tmp_path)
    text = DOCS.read_text("utf-8")
    made = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    exec(made, {})
    blocks = re.findall(r"```console\n\$ shiftcal (.*?)```", text, re.DOTALL)
    assert len(blocks) >= len(COMMANDS)
    for block in blocks:
        command, *shown = re.sub(r"\\\n", " ", block).splitlines()
        done = shiftcal(command)
        printed = [in_form(line) for line in (done.out + done.err).splitlines()]
        for line in shown:
            assert line == "..." or in_form(line) in printed, (command, line)
