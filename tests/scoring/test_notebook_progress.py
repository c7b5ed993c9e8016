"""Progress in a notebook, which has neither a terminal nor, perhaps, widgets."""

from __future__ import annotations

import builtins
import re

import pytest

from shiftcal.scoring.run import showing


class ZMQInteractiveShell:
    """What the shell of a notebook is called; it is known by its name."""


@pytest.fixture
def _notebook(monkeypatch):
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)


@pytest.mark.usefixtures("_notebook")
def test_by_default_nothing_is_shown(capsys):
    with showing("scoring", 30) as step:
        step(30, kept=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("_notebook")
def test_a_bar_that_was_asked_for_is_one_line_that_is_written_anew(capsys):
    with showing("scoring", 30, shown=True) as step:  # rich's wish for widgets would be an error
        for _ in range(3):
            step(10, kept=False)
    out, text = capsys.readouterr()
    assert out == ""
    assert "30/30" in text
    assert text.count("\n") == 1
    # A notebook knows no way up: nothing but the line itself is erased.
    assert not re.search(r"\x1b\[\d*A", text)
    # Notebooks have a colour of their own behind it, on which ours may not be seen.
    assert not re.search(r"\x1b\[[\d;]*3\d", text)
