"""Workers of this machine: processes of loky, or threads; each is an executor of one."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import resource_tracker
from typing import Any

from shiftcal.errors import InputError, ShiftcalError
from shiftcal.scoring.engines._crew import Crew, WorkerDied
from shiftcal.scoring.engines._joblib import part_of_joblib
from shiftcal.scoring.engines._parcel import Parcel, opened
from shiftcal.scoring.engines._search_path import extend_search_path, search_path
from shiftcal.scoring.engines._worker import Worker
from shiftcal.scoring.shard import Shard, ShardResult
from shiftcal.scoring.work import Work

# What the libraries below numpy, torch and others go by when they start.
_LIMITS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA", "NUMEXPR")

# Seconds after which a process looks whether its parent is there.
_LOOK = 1.0


class _Executors(Crew):
    """One executor for every place, so that a worker that dies takes none of the others along.

    Args:
        work: What is done; every worker has a copy of its own.
        size: How many workers.
        threads: How many threads each may use.
    """

    def __init__(self, work: Work, *, size: int, threads: int) -> None:
        self.size = size
        self.threads = threads
        self.parcel = Parcel(work)
        self.executors: dict[int, Any] = {}

    @abstractmethod
    def begin(self, place: int) -> Future[Any]: ...

    @abstractmethod
    def give(self, place: int, shard: Shard) -> Future[Any]: ...

    def wait(self, handles: Sequence[Future[Any]]) -> Future[Any]:
        """The one of them that was asked for first, of those that are done."""
        done, _ = wait(handles, return_when=FIRST_COMPLETED)
        return next(handle for handle in handles if handle in done)

    def result(self, handle: Future[Any]) -> Any:
        """What came of it; a process that is gone has left a broken executor."""
        try:
            return handle.result()
        except BrokenProcessPool as error:
            raise WorkerDied(" ".join(str(error).split())) from error


class Processes(_Executors):
    """Processes, started afresh: what this one has done to its own state does not reach them."""

    def __init__(self, work: Work, *, size: int, threads: int) -> None:
        super().__init__(work, size=size, threads=threads)
        self.paths = search_path()
        self.latest: dict[int, Future[Any]] = {}  # what each was asked for last

    def begin(self, place: int) -> Future[Any]:
        """Start a process, and let it load the work."""
        if place in self.executors:
            self._end(place)
        limits = {f"{name}_NUM_THREADS": str(self.threads) for name in _LIMITS}
        with ctrl_c_held_back():
            self.executors[place] = part_of_joblib("loky").ProcessPoolExecutor(
                max_workers=1,
                initializer=settle,
                initargs=(os.getpid(),),
                env=limits,
                timeout=None,
            )
            self.latest[place] = _submit(
                self.executors[place], _hold, self.parcel.folder, self.threads, self.paths
            )
        return self.latest[place]

    def give(self, place: int, shard: Shard) -> Future[Any]:
        """The process keeps the work; a shard is all that is sent."""
        self.latest[place] = _submit(self.executors[place], _do, shard)
        return self.latest[place]

    def stop(self) -> None:
        """Kill the processes, which have nothing to lose."""
        try:
            for place in self.executors:
                self._end(place)
        finally:
            self.parcel.remove()

    def _end(self, place: int) -> None:
        # A thread of loky fails, with a traceback, at a task that it has yet to send.
        end, latest = time.monotonic() + _LOOK, self.latest.get(place)
        while latest and not (latest.running() or latest.done()) and time.monotonic() < end:
            time.sleep(0.001)
        self.executors[place].shutdown(wait=True, kill_workers=True)


class Threads(_Executors):
    """Threads, each with a copy of the work, since a model need not bear two callers at once."""

    def __init__(self, work: Work, *, size: int, threads: int) -> None:
        super().__init__(work, size=size, threads=threads)
        self.tell = work.tell
        self.workers: dict[int, Worker] = {}
        # Models of PyTorch set this for the whole process, which goes on afterwards.
        self.torch: Any = sys.modules.get("torch")
        self.torch_threads = self.torch and self.torch.get_num_threads()

    def begin(self, place: int) -> Future[Any]:
        """Start a thread, and let it load the work."""
        self.executors[place] = ThreadPoolExecutor(1, thread_name_prefix="shiftcal-worker")
        return self.executors[place].submit(self._hold, place)

    def give(self, place: int, shard: Shard) -> Future[Any]:
        """Its result is that of the thread's own copy."""
        return self.executors[place].submit(self.workers[place].do, shard)

    def stop(self) -> None:
        """Wait for the shards that are being done, since a thread cannot be ended."""
        try:
            for executor in self.executors.values():
                executor.shutdown(wait=True, cancel_futures=True)
            for worker in self.workers.values():
                worker.close()
        finally:
            self.parcel.remove()
            if self.torch is not None:
                self.torch.set_num_threads(self.torch_threads)

    def _hold(self, place: int) -> None:
        work = replace(_loaded(self.parcel.folder), tell=self.tell)
        self.workers[place] = Worker(work, threads=self.threads)


@contextmanager
def ctrl_c_held_back() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach from their first moment on.

    They inherit what this thread blocks, long before they can say themselves what they ignore.
    This process has its Ctrl-C afterwards, or at once through another thread.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # A process that loky starts along with the first worker, and that lets Ctrl-C through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _submit(executor: Executor, *task: Any) -> Future[Any]:
    try:
        return executor.submit(*task)
    except BrokenProcessPool as error:  # it died before it was given anything
        gone: Future[Any] = Future()
        gone.set_exception(error)
        return gone


def _loaded(folder: str) -> Work:
    try:
        return opened(folder)
    except ShiftcalError:
        raise
    except (
        Exception,
        SystemExit,
    ) as error:  # whatever the constructors of the user's classes raise
        raise InputError(
            "the model and the images must be such that another process can load them; that "
            f"failed with {type(error).__name__}: {error}. With one local worker they stay in "
            "this one."
        ) from error


# The worker of this process, if it is one.
_HELD: dict[str, Worker] = {}


def settle(parent: int) -> None:
    """Leave Ctrl-C to the parent, end when it is gone, and grow without being ended for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name != "nt":  # where a process is told the number of its parent even when that is gone
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    # loky replaces processes that grow by 300 MB, but these keep images and a model on purpose.
    part_of_joblib("loky.process_executor")._USE_PSUTIL = False


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


def _hold(folder: str, threads: int, paths: Sequence[str]) -> None:
    extend_search_path(paths)
    _HELD["worker"] = Worker(_loaded(folder), threads=threads)


def _do(shard: Shard) -> ShardResult:
    return _HELD["worker"].do(shard)
