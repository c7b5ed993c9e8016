"""Progress: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

from shiftcal.scoring.run import Pace, showing


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_what_was_kept_does_not_count_for_the_rate():
    clock = Clock()
    pace = Pace(1000, clock=clock)
    assert str(pace) == "0 of 1,000 images"
    pace.add(500, kept=True)
    clock.now += 10
    assert str(pace) == "500 of 1,000 images"
    pace.add(100, kept=False)
    assert pace.rate == 10
    assert str(pace) == "600 of 1,000 images, 10 images/s, 0:40 left"


def test_no_time_left_is_told_before_two_percent_or_ten_seconds_of_work():
    clock = Clock()
    pace = Pace(2440, unit="evaluations", clock=clock)
    clock.now += 46  # until the workers have started
    pace.add(8, kept=False)
    assert str(pace) == "8 of 2,440 evaluations"
    pace.add(40, kept=False)
    assert str(pace) == "48 of 2,440 evaluations"
    pace.add(1, kept=False)  # 2 %
    assert str(pace) == "49 of 2,440 evaluations, 1.1 evaluations/s, 37:25 left"


def test_lines_come_at_most_every_15_seconds():
    clock, lines = Clock(), []
    with showing("scoring", 600, shown=False, line=lambda t: lines.append((clock.now, t)),
                 clock=clock) as step:  # fmt: skip
        for _ in range(60):
            clock.now += 1
            step(10, kept=False)
    assert [when for when, _ in lines] == [115, 130, 145, 160]
    assert lines[0][1] == "scoring: 150 of 600 images, 10 images/s, 0:45 left"


CODE = """
import time
from shiftcal.scoring.run import showing
with showing("scoring [bold]cats[/bold]", 3000, line=print) as step:
    for _ in range(3):
        time.sleep(0.15)
        step(1000, kept=False)
"""


def test_a_terminal_gets_a_bar_with_rate_and_time_left():
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", CODE],
        stderr=slave,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1"},
    ) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        printed = process.stdout.read()
    os.close(master)
    shown = text.decode()
    assert process.returncode == 0
    assert printed == b""
    assert "scoring [bold]cats[/bold]" in shown
    assert "3000/3000" in shown
    assert re.search(r"[\d,]+ images/s, 0:00 left", shown)
