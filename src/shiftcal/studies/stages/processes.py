"""Work of a study in several processes of this machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def in_processes(
    work: Callable[..., T], tasks: Sequence[tuple[Any, ...]], workers: int
) -> Generator[T]:
    """What comes of tasks, as it comes; closed before the end, what is under way is given up.

    Args:
        work: Given the parts of a task; both can be sent to another process.
        tasks: What is to be done.
        workers: Processes.
    """
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    from shiftcal.scoring.engines._executors import ctrl_c_held_back

    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    with ctrl_c_held_back():  # workers start here; Ctrl-C ends them from this process
        results = parallel(delayed(work)(*task) for task in tasks)
    try:
        for found in results:  # noqa: UP028 (`yield from` would close them, and they would warn)
            yield found
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tasks that are given up: the next run does them
            results.close()
