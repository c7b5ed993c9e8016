"""Loops over parts, and how many threads run them."""

from __future__ import annotations

import os

import pytest

from shiftcal.numerics.jit import in_parts, thread_count


@pytest.mark.parametrize("processors", [1, 3])
@pytest.mark.parametrize(("n", "least"), [(0, 1), (1, 1), (7, 1), (7, 3), (100, 9), (100, 200)])
def test_the_parts_cover_everything_once(monkeypatch, processors, n, least):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(processors), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    seen = [0] * n

    def work(start, stop):
        for i in range(start, stop):
            seen[i] += 1

    in_parts(work, n, least=least)
    assert seen == [1] * n


def test_an_error_in_a_part_is_not_lost(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # with one thread there is one part

    def work(start, stop):
        if start > 0:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_parts(work, 10, least=1)


def test_threads_are_as_many_as_processors_or_as_few_as_asked_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() == 4
    for wanted, given in (("1", 1), ("3", 3), ("9", 4), ("0", 1), ("", 4), ("two", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert thread_count() == given
