"""Kernels compiled by numba on first use, cached on disk, and run over blocks of rows."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftcal.types import Labels, Logits, Weights

# --------------------------------------------------------------------------------------
# Kernels compiled by numba on first use, cached on disk where that is possible.
#
# Importing shiftcal must not import numba, and a cache that cannot be written or read (a folder
# without permission, a full disk, a damaged file) must cost time at the most, never the result.
#
# A kernel that calls other compiled functions lives in a file whose name ends in ``_kernels``, and
# so do they. Such a file imports numba, and is itself imported only inside functions. numba notices
# changes of the kernel's own file; after a change elsewhere, delete ``__pycache__``.
# --------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba at its first call, which may come from several threads.

    Options go to ``numba.njit``; ``nogil`` is on unless said otherwise. The function must not
    raise: an error is taken for trouble with the cache, and it is called once more without one.
    """

    def decorate(function: Function) -> Function:
        lock = threading.Lock()
        kernels: dict[str, Any] = {}

        def kernel(kind: str) -> Any:
            with lock:
                if kind not in kernels:
                    kernels[kind] = _compile(function, cache=kind == "cached", **options)
                return kernels[kind]

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            if "uncached" not in kernels:
                try:
                    return kernel("cached")(*args)
                except Exception:  # numba lets through whatever the file system or pickle raise
                    pass
            return kernel("uncached")(*args)

        return call  # type: ignore[return-value]

    return decorate


def _compile(function: Callable[..., Any], *, cache: bool, **options: Any) -> Any:
    import numba

    return numba.njit(function, cache=cache, **{"nogil": True, **options})


def to_read(values: NDArray[Any]) -> NDArray[Any]:
    """The same values, contiguous and read-only: one type to numba, however they came.

    Arrays from files are often read-only, and a kernel would be compiled once more for them.
    """
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


# --------------------------------------------------------------------------------------
# A loop over independent parts, run by several threads.
# --------------------------------------------------------------------------------------

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
    """Threads that stay: starting new ones would cost more than a small batch takes."""
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


# --------------------------------------------------------------------------------------
# Rows in blocks, so that what is computed from them stays in the processor's cache.
# --------------------------------------------------------------------------------------

# Elements per block of float64: half a megabyte.
_BLOCK = 1 << 16


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Slices that together cover ``n`` rows of ``k`` columns, in order."""
    rows = max(1, _BLOCK // k)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


# --------------------------------------------------------------------------------------
# A compiled pass over labelled logits, block by block and on several threads.
# --------------------------------------------------------------------------------------

# Below this many logits the work takes milliseconds in numpy; numba's import alone takes half a
# second, which is what a small job on the command line would notice.
SMALL = 1 << 15
# Rows in a block, the unit of a pass. Fixed, so that sums do not depend on the threads.
ROWS = 128
# Logits worth a part of their own.
_PART = 1 << 19


def block_sums(
    kernel: Callable[..., None],
    b: np.floating[Any],
    data: tuple[Logits, Labels, Weights | None],
    *,
    columns: int,
    every: int = 1,
) -> NDArray[np.float64]:
    """Sums over all rows of what ``kernel`` computes for each block.

    Args:
        kernel: Takes logits, labels, weights, ``b``, the numbers of some blocks, and an array of
            a row for each of them to fill.
        b: Inverse temperature in the kernel's units and in the logits' type.
        data: ``(n, k)`` logits, ``(n,)`` labels, ``(n,)`` weights or ``None``.
        columns: Number of sums.
        every: Look at every such block only.
    """
    logits, labels, weights = data
    z, y = to_read(logits), to_read(labels)
    w = to_read(np.empty(0) if weights is None else weights)
    blocks = np.arange(0, -(-len(z) // ROWS), every)
    sums = np.empty((len(blocks), columns))

    def work(start: int, stop: int) -> None:
        kernel(z, y, w, b, blocks[start:stop], sums[start:stop])

    in_parts(work, len(blocks), least=-(-_PART // (ROWS * z.shape[1])))
    return sums.sum(axis=0)


def moderate(weights: Weights | None) -> Weights | None:
    """Weights whose sums can neither overflow nor vanish; only their ratios matter."""
    if weights is None or 1e-100 < weights.max() < 1e100:
        return weights
    return weights / weights.max()
