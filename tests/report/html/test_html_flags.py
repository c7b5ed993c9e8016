"""Flags on a report: all have a meaning, and are told once."""

from __future__ import annotations

import ast
from pathlib import Path

import shiftcal
from shiftcal._types import Flag
from shiftcal.report.html._flags import MEANINGS, warned

SOURCE = Path(shiftcal.__file__).parent


def codes():
    """The code of every flag that methods and estimators can raise."""
    for folder in ("methods", "estimates", "weighting"):
        for file in (SOURCE / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Flag":
                    yield node.args[0].value


def test_every_flag_has_a_meaning_and_a_remedy():
    assert set(codes()) <= set(MEANINGS)
    for meaning, todo in MEANINGS.values():
        assert meaning.endswith(".")
        assert todo.endswith(".")


def test_a_flag_is_told_once_and_what_concerns_the_conclusion_comes_first():
    raised = {
        "sac": [Flag("not-monotone", "rises"), Flag("outside-range", "below, says sac")],
        "rehearsal": [Flag("outside-range", "below"), Flag("like-clean", "alike")],
        "ace": [Flag("fit", "stuck"), Flag("fit", "stuck")],
        "the estimate": [Flag("outside-range", "below too")],
    }
    found = warned(raised, serious=frozenset({"rehearsal", "the estimate"}))
    assert [note.code for note in found] == ["outside-range", "not-monotone", "like-clean", "fit"]
    first = found[0]
    assert first.serious
    assert first.by == ("rehearsal", "the estimate")
    assert first.messages == ("below", "below too")
    assert [note.serious for note in found[1:]] == [False] * 3
    assert found[-1].messages == ("stuck",)


def test_a_flag_that_nobody_explained_is_shown_all_the_same():
    (note,) = warned({"sac": [Flag("new-code", "something")]}, serious=frozenset())
    assert note.messages == ("something",)
    assert note.meaning
