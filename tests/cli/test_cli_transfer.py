"""How far a download is, on a terminal and elsewhere."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console
from rich.progress import Progress

from shiftcal.cli import _transfer
from shiftcal.cli._transfer import Bars, Lines, in_bytes, transfer


def test_a_line_comes_now_and_then_with_rate_and_time_left(capsys):
    times = iter([0.0, 1.0, 9.0, 10.0, 19.0, 20.0, 20.0])
    lines = Lines(clock=lambda: next(times))
    for done in (1_000_000, 2_000_000, 3_000_000, 6_000_000, 7_000_000, 11_000_000):
        lines.moved("a.tar", done, 11_000_000)
    lines.moved("b.tar", 5, None)
    lines.note("the line broke")
    assert capsys.readouterr().err.splitlines() == [
        "a.tar: 1.0 MB of 11.0 MB (9 %)",
        "a.tar: 6.0 MB of 11.0 MB (54 %), 500.0 kB/s, 10 s left",
        "a.tar: 11.0 MB of 11.0 MB (100 %), 500.0 kB/s",
        "b.tar: 5 bytes",
        "note: the line broke",
    ]


def test_on_a_terminal_progress_is_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with transfer() as watch:
        assert isinstance(watch, Bars)
        watch.moved("[x].tar", 1_000_000, 4_000_000)
        watch.moved("[x].tar", 4_000_000, 4_000_000)
    shown = capsys.readouterr().err
    assert "[x].tar" in shown
    assert "4.0/4.0 MB" in shown


def test_there_is_one_bar_a_file(capsys):
    with Progress(console=Console(file=io.StringIO())) as progress:
        bars = Bars(progress)
        for doing, done, total in (("a", 1, None), ("a", 2, 4), ("b", 0, 9)):
            bars.moved(doing, done, total)
        bars.note("the line broke")
        assert [(t.completed, t.total) for t in progress.tasks] == [(2, 4), (0, 9)]
    assert "note: the line broke" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (2.5e9, "2.5 GB")]
)
def test_bytes_are_told_in_round_numbers(n, text):
    assert in_bytes(n) == text


def test_without_a_stderr_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(_transfer.sys, "stderr", None)
    with transfer() as watch:
        watch.moved("a", 1, 2)
