"""Matrix products of numpy with one thread, so that their bits do not depend on the number."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

_GUARD = threading.Lock()
_users = 0
_limits: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process until the last who asked for it leaves.

    A product split between threads is added up in another order, and a result must not depend on
    how many workers there are. Other libraries' threads, such as those of torch and onnxruntime,
    are not concerned.
    """
    global _users, _limits  # noqa: PLW0603 (the limit is the process's)
    with _GUARD:
        if _users == 0:
            _limits = threadpool_limits(1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _GUARD:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()
                _limits = None
