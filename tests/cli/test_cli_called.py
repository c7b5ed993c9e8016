"""Commands to go on with work where they are pasted."""

from __future__ import annotations

import sys

import pytest

from shiftcal.cli._called import pasted


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script of an environment that is not activated."""
    file = tmp_path / "bin" / "shiftcal"
    file.parent.mkdir()
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(file)])
    monkeypatch.setenv("PATH", str(tmp_path))
    return file


def test_a_script_that_is_not_on_the_path_is_named_as_it_was_called(script):
    assert pasted(["shiftcal", "doctor"]) == f"{script} doctor"


def test_one_that_is_on_the_path_has_its_short_name(script, monkeypatch):
    monkeypatch.setenv("PATH", str(script.parent))
    assert pasted(["shiftcal", "doctor"]) == "shiftcal doctor"


def test_a_module_that_python_runs_is_called_so_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/shiftcal/__main__.py"])
    assert pasted(["shiftcal", "doctor"]) == f"{sys.executable} -m shiftcal doctor"


def test_inside_another_program_it_has_its_name(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert pasted(["shiftcal", "apply", "my file.json"]) == "shiftcal apply 'my file.json'"
