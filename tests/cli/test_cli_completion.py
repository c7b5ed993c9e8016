"""Completion: what is offered, in the shells themselves too."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shiftcal as sc
from shiftcal.cli._completing import candidates
from shiftcal.cli._completion_values import choices_in
from shiftcal.cli.completion import split_line
from shiftcal.cli.main import program

SCRIPT = Path(sys.executable).with_name("shiftcal")
real_shell = pytest.mark.skipif(not SCRIPT.exists(), reason="the command is not installed")


def offered(line):
    """Words that can follow on a line, whose last one is unfinished."""
    return [each.word for each in candidates(program(), line.split(" "))]


def test_commands_are_completed_with_what_they_do():
    found = {each.word: each.about for each in candidates(program(), ["co"])}
    assert set(found) == {"corrupt", "compare", "completion"}
    assert found["compare"] == "Put every method that the given files allow into one table."
    assert offered("data ") == ["list", "check", "get"]
    assert {"fit", "demo", "data"} <= set(offered(""))


def test_options_are_completed_and_offered_once_unless_they_repeat():
    assert offered("compare --b") == ["--bank", "--bins", "--binning"]
    assert offered("compare --bins 3 --b") == ["--bank", "--binning"]
    assert "--surrogate" in offered("compare --surrogate a.npz --s")
    assert offered("fit --he") == ["--help"]
    assert offered("--ver") == ["--version"]


@pytest.mark.parametrize("command", ["fit", "compare", "card", "report", "monitor"])
def test_names_of_methods_are_those_there_are(command):
    assert offered(f"{command} --method ") == sc.methods.names()
    assert offered(f"{command} --method=sa") == ["--method=sac"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fit --map temp", ["temperature"]),
        ("adapt --method cd", ["cdan"]),
        ("adapt --recipe off", ["office-home"]),
        ("corrupt in out --corruption fog,pix", ["fog,pixelate"]),
        ("bank --severity a", ["all"]),
        ("evaluate x.npz --metric nl", ["nll"]),
        ("evaluate x.npz --binning ", ["size", "width"]),
        ("estimate b t --estimator surr", ["surrogate-curve"]),
        ("estimate b t --estimator mean-confidence:sa", ["mean-confidence:sac"]),
        ("monitor b --estimator no", ["none"]),
        ("bank --engine r", ["ray"]),
        ("data get cifar10-", ["cifar10-1", "cifar10-c"]),
        ("reproduce office", ["office-caltech", "office-home"]),
        ("completion f", ["fish"]),
        # Any file may stand there: that is left to the shell.
        ("compare --bank lad", []),
        ("apply sac", []),
        ("merge a.npz b", []),
        ("evaluate --nothing=x", []),
    ],
)
def test_values_are_completed_where_they_are_a_closed_list(line, expected):
    assert offered(line) == expected


def test_every_option_with_a_closed_list_of_values_offers_it():
    words = {}
    for name, command in program().commands.items():
        for parameter in command.params if not hasattr(command, "commands") else []:
            shown = parameter.metavar or ""
            if parameter.param_type_name == "option" and (shown == "NAME" or choices_in(shown)):
                words[name, parameter.opts[0]] = offered(f"{name} {parameter.opts[0]} ")
    assert len(words) > 30
    # The outputs of a network are not known here.
    assert [key for key, found in words.items() if not found] == [("export", "--output-name")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("shiftcal fit", ["shiftcal", "fit"]),
        ("shiftcal  fit ", ["shiftcal", "fit", ""]),
        ("shiftcal apply 'my file.json' x", ["shiftcal", "apply", "my file.json", "x"]),
        ('shiftcal apply "a b" --gr', ["shiftcal", "apply", "a b", "--gr"]),
        (r"shiftcal apply a\ b ", ["shiftcal", "apply", "a b", ""]),
        ("shiftcal apply 'unfinished na", ["shiftcal", "apply", "unfinished na"]),
        ("", [""]),
    ],
)
def test_a_line_of_bash_is_split_as_bash_does(line, words):
    assert split_line(line) == words


def test_nothing_heavy_is_imported_to_complete():
    code = (
        "import sys\n"
        "from shiftcal.cli.main import run\n"
        "assert run(['completion', 'bash', '--', 'shiftcal fit --method s']) == 0\n"
        "print([n for n in ('numpy', 'scipy', 'sklearn') if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sac\nsts\n", "[]\n")


def test_a_shell_without_a_script_is_refused(refused):
    assert "no shell is called 'bsh' here. Did you mean 'bash'?" in refused("completion bsh")
    assert "There are: bash, zsh, fish." in refused("completion powershell")


def test_what_cannot_be_completed_prints_nothing(shiftcal):
    done = shiftcal("completion zsh -- apply sac")
    assert (done.status, done.out, done.err) == (0, "", "")


def environment():
    return {**os.environ, "PATH": f"{SCRIPT.parent}:{os.environ['PATH']}", "TERM": "dumb"}


def typed(shell, setup, keys, wanted, *, seconds=60):
    """What an interactive shell shows on its terminal until ``wanted`` is there."""
    child, terminal = pty.fork()
    if not child:
        os.execvpe(shell[0], shell, {**environment(), "PS1": "> "})
    shown = ""
    try:
        os.write(terminal, setup.encode() + b"\n")
        deadline = time.monotonic() + seconds
        sent = False
        while time.monotonic() < deadline and not re.search(wanted, shown):
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
            if not sent and re.search(r"^ready", shown, re.MULTILINE):
                os.write(terminal, keys.encode())
                sent = True
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return shown


@real_shell
def test_in_a_real_bash(tmp_path):
    setup = f'cd {tmp_path}; eval "$(shiftcal completion bash)"; echo read""y'
    shown = typed(
        ["bash", "--norc", "--noprofile", "-i"],
        setup,
        "shiftcal fit --method=sa\t",
        "--method=sac ",
    )
    assert "shiftcal fit --method=sac " in shown


@real_shell
def test_bash_falls_back_on_files(tmp_path):
    (tmp_path / "scores-of-monday.npz").touch()
    setup = f'cd {tmp_path}; eval "$(shiftcal completion bash)"; echo read""y'
    shown = typed(["bash", "--norc", "-i"], setup, "shiftcal evaluate sco\t", r"monday\.npz")
    assert "shiftcal evaluate scores-of-monday.npz" in shown


@real_shell
@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_in_a_real_zsh(tmp_path):
    setup = (
        f"cd {tmp_path}; autoload -Uz compinit; compinit -D; "
        'eval "$(shiftcal completion zsh)"; echo read""y'
    )
    shown = typed(["zsh", "-f", "-i"], setup, "shiftcal corrupt --corruption pixe\t", "pixelate")
    assert "pixelate" in shown


@real_shell
@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_in_a_real_fish(tmp_path):
    code = "shiftcal completion fish | source; complete -C 'shiftcal fit --method s'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code],
        env={**environment(), "HOME": str(tmp_path)}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["sac", "sts"], done.stderr
