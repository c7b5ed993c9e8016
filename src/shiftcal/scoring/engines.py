"""Where shards are scored: this process, several processes, or a Ray cluster."""

from __future__ import annotations

import copy
import inspect
import logging
import os
import pickle
import queue
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import chain
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from shiftcal.checks import check_count, check_not_negative
from shiftcal.errors import InputError, ShiftcalError, require
from shiftcal.numerics.jit import thread_count
from shiftcal.registry import ENGINES

if TYPE_CHECKING:
    from shiftcal.scoring.shards import Job, Shard, ShardResult

T = TypeVar("T")
R = TypeVar("R")

# A task that has ended so many workers would end the next one too.
MOST_DEATHS = 3
# Variables that numerical libraries read when they start.
_LIMITS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA", "NUMEXPR")


class Engine(ABC):
    """Where the work is done.

    Attributes:
        name: Name on the command line.
    """

    name: ClassVar[str]

    @abstractmethod
    def map_shards(self, work: Job, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results of all shards, in any order, each as soon as it is finished.

        A result depends on ``work`` and the shard alone, to the bit, wherever it is computed
        (unless the arithmetic of the model itself depends on the number of threads or the
        processor). ``shards`` is consumed no further than there are workers. If a worker dies, its
        shard is done again; if the model raises, the iteration ends with that error.

        Args:
            work: Called with shards, it gives their results; sent to every worker once.
            shards: The shards.
        """


def engine_of(name: str | Engine, **settings: object) -> Engine:
    """The engine of that name; an engine object is returned as it is.

    Args:
        name: ``"local"`` or ``"ray"``.
        **settings: Of that engine, such as ``workers`` or ``address``; ``None`` is the default.
    """
    if isinstance(name, Engine):
        return name
    made = ENGINES.get(name)
    chosen = {key: value for key, value in settings.items() if value is not None}
    accepted = inspect.signature(made).parameters
    for key in chosen:
        if key not in accepted:
            raise InputError(
                f"{key} must be left out for the {name} engine, which takes "
                f"{', '.join(accepted)}. Use engine ray for others."
            )
    engine: Engine = made(**chosen)
    return engine


class LocalEngine(Engine):
    """Workers on this machine.

    One worker is this process itself: images are prepared while the model runs, and both use all
    processors. Several are processes that share the processors, which pays for models that use
    only one; each has its own copy of the model and of images in memory, while those of an
    ``.npy`` file are mapped. A worker that is killed, for example for lack of memory, is replaced.

    Args:
        workers: How many; no more are started than there are shards.
    """

    name: ClassVar[str] = "local"

    def __init__(self, *, workers: int = 1) -> None:
        self.workers = check_count(workers, name="workers")

    def map_shards(self, work: Job, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results as they come, in the order of the shards if there is one worker."""
        if self.workers == 1:
            return work(shards)
        threads = max(1, thread_count() // self.workers)
        return in_processes(_Scorer(work, threads), shards, self.workers)


class _Scorer:
    """A job for a worker with so many threads, called with one shard."""

    def __init__(self, job: Job, threads: int) -> None:
        self._job = copy.copy(job)
        self._job.threads = threads

    def __call__(self, shard: Shard) -> ShardResult:
        (result,) = self._job([shard])
        return result


# Workers: each is a thread here that waits for a process, which may die.


class WorkerDied(Exception):
    """A worker ended before its task was finished."""


class _Worker(ABC):
    """A process that does one task at a time, started for the first and again after a death."""

    def __init__(self) -> None:
        self._process: Any = None
        self._stopped = False
        self._guard = threading.Lock()

    def do(self, task: Any) -> Any:
        """The result of a task; raises what the task raises."""
        death: object = "it was stopped"
        for _ in range(MOST_DEATHS):
            with self._guard:
                if self._stopped:
                    break
                process = self._process = self._process or self._start()
            try:
                answer = self._answer(process, task)
            except WorkerDied as error:
                self.kill()
                death = error
                continue
            if isinstance(answer, BaseException):
                raise answer
            return answer
        raise ShiftcalError(
            f"{MOST_DEATHS} workers died at {getattr(task, 'name', 'one task')}. The likely cause "
            f"is memory: use fewer workers or a smaller batch size. The last one: {death}"
        )

    def stop(self) -> None:
        """End the process and start no other."""
        self._stopped = True
        self.kill()

    def kill(self) -> None:
        """End the process, if there is one."""
        with self._guard:
            process, self._process = self._process, None
            if process is not None:
                self._end(process)

    @abstractmethod
    def _start(self) -> Any:
        """A new process."""

    @abstractmethod
    def _answer(self, process: Any, task: Any) -> Any:
        """The result or the error of a task; raises WorkerDied."""

    @abstractmethod
    def _end(self, process: Any) -> None:
        """End a process, whatever it does."""


def _results(start: Callable[[], _Worker], size: int, tasks: Iterable[T]) -> Iterator[Any]:
    """Results as they come; a task is taken when a worker is free for it."""
    rest = iter(tasks)
    workers: list[_Worker] = []
    busy: dict[Future[Any], _Worker] = {}
    pool = ThreadPoolExecutor(size, thread_name_prefix="shiftcal-worker")
    try:
        while len(workers) < size and (task := next(rest, None)) is not None:
            workers.append(start())
            busy[pool.submit(workers[-1].do, task)] = workers[-1]
        while busy:
            done = next(iter(wait(busy, return_when=FIRST_COMPLETED).done))
            worker = busy.pop(done)
            result = done.result()
            if (task := next(rest, None)) is not None:
                busy[pool.submit(worker.do, task)] = worker
            yield result
    finally:
        for worker in workers:
            worker.stop()
        pool.shutdown(cancel_futures=True)


def _packed(work: object) -> bytes:
    """The pickled work, with functions of a script or notebook by value."""
    from joblib import wrap_non_picklable_objects  # type: ignore[import-untyped]

    try:
        return pickle.dumps(wrap_non_picklable_objects(work, keep_wrapper=False))
    except Exception as error:  # user objects raise anything here
        raise InputError(
            "the model and the images must be picklable to reach other processes; that failed "
            f"with {type(error).__name__}: {error}. With one local worker they stay in this one."
        ) from error


def _unpacked(sent: bytes) -> Any:
    try:
        return pickle.loads(sent)
    except ShiftcalError:
        raise
    except (Exception, SystemExit) as error:  # constructors of user classes raise anything
        raise InputError(
            "the model and the images must be such that a worker can load them, from files and "
            f"modules that its machine has too; that failed with {type(error).__name__}: {error}. "
            "With one local worker they stay in this process."
        ) from None


def in_processes(work: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[R]:
    """Results of ``work`` for each task, as they come, from processes on this machine.

    They import what this process can, except from the current folder: a file ``numpy.py`` among
    the data must not run. Modules that were already imported from there are the exception.

    Args:
        work: Sent to every process once.
        tasks: A task is taken when a process is free for it.
        workers: Processes; numerical libraries in them share the processors.
    """
    rest = iter(tasks)
    first = next(rest, None)
    if first is None:
        return
    paths, here = import_path()
    threads = str(max(1, thread_count() // workers))
    limits = {f"{name}_NUM_THREADS": threads for name in _LIMITS}
    safe = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}
    environment, greeting = {**os.environ, **limits, **safe}, pickle.dumps((here, _packed(work)))
    yield from _results(lambda: _Process(environment, greeting), workers, chain([first], rest))


class _Process(_Worker):
    """A Python process that has the work, gets tasks on stdin and answers on stdout."""

    def __init__(self, environment: dict[str, str], greeting: bytes) -> None:
        super().__init__()
        self._environment, self._greeting = environment, greeting

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for this process only
        )
        self._unsent = self._greeting
        return process

    def _answer(self, process: subprocess.Popen[bytes], task: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self._unsent + pickle.dumps(task))
            process.stdin.flush()
            self._unsent = b""
            return pickle.load(process.stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise WorkerDied(f"it ended with status {process.poll()}") from error

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError, ValueError):
                pipe.close()  # type: ignore[union-attr]


def serve() -> None:
    """What a worker process runs: tasks from stdin, results to stdout."""
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints must not get between the results
    here, sent = pickle.load(incoming)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def receive() -> None:
        with suppress(EOFError):
            while True:
                tasks.put(pickle.load(incoming))
        os._exit(0)  # the process that sent them has ended

    threading.Thread(target=receive, daemon=True).start()
    sys.path += here
    work = None
    while True:
        task = tasks.get()
        try:
            work = work or _unpacked(sent)
            answer = work(task)
        except (Exception, SystemExit) as error:
            answer = _portable(error)
        pickle.dump(answer, outgoing)
        outgoing.flush()


def _portable(error: BaseException) -> ShiftcalError:
    """An error that can be sent to another process."""
    if isinstance(error, ShiftcalError):
        return error
    return ShiftcalError(f"{type(error).__name__} in a worker: {error}")


def import_path() -> tuple[list[str], list[str]]:
    """Folders that workers import from, and the current folder if modules came from it."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return [folder for folder in sys.path if folder], []
    folders = [str(Path(folder).absolute()) for folder in sys.path if folder]
    used = False
    for name, module in list(sys.modules.items()):
        places = getattr(module, "__path__", None) or [getattr(module, "__file__", None)]
        if "." not in name and name != "__main__":
            used |= any(isinstance(place, str) and Path(place).parent == here for place in places)
    return [folder for folder in folders if folder != str(here)], [str(here)] if used else []


# A Ray cluster, or a Ray started for this run on this machine.


class _Actor:
    """A worker in a process of the cluster.

    Args:
        sent: The pickled work.
        paths: Folders that the process which sent it imports from.
        folder: Its current folder, for relative paths.
    """

    def __init__(self, sent: bytes, paths: list[str], folder: str) -> None:
        self._sent = sent
        self._work: Any = None
        sys.path += [path for path in paths if path not in sys.path and Path(path).exists()]
        with suppress(OSError):  # another machine need not have it
            os.chdir(folder)

    def do(self, task: Any) -> Any:
        """The result of a task, or its error."""
        try:
            self._work = self._work or _unpacked(self._sent)
            return self._work(task)
        except (Exception, SystemExit) as error:
            return _portable(error)


class _RayWorker(_Worker):
    def __init__(self, ray: Any, start: Callable[[], Any]) -> None:
        super().__init__()
        self._ray, self._actor = ray, start

    def _start(self) -> Any:
        return self._actor()

    def _answer(self, process: Any, task: Any) -> Any:
        errors = self._ray.exceptions
        try:
            # A copy: arrays that come are in the store of the cluster, and would keep it full.
            return copy.deepcopy(self._ray.get(process.do.remote(task)))
        except (errors.RayActorError, errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            raise WorkerDied(" ".join(str(error).split())) from error

    def _end(self, process: Any) -> None:
        self._ray.kill(process, no_restart=True)


class RayEngine(Engine):
    """Workers that are Ray actors, each of which holds the model.

    If this process has called ``ray.init`` already, that Ray is used and left as it is; Ray then
    lets workers import from the current folder unless its ``runtime_env`` has a ``working_dir``.
    Results come back to this process: workers need no common disk, but files that the model and
    the images are loaded from must be there for them too.

    Args:
        address: Of a running cluster, such as ``"10.0.0.1:6379"`` or ``"auto"``; it is left
            running. ``None`` starts a Ray on this machine and ends it afterwards.
        workers: How many; by default as many as the cluster has room for.
        cpus_per_worker: Processors per worker.
        gpus_per_worker: GPUs per worker; 0.5 lets two share one.
    """

    name: ClassVar[str] = "ray"

    def __init__(
        self,
        *,
        address: str | None = None,
        workers: int | None = None,
        cpus_per_worker: float = 1,
        gpus_per_worker: float = 0,
    ) -> None:
        require("ray", extra="ray", needed_by="the Ray engine")
        self.address = address
        self.workers = None if workers is None else check_count(workers, name="workers")
        self.cpus = check_not_negative(cpus_per_worker, name="cpus_per_worker")
        self.gpus = check_not_negative(gpus_per_worker, name="gpus_per_worker")
        for name, share in (("cpus_per_worker", self.cpus), ("gpus_per_worker", self.gpus)):
            if share > 1 and share % 1:
                raise InputError(f"{name} must be a whole number or below 1; got {share:g}.")
        if not (self.cpus or self.gpus or workers):
            raise InputError("cpus_per_worker must be more than 0 if workers is not given; got 0.")

    def map_shards(self, work: Job, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results as they come."""
        rest = iter(shards)
        first = next(rest, None)
        if first is None:
            return
        ray = require("ray", extra="ray", needed_by="the Ray engine")
        started = self._connect(ray)
        try:
            sent = ray.put(_packed(_Scorer(work, max(1, int(self.cpus)))))
            paths, here = import_path()
            arguments = (sent, [*paths, *here], str(Path.cwd()))
            # A dead worker is replaced here, where its shard is known.
            options = {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_restarts": 0}
            actor = ray.remote(**options, scheduling_strategy="SPREAD")(_Actor)
            size = self._size(ray.cluster_resources())
            yield from _results(
                lambda: _RayWorker(ray, lambda: actor.remote(*arguments)),
                size,
                chain([first], rest),
            )
        finally:
            if started:
                ray.shutdown()

    def _connect(self, ray: Any) -> bool:
        """Connect to Ray; whether the connection has to be ended afterwards."""
        if ray.is_initialized():
            current = ray.get_runtime_context().gcs_address
            if self.address not in (None, "auto", current):
                raise InputError(
                    f"address must be that of the Ray this process is connected to, {current}, or "
                    f"be left out; got {self.address!r}. Call ray.shutdown() first."
                )
            return False
        settings: dict[str, Any] = {
            "namespace": f"shiftcal-{secrets.token_hex(8)}",
            "log_to_driver": False,
            "logging_level": logging.ERROR,
        }
        with tempfile.TemporaryDirectory(prefix="shiftcal-") as empty, _safe_path():
            # Ray puts the folder of its workers first on their path: the current one by default.
            if "RAY_JOB_CONFIG_JSON_ENV_VAR" not in os.environ:  # a submitted job has its own
                settings["runtime_env"] = {"working_dir": empty}
            if self.address is None:
                cpus = None if self.workers is None else max(1, ceil(self.workers * self.cpus))
                ray.init("local", num_cpus=cpus, include_dashboard=False, **settings)
                return True
            try:
                host, _, port = self.address.removeprefix("ray://").rpartition(":")
                if host and port.isdecimal():  # Ray itself would try for minutes
                    socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
                ray.init(self.address, **settings)
            except (OSError, RuntimeError, ValueError) as error:
                raise InputError(
                    f"address must be that of a running Ray cluster; got {self.address!r}, and "
                    f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
                ) from error
        return True

    def _size(self, resources: dict[str, float]) -> int:
        """How many workers, as asked for or as many as fit."""
        needs = {"CPU": self.cpus, "GPU": self.gpus}
        fit = [resources.get(name, 0) / each for name, each in needs.items() if each]
        most = int(min(fit)) if fit else 0
        size = most if self.workers is None else self.workers
        if size and (size <= most or self.address is not None):
            return size
        raise InputError(
            f"workers with {self.cpus:g} CPUs and {self.gpus:g} GPUs must fit into the cluster, "
            f"which has {resources.get('CPU', 0):g} and {resources.get('GPU', 0):g}; "
            f"{most} would. Ask for less in cpus_per_worker, gpus_per_worker or workers."
        )


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the current folder off the import path of processes that Ray starts meanwhile."""
    safe = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(import_path()[0])}
    before = {name: os.environ.get(name) for name in safe}
    os.environ.update(safe)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
