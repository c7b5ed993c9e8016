"""Streams, exit statuses, help and terminals of the program as a whole."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from shiftcal.cli.main import app, program
from shiftcal.errors import FileError

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-c", "import sys; from shiftcal.cli.main import run; sys.exit(run())"]

INTERRUPTED = "error: interrupted. Finished work is kept, and no file is left half-written.\n"


def replaced(monkeypatch, outcome):
    """Make ``shiftcal list`` do ``outcome`` instead."""
    program()
    for info in app.registered_commands:
        if info.name == "list":
            monkeypatch.setattr(info, "callback", outcome)


def test_the_script_is_that_module_too_and_its_import_is_light():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"shiftcal": "shiftcal.__main__:main"}
    code = "import sys; from shiftcal.__main__ import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    ours = {name for name in imported if name.startswith("shiftcal")}
    assert ours <= {"shiftcal", "shiftcal.__main__", "shiftcal.lazy"}
    assert not imported & {"typer", "numpy"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_told():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "fit", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: stdout could not be written: No space left")
    assert done.stderr.count("\n") == 1


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


def test_the_help_is_in_panels_and_shows_no_types_or_ranges(shiftcal):
    top = shiftcal("--help").out
    panels = re.findall(r"^(\w+):\n((?:  .+\n)+)", top, re.MULTILINE)
    named = {panel: re.findall(r"^  ([a-z]+) ", text, re.MULTILINE) for panel, text in panels}
    assert list(named)[:5] == ["Start", "Calibrate", "Production", "Images", "Research"]
    assert sorted(name for names in named.values() for name in names) == sorted(TOP)
    assert max(map(len, top.splitlines())) <= 80
    for command in COMMANDS:
        text = shiftcal(command, "--help").out
        assert not re.search(r"<list|<path|<str|x>=|\{[A-Z]", text), command
    assert "Workers and clusters:\n  --engine local|ray" in shiftcal("score --help").out
    assert "[OPTIONS] METHOD.json [TARGET]" in shiftcal("apply --help").out
    assert "  --method NAME " in shiftcal("fit --help").out


def test_quiet_prints_errors_only_and_verbose_times_and_tracebacks(files, shiftcal):
    few = "fit --method sac --surrogate clean.npz -o sac.json"
    assert "warning: " in shiftcal(few).err
    done = shiftcal(few, "-q")
    assert (done.status, done.err) == (0, "")
    assert shiftcal("evaluate missing.npz -q").err.startswith("error: ")
    assert re.search(r"^note: fitting sac: \d+\.\d s$", shiftcal(few, "-v").err, re.MULTILINE)
    told = shiftcal("evaluate missing.npz -v").err
    assert told.startswith("Traceback")
    assert told.splitlines()[-1].startswith("error: ")


def test_the_examples_of_the_help_are_lines_that_parse(shiftcal):
    for name, command in COMMANDS.items():
        text = shiftcal(name, "--help").out
        example = text.partition("Example:\n")[2].replace("\\\n", " ").split()
        context = command.make_context(name, example[1 + len(name.split()) :])
        assert context.params


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


pty = pytest.importorskip("pty")


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


@pytest.mark.parametrize("no_color", [True, False])
def test_a_header_is_bold_on_a_terminal_unless_no_color_is_set(no_color):
    changes = {"NO_COLOR": "1"} if no_color else {}
    status, shown = on_terminal("list", TERM="xterm-256color", **changes)
    assert status == 0, shown
    assert ("\x1b[1m" in shown) is not no_color


def test_a_bar_has_rate_and_time_left_and_vanishes(files):
    bank = "--surrogate clean.npz --surrogate s1.npz --surrogate s2.npz --target target.npz"
    status, shown = on_terminal(f"compare {bank}", TERM="xterm-256color", COLUMNS="120")
    assert status == 0, shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"comparing \d+ methods", plain)
    assert re.search(r"done .*\d/\d+ .*[\d.]+/s, 0?:?\d+:\d\d left", plain)
    assert "comparing" not in on_terminal(f"compare -q {bank}", TERM="xterm-256color")[1]


@pytest.mark.skipif(os.name == "nt", reason="needs a shell and head")
@pytest.mark.parametrize("words", ["list", "--help"])
def test_head_ends_a_command_quietly(words):
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m shiftcal {words} | head -1', sys.executable],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
