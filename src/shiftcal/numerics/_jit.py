"""Kernels compiled by numba on first use, cached on disk where that is possible.

Importing shiftcal must not import numba, and a cache that cannot be written or read (a folder
without permission, a full disk, a damaged file) must cost time at the most, never the result.

A kernel that calls other compiled functions lives with them in a file whose name ends in
``_kernels``. Such a file imports numba, and is itself imported only inside functions.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

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
