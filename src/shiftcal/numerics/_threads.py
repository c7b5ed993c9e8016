"""A loop over independent parts, run by several threads."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# More parts than threads, so that a thread that is interrupted does not keep the others waiting.
_PARTS_PER_THREAD = 4


def in_parts(work: Callable[[int, int], None], n: int, *, least: int) -> None:
    """Call ``work(start, stop)`` on consecutive parts that cover ``0..n``.

    Which part is which, and how many threads there are, must not matter to the result. The parts
    run at the same time only if ``work`` lets go of the interpreter's lock.

    Args:
        work: Called once for each part.
        n: Number of items.
        least: Fewest items worth a part of their own.
    """
    threads = thread_count()
    parts = min(threads * _PARTS_PER_THREAD, n // least)
    if threads == 1 or parts < 2:
        work(0, n)
        return
    ends = [n * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))


@functools.cache
def worker_pool(threads: int) -> ThreadPoolExecutor:
    """So many threads that stay: starting them anew would cost more than a small batch takes."""
    return ThreadPoolExecutor(threads, thread_name_prefix="shiftcal")


if hasattr(os, "register_at_fork"):
    # A child process has none of its parent's threads, and would wait for them forever.
    os.register_at_fork(after_in_child=worker_pool.cache_clear)


def thread_count() -> int:
    """Processors this process may use, or fewer if ``OMP_NUM_THREADS`` says so."""
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, max(1, int(wanted))) if wanted.isdecimal() else available
