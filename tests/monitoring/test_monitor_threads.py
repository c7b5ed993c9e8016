"""One monitor, several threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from monitored import monitor, rows

from shiftcal import load

THREADS, BATCHES, SIZE = 4, 40, 37


def test_no_row_is_lost_and_the_result_is_that_of_some_order():
    watch = monitor("sac", rows=200, blocks=5)
    barrier = threading.Barrier(THREADS)
    parts = [
        [rows(SIZE, 1.3 - 0.2 * thread, seed=100 * thread + b) for b in range(BATCHES)]
        for thread in range(THREADS)
    ]

    def work(thread):
        barrier.wait()
        return [(part, watch.feed(part)) for part in parts[thread]]

    with ThreadPoolExecutor(THREADS) as pool:
        done = [pair for found in pool.map(work, range(THREADS)) for pair in found]
    assert watch.rows == THREADS * BATCHES * SIZE
    # rows so far tell the order in which they were taken
    done.sort(key=lambda pair: pair[1].rows)
    assert [u.rows for _, u in done] == list(range(SIZE, watch.rows + 1, SIZE))
    again = monitor("sac", rows=200, blocks=5)
    for part, update in done:
        serial = again.feed(part)
        np.testing.assert_array_equal(serial.confidence, update.confidence)
        assert serial.events == update.events
        assert serial.selection == update.selection
    assert again.state_dict() == watch.state_dict()


def test_a_state_taken_while_another_thread_feeds_is_one_between_two_batches(tmp_path):
    watch = monitor("sac", rows=200, blocks=5)
    batches = [rows(SIZE, seed=b) for b in range(200)]
    known = {}
    again = monitor("sac", rows=200, blocks=5)
    known[0] = again.state_dict()
    for batch in batches:
        again.feed(batch)
        known[again.rows] = again.state_dict()
    stop = threading.Event()
    taken = []

    def take():
        while not stop.is_set():
            taken.append(watch.state_dict())
            if len(taken) % 10 == 1:
                watch.save(tmp_path / "monitor.json")
                taken.append(load(tmp_path / "monitor.json").state_dict())

    other = threading.Thread(target=take)
    other.start()
    for number, batch in enumerate(batches):
        watch.feed(batch)
        while len(taken) < number // 5:
            time.sleep(0.001)  # or all would be fed before the first is taken
    stop.set()
    other.join()
    assert len({state["running"]["rows"] for state in taken}) > 3
    assert all(state == known[state["running"]["rows"]] for state in taken)
