"""Streams, exit statuses and help of the program as a whole."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

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
