"""Items made by another thread: order, bounds, errors, and an end that is waited for."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time

import pytest

from shiftcal.scoring.work import ahead, is_unwanted


def threads_of_ours():
    return [thread for thread in threading.enumerate() if thread.name == "shiftcal-ahead"]


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert threads_of_ours() == []


def until(condition):
    """Wait for what another thread brings about."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 100])
def test_items_come_all_and_in_order(n, depth):
    assert list(ahead(range(n), depth=depth)) == list(range(n))


@pytest.mark.parametrize("depth", [1, 3])
def test_no_more_is_made_in_advance_than_was_said(depth):
    made = []

    def items():
        for i in itertools.count():
            made.append(i)
            yield i

    iterator = ahead(items(), depth=depth)
    for taken in range(1, 6):
        next(iterator)
        until(lambda taken=taken: len(made) == taken + depth)
        time.sleep(0.02)  # time to make one too many
        assert len(made) == taken + depth
    iterator.close()
    assert len(made) == 5 + depth


def test_the_next_item_is_made_while_this_one_is_used():
    second = threading.Event()

    def items():
        yield 1
        second.set()
        yield 2

    iterator = ahead(items())
    assert next(iterator) == 1
    assert second.wait(10)  # without asking for it
    assert list(iterator) == [2]


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield from (1, 2, 3)
        raise KeyError("the fourth")

    iterator = ahead(items(), depth=5)
    assert next(iterator) == 1
    until(lambda: threads_of_ours() == [])  # the error is there, but it is not its turn
    assert [next(iterator), next(iterator)] == [2, 3]
    with pytest.raises(KeyError, match="the fourth"):
        next(iterator)


def consume_and_fail():
    for item in ahead(itertools.count()):
        if item == 3:
            raise RuntimeError("of the consumer")


def test_an_error_of_the_consumer_ends_an_endless_maker():
    with pytest.raises(RuntimeError, match="of the consumer"):
        consume_and_fail()
    assert threads_of_ours() == []


def test_the_item_that_is_being_made_is_waited_for():
    finished, begun, go_on = [], threading.Event(), threading.Event()

    def items():
        yield 1
        begun.set()
        assert go_on.wait(10)
        finished.append(2)
        yield 2

    iterator = ahead(items())
    next(iterator)
    assert begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    iterator.close()
    assert finished == [2]


def test_items_that_wait_are_told_when_nobody_wants_them():
    def items():
        yield 1
        while not is_unwanted():
            time.sleep(0.005)

    iterator = ahead(items())
    assert next(iterator) == 1
    iterator.close()
    assert not is_unwanted()


@pytest.mark.skipif(os.name == "nt", reason="Windows interrupts no process by its number")
def test_ctrl_c_while_waiting_for_an_item_is_raised_at_once():
    def items():
        yield 1
        while not is_unwanted():
            time.sleep(0.005)

    iterator = ahead(items())
    assert next(iterator) == 1
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert threads_of_ours() == []
