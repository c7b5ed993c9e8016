"""A loop over independent parts, run by several threads."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait

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


def share(work: Callable[[int], None], starts: Iterable[int], *, threads: int) -> None:
    """Call ``work(start)`` for all ``starts``, each once, in so many threads.

    This thread is one of them: it takes the next that is left, like the others, and so is not
    woken for every piece of work that another has done. More threads than there are processors
    are not used. If one fails or is interrupted, the
    others finish what they are at, and the first error is raised.
    """
    left = iter(list(starts))
    stopped = threading.Event()

    def take() -> None:
        try:
            for start in left:  # the iterator of a list gives every item to one thread only
                if stopped.is_set():
                    return
                work(start)
        except BaseException:
            stopped.set()
            raise

    others: list[Future[None]] = []
    try:
        for _ in range(min(threads, os.cpu_count() or 1) - 1):
            others.append(_workers().submit(take))
        take()
    finally:
        stopped.set()
        # One that has not begun is not waited for: it may stand behind other work, or behind this.
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


@functools.cache
def _workers() -> ThreadPoolExecutor:
    """Threads that stay: starting them anew would cost more than a small batch takes."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="shiftcal")


if hasattr(os, "register_at_fork"):
    # A child process has none of its parent's threads, and would wait for them forever.
    os.register_at_fork(after_in_child=_workers.cache_clear)


def thread_count() -> int:
    """Processors this process may use, or fewer if ``OMP_NUM_THREADS`` says so."""
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, max(1, int(wanted))) if wanted.isdecimal() else available
