"""What goes to a terminal, to a plain one, and to none: seen by a real pseudo-terminal."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys

import numpy as np
import pytest
from photos import photos

pty = pytest.importorskip("pty")

COMMANDS = {
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


@pytest.mark.parametrize("command", COMMANDS)
def test_no_color_means_no_colour_and_no_bold_letters(here, command):
    status, shown = on_terminal(COMMANDS[command], TERM="xterm-256color", NO_COLOR="1")
    assert status == 0, shown
    assert not [code for code in _STYLES.findall(shown) if code not in ("\x1b[0m", "\x1b[m")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_gets_text_alone_and_stderr_nothing(here, command):
    done = subprocess.run(
        [sys.executable, "-m", "shiftcal", *COMMANDS[command].split()],
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
