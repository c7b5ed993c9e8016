"""How workers get on together."""

from __future__ import annotations

import threading
import time
from itertools import count

import pytest

from shiftcal.studies.stages import costs
from shiftcal.studies.stages.costs import crowding


@pytest.fixture
def few(monkeypatch):
    """One short piece of work a turn."""
    monkeypatch.setattr(costs, "_SORTS", 1)
    monkeypatch.setattr(costs, "_SORTED", 10)


def test_workers_that_wait_for_one_another_take_longer_by_their_number(few, monkeypatch):
    lock = threading.Lock()

    def alone(_):
        with lock:
            time.sleep(0.02)

    monkeypatch.setattr(costs.np, "sort", alone)
    # Sleeping takes a little longer than asked for, alone and together.
    assert crowding(3) == pytest.approx(3, rel=0.2)


def test_workers_that_do_not_disturb_one_another_take_as_long_as_one(few, monkeypatch):
    monkeypatch.setattr(costs.np, "sort", lambda _: time.sleep(0.05))
    # Threads are handed their work and waited for.
    assert 1 <= crowding(3) < 1.3


def test_it_is_never_faster_together(few, monkeypatch):
    times = count(0, 1)
    shorter = lambda: next(times) ** 0.5  # noqa: E731
    monkeypatch.setattr(costs.time, "perf_counter", shorter)
    assert crowding(2) == 1
