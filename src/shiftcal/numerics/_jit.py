"""Kernels compiled by numba on first use, cached on disk where that is possible.

Importing shiftcal must not import numba, and a cache that cannot be written or read (a folder
without permission, a full disk, a damaged file) must cost time at the most, never the result.

A kernel that calls other compiled functions lives in a file whose name ends in ``_kernels``, and so
do they. Such a file imports numba, and is itself imported only inside functions. What it takes from
other files of this package is compiled into the kernel, so the cache is valid for the sources of
all of them; numba by itself looks at the kernel's own file only.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORTED = re.compile(rf"^from ({__name__.partition('.')[0]}\.[\w.]+) import", re.MULTILINE)


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

    dispatcher = numba.njit(function, cache=cache, **{"nogil": True, **options})
    if cache:
        # numba has no public way to say what a cache depends on. Should this one be gone, the
        # error is trouble with the cache like any other.
        dispatcher._cache._cache_file._source_stamp = _sources(function)
    return dispatcher


def _sources(function: Callable[..., Any]) -> str:
    """Hash of the file of a function and of all files of this package that it imports from."""
    found: dict[str, bytes] = {}
    ahead = [function.__code__.co_filename]
    while ahead:
        file = ahead.pop()
        if file not in found:
            found[file] = Path(file).read_bytes()
            names = _IMPORTED.findall(found[file].decode())
            ahead += [str(sys.modules[name].__file__) for name in names if name in sys.modules]
    return hashlib.sha256(b"".join(found[file] for file in sorted(found))).hexdigest()


def to_read(values: NDArray[Any]) -> NDArray[Any]:
    """The same values, contiguous and read-only: one type to numba, however they came.

    Arrays from files are often read-only, and a kernel would be compiled once more for them.
    """
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view
