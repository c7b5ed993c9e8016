"""Streams, exit statuses, help and terminals of the program as a whole."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from photos import photo, photos
from PIL import Image

from shiftcal.cli import output as _tables
from shiftcal.cli.main import app, program
from shiftcal.errors import FileError

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-c", "import sys; from shiftcal.cli.main import run; sys.exit(run())"]

INTERRUPTED = "error: interrupted. Finished work is kept, and no file is left half-written.\n"


def process(*words, **options):
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, check=False, **options
    )


def replaced(monkeypatch, outcome):
    """Make ``shiftcal list`` do ``outcome`` instead."""
    program()
    for info in app.registered_commands:
        if info.name == "list":
            monkeypatch.setattr(info, "callback", outcome)


def test_the_program_from_end_to_end(files):
    words = ["fit", "--method", "ts", "--surrogate", "clean.npz", "-o", "ts.json", "--json"]
    fitted = process(*words)
    assert (fitted.returncode, fitted.stderr) == (0, "")
    assert json.loads(fitted.stdout)["method"] == "ts"
    gate = process("evaluate", "target.npz", "--resamples", "0", "--max-ece", "0", "--json")
    assert gate.returncode == 1
    assert json.loads(gate.stdout)["gate"]["passed"] is False
    assert gate.stderr.startswith("gate failed: ")
    missing = process("apply", "ts.json", "none.npz", "-o", "out.npz", "--json")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("error: none.npz does not exist")


def test_the_script_is_that_module_too_and_its_import_is_light():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"shiftcal": "shiftcal.__main__:main"}
    code = "import sys; from shiftcal.__main__ import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    ours = {name for name in imported if name.startswith("shiftcal")}
    assert ours <= {"shiftcal", "shiftcal.__main__", "shiftcal.lazy"}
    assert not imported & {"typer", "numpy", "typing"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["fit", "--help"]])
def test_a_full_disk_behind_stdout_is_told(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: stdout could not be written: No space left")
    assert done.stderr.count("\n") == 1


def test_a_narrow_encoding_is_no_error():
    done = process("list", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\u0142" in done.stdout or done.stdout.isascii()


def test_an_interrupt_ends_with_130_and_leaves_no_file(files):
    code = (
        "import sys, time\n"
        "from shiftcal.methods.simple import TS\n"
        "def wait(*_): print('waiting', flush=True); time.sleep(60)\n"
        "TS._fit = wait\n"
        "from shiftcal.cli.main import run\n"
        "sys.exit(run())"
    )
    words = ["fit", "--method", "ts", "--surrogate", "clean.npz", "-o", "ts.json"]
    before = sorted(files.iterdir())
    program = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=-1, stderr=-1, text=True
    )
    assert program.stdout.readline() == "waiting\n"
    time.sleep(0.1)
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=300)
    assert program.returncode == 130
    assert err == INTERRUPTED
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "error: there is not enough memory for this. Take fewer rows, or fewer b"),
        (OSError(5, "Input/output error", "x.npz"), "error: x.npz: Input/output error."),
        (PermissionError(13, "Permission denied", "x.npz"), "error: x.npz: Permission denied."),
        (FileError("a\nb \x1b[31m\udc80"), "error: a b \\x1b[31m\\udc80"),
    ],
)
def test_what_is_not_our_mistake_is_status_2_in_one_line(shiftcal, monkeypatch, error, reason):
    def fail():
        raise error

    replaced(monkeypatch, fail)
    done = shiftcal("list")
    assert done.status == 2
    assert done.err.startswith(reason)
    assert done.err.count("\n") == 1


def test_without_a_command_the_help_is_shown_as_an_error(shiftcal):
    done = shiftcal()
    assert (done.status, done.out) == (2, "")
    assert "Usage: shiftcal" in done.err
    assert done.err.endswith("error: no command was given. Choose one of those above.\n")


def test_the_version(shiftcal):
    done = shiftcal("--version")
    assert (done.status, done.out, done.err) == (0, f"shiftcal {version('shiftcal')}\n", "")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


LONG = [["name", "x" * 300], ["[bold]kept[/bold]", "y"]]


def test_a_table_on_a_terminal_folds_and_has_a_bold_header(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = _tables.table(["a", "b"], LONG)
    assert "\x1b[1m" in text
    assert text.count("x") == 300
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in text.splitlines()) <= 60


def test_nothing_of_python_is_changed_by_a_run(shiftcal):
    import warnings

    before = sys.excepthook, warnings.showwarning, list(warnings.filters)
    shiftcal("list")
    assert (sys.excepthook, warnings.showwarning, list(warnings.filters)) == before


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
    heavy = ("numpy", "scipy", "sklearn", "torch", "cv2", "matplotlib", "ray", "rich")
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


pty = pytest.importorskip("pty")

TERMINALS_COMMANDS = {
    "list": "list",
    "corrupt": "corrupt images.npz out --corruption fog,snow",
}
# Colours and weights of letters; movements of the cursor end in other letters.
_STYLES = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def here(files):
    np.savez("images.npz", images=np.concatenate([photos(32, 32)] * 20))
    return files


def variables(**changes):
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, **changes}


def on_terminal(words, **changes):
    """Everything that a terminal is sent by a command, and its status."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "shiftcal", *words.split()],
        stdin=theirs, stdout=theirs, stderr=theirs, env=variables(**changes), close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                some = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not some:
                break
            shown += some
        elif process.poll() is not None:
            break
    os.close(ours)
    return process.wait(), shown.decode("utf-8", "replace")


@pytest.mark.parametrize("command", TERMINALS_COMMANDS)
def test_no_color_means_no_colour_and_no_bold_letters(here, command):
    status, shown = on_terminal(TERMINALS_COMMANDS[command], TERM="xterm-256color", NO_COLOR="1")
    assert status == 0, shown
    assert not [code for code in _STYLES.findall(shown) if code not in ("\x1b[0m", "\x1b[m")]


@pytest.mark.parametrize("command", TERMINALS_COMMANDS)
def test_a_pipe_gets_text_alone_and_stderr_nothing(here, command):
    done = subprocess.run(
        [sys.executable, "-m", "shiftcal", *TERMINALS_COMMANDS[command].split()],
        env=variables(TERM="xterm-256color", FORCE_COLOR="1"),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs a shell and head")
@pytest.mark.parametrize("words", ["list", "--help"])
def test_head_ends_a_command_quietly(words):
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m shiftcal {words} | head -1', sys.executable],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
