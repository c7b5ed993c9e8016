"""Kernels of the compiled module over blocks of rows, on several threads."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shiftcal import _kernels
from shiftcal.types import Labels, Logits, Weights

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager

# What `_native` is compiled to; imported here only.
kernels = _kernels


def kernel_for(name: str, values: NDArray[Any]) -> Callable[..., None]:
    """The compiled kernel of that name for the type of ``values``, float32 or float64."""
    kernel: Callable[..., None] = getattr(kernels, f"{name}_f{values.itemsize}")
    return kernel


# --------------------------------------------------------------------------------------
# A loop over independent parts, run by several threads.
# --------------------------------------------------------------------------------------

# More parts than threads, so that a thread that is interrupted does not keep the others waiting.
_PARTS_PER_THREAD = 4


def in_parts(work: Callable[[int, int], None], n: int, *, least: int) -> None:
    """Call ``work(start, stop)`` on consecutive parts that cover ``0..n``.

    Which part is which, and how many threads there are, must not matter to the result. The parts
    run at the same time only if ``work`` releases the interpreter's lock.

    Args:
        work: Called once for each part.
        n: Number of items.
        least: Fewest items worth a part of their own.
    """
    threads = thread_count() if n >= 2 * least else 1
    if threads == 1:
        work(0, n)
        return
    parts = min(threads * _PARTS_PER_THREAD, n // least)
    ends = [n * i // parts for i in range(parts + 1)]
    share(lambda i: work(ends[i], ends[i + 1]), range(parts), threads=threads)


def share(work: Callable[[int], None], starts: Iterable[int], *, threads: int) -> None:
    """Call ``work(start)`` for all ``starts``, each once, in so many threads.

    This thread is one of them: it takes the next that is left, like the others, and so is not
    woken for every piece of work that another has done. More threads than there are processors are
    not used. If one fails or is interrupted, the others finish their piece, and the first error is
    raised.
    """
    from concurrent.futures import wait

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
    from concurrent.futures import ThreadPoolExecutor

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


def one_blas_thread() -> AbstractContextManager[Any]:
    """Products of numpy with one thread: split between threads their bits depend on the number.

    Many small products are faster that way, too: threads wait for one another after each.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limits: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits


# --------------------------------------------------------------------------------------
# Rows in blocks, so that what is computed from them stays in the processor's cache.
# --------------------------------------------------------------------------------------

# Elements per block of float64: half a megabyte.
_BLOCK = 1 << 16
# The same where little else is held: eight megabytes.
LARGE = 1 << 20


def row_blocks(n: int, k: int, *, size: int = _BLOCK) -> Iterator[slice]:
    """Slices that together cover ``n`` rows of ``k`` columns, in order, of ``size`` numbers."""
    rows = max(1, size // k)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


# --------------------------------------------------------------------------------------
# A compiled pass over labelled logits, block by block and on several threads.
# --------------------------------------------------------------------------------------

# Fewer logits than this are worked on in float64, which then costs nothing worth saving.
SMALL = 1 << 15
# Rows in a block, the unit of a pass. Fixed, so that sums do not depend on the threads.
ROWS = 128
# Logits worth a part of their own.
_PART = 1 << 19


def block_sums(
    name: str,
    beta: float,
    data: tuple[Logits, Labels, Weights | None],
    *,
    columns: int,
    every: int = 1,
) -> tuple[float, NDArray[np.float64]]:
    """``beta`` rounded to the logits' type, and sums over all rows of what a kernel computes.

    Args:
        name: Of the kernel, which takes logits, labels, weights, the inverse temperature, the
            numbers of some blocks, and an array with a row for each of them to fill.
        beta: Inverse temperature times ``log2(e)``.
        data: ``(n, k)`` logits, ``(n,)`` labels, ``(n,)`` weights or ``None``, as
            :func:`kernel_data` gives them.
        columns: Number of sums.
        every: Look at every such block only.
    """
    z, y, weights = data
    w = np.empty(0) if weights is None else weights
    b = float(z.dtype.type(beta))
    blocks = np.arange(0, -(-len(z) // ROWS), every)
    sums = np.empty((len(blocks), columns))
    kernel = kernel_for(name, z)

    def work(start: int, stop: int) -> None:
        kernel(z, y, w, b, blocks[start:stop], sums[start:stop])

    in_parts(work, len(blocks), least=-(-_PART // (ROWS * z.shape[1])))
    return b, sums.sum(axis=0)


def kernel_data(
    logits: Logits, labels: Labels, weights: Weights | None
) -> tuple[Logits, Labels, Weights | None]:
    """The same rows as kernels take them."""
    z = np.ascontiguousarray(logits, np.float64 if logits.size < SMALL else None)
    w = moderate(weights)
    return z, np.ascontiguousarray(labels, np.int64), None if w is None else w.astype(np.float64)


def moderate(weights: Weights | None) -> Weights | None:
    """Weights whose sums can neither overflow nor vanish; only their ratios matter."""
    if weights is None or 1e-100 < weights.max() < 1e100:
        return weights
    return weights / weights.max()
