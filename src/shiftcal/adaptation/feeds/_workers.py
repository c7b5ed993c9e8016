"""Processes that make images ahead of the training."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from typing import Any

from shiftcal._types import Images
from shiftcal.adaptation.feeds._loading import Loader, Order
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.scoring.engines._executors import ctrl_c_held_back, settle
from shiftcal.scoring.engines._joblib import part_of_joblib
from shiftcal.scoring.engines._search_path import extend_search_path, search_path

# One thread each: decoding and resizing have no use for more.
_LIMITS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

# Seconds for a few images; a disk that does not answer is not waited for.
_PATIENCE = 60.0


class Workers:
    """Processes of loky, started afresh, which know nothing of PyTorch and of a GPU.

    Ctrl-C is left to this process, and they end when it is gone.

    Args:
        loader: What they do; each has a copy.
        size: How many.

    Raises:
        InputError: If the images cannot be sent to another process.
    """

    def __init__(self, loader: Loader, size: int) -> None:
        self.size = size
        begin = (os.getpid(), _packed(loader), search_path())
        self._executor = part_of_joblib("loky").ProcessPoolExecutor(
            max_workers=size, initializer=_begin, initargs=begin, env=_LIMITS, timeout=None
        )
        self._started = False
        self._asked: list[Future[Images]] = []  # what may not be done yet

    def ask(self, order: Order) -> Future[Images]:
        """Have an order made; its result is had from :func:`made`."""
        hold = nullcontext() if self._started else ctrl_c_held_back()
        with hold:
            self._started = True
            asked = self._submit(order)
        self._asked = [*(one for one in self._asked if not one.done()), asked]
        return asked

    def close(self) -> None:
        """End the processes, which finish what they were asked for, unless that takes too long."""
        # A thread of loky fails, and never ends, if tasks that wait are cancelled or taken away.
        wait(self._asked, timeout=_PATIENCE)
        self._executor.shutdown(wait=True, kill_workers=True)

    def _submit(self, order: Order) -> Future[Images]:
        try:
            return self._executor.submit(_make, order)
        except BrokenProcessPool as error:
            raise _died(error) from error


def made(future: Future[Images]) -> Images:
    """What came of an order.

    Raises:
        FileError: If an image cannot be read.
        ShiftcalError: If a worker is gone.
    """
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise _died(error) from error


def _died(error: BrokenProcessPool) -> ShiftcalError:
    return ShiftcalError(
        "a worker that reads images died. The likely cause is memory: take fewer workers; with "
        f"workers=0 images are read in this process. {' '.join(str(error).split())}"
    )


def _packed(loader: Loader) -> bytes:
    try:
        return part_of_joblib("cloudpickle").dumps(loader)
    except Exception as error:  # an object that cannot be pickled raises what it likes
        raise InputError(
            "the images must be such that they can be sent to other processes; pickling them "
            f"failed with {type(error).__name__}: {error}. With workers=0 they stay in this one."
        ) from error


# The loader of this process, if it is a worker: first as it was sent.
_HELD: dict[str, Any] = {}


def _begin(parent: int, packed: bytes, paths: Sequence[str]) -> None:
    settle(parent)
    extend_search_path(paths)
    _HELD["packed"] = packed


def _make(order: Order) -> Images:
    # Here and not at the beginning, where what it raises would not be told.
    if "loader" not in _HELD:
        _HELD["loader"] = pickle.loads(_HELD.pop("packed"))
    return _HELD["loader"](order)
