"""Where shards are scored: this process, several processes, or a Ray cluster."""

from __future__ import annotations

import copy
import inspect
import logging
import os
import pickle
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from itertools import chain
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from shiftcal.checks import check_count, check_not_negative
from shiftcal.errors import InputError, ShiftcalError, require
from shiftcal.numerics.blocks import thread_count
from shiftcal.registry import ENGINES

if TYPE_CHECKING:
    from shiftcal.scoring.shards import Job, Shard, ShardResult

T = TypeVar("T")
R = TypeVar("R")

# A task that has ended so many workers would end the next one too.
MOST_DEATHS = 3
# Variables that numerical libraries read when they start.
_LIMITS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR")


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

    def map_tasks(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The same for any function and its arguments, both of which can be pickled."""
        return map(work, tasks)


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
    if strange := [key for key in chosen if key not in accepted]:
        raise InputError(
            f"{strange[0]} must be left out for the {name} engine, which takes "
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
        return self.map_tasks(_Scorer(work, threads), shards)

    def map_tasks(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Results as they come, in the order of the tasks if there is one worker."""
        if self.workers == 1:
            return map(work, tasks)
        return in_processes(work, tasks, self.workers)


class _Scorer:
    """A job for a worker with so many threads, called with one shard."""

    def __init__(self, job: Job, threads: int) -> None:
        self._job = copy.copy(job)
        self._job.threads = threads

    def __call__(self, shard: Shard) -> ShardResult:
        (result,) = self._job([shard])
        return result


class WorkerDied(Exception):
    """A worker ended before its task was finished, and so did those that replaced it."""


def _results(
    start: Callable[[], Callable[[T], Future[Any]]],
    size: int,
    tasks: Iterable[T],
    *,
    died: tuple[type[Exception], ...],
) -> Iterator[Any]:
    """Results as they come; a task is taken when a worker is free for it.

    Args:
        start: A new worker: a function that begins a task.
        size: Workers at most.
        tasks: The tasks.
        died: What a task raises whose workers have died.
    """
    rest, busy = iter(tasks), dict[Future[Any], tuple[Callable[[T], Future[Any]], T]]()
    while len(busy) < size and (task := next(rest, None)) is not None:
        begin = start()
        busy[begin(task)] = begin, task
    while busy:
        done = next(iter(wait(busy, return_when=FIRST_COMPLETED).done))
        begin, task = busy.pop(done)
        try:
            result = done.result()
        except died as error:
            raise ShiftcalError(
                f"{MOST_DEATHS} workers died at {getattr(task, 'name', 'one task')}. The likely "
                "cause is memory: use fewer workers or a smaller batch size. The last one: "
                f"{' '.join(str(error).split())}"
            ) from error
        if isinstance(result, BaseException):
            raise result
        if (task := next(rest, None)) is not None:
            busy[begin(task)] = begin, task
        yield result


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


class _Performer:
    """The work, in another process.

    Args:
        sent: The pickled work.
        paths: Folders to import from.
        folder: Current folder, for relative paths, if this machine has it.
    """

    def __init__(self, sent: bytes, paths: list[str], folder: str) -> None:
        self._sent = sent
        self._work: Any = None
        sys.path += [path for path in paths if path not in sys.path and Path(path).exists()]
        with suppress(OSError):
            os.chdir(folder)

    def do(self, task: Any) -> Any:
        """The result of a task, or its error, which can be sent to another process."""
        try:
            self._work = self._work or self._loaded()
            return self._work(task)
        except ShiftcalError as error:
            return error
        except (Exception, SystemExit) as error:
            return ShiftcalError(f"{type(error).__name__} in a worker: {error}")

    def _loaded(self) -> Any:
        try:
            return pickle.loads(self._sent)
        except ShiftcalError:
            raise
        except (Exception, SystemExit) as error:  # constructors of user classes raise anything
            raise InputError(
                "the model and the images must be such that a worker can load them, from files "
                f"and modules that its machine has too; that failed with {type(error).__name__}: "
                f"{error}. With one local worker they stay in this process."
            ) from None


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


def in_processes(work: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[R]:
    """Results of ``work`` for each task, as they come, from processes on this machine.

    They import what this process can, except from the current folder: a file ``numpy.py`` among
    the data must not run. Modules that were already imported from there are the exception.

    Args:
        work: Sent to every process once.
        tasks: A task is taken when a process is free for it.
        workers: Processes; numerical libraries in them share the processors.
    """
    paths, here = import_path()
    threads = str(max(1, thread_count() // workers))
    environment = {
        **os.environ,
        **{f"{name}_NUM_THREADS": threads for name in _LIMITS},
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    packed = cache(lambda: pickle.dumps((_packed(work), here, os.curdir)))
    pool = ThreadPoolExecutor(workers, thread_name_prefix="shiftcal-worker")
    processes: list[_Process] = []

    def start() -> Callable[[T], Future[Any]]:
        processes.append(process := _Process(environment, packed()))
        return lambda task: pool.submit(process.do, task)

    try:
        yield from _results(start, workers, tasks, died=(WorkerDied,))
    finally:
        for process in processes:
            process.stop()
        pool.shutdown(cancel_futures=True)


class _Process:
    """A Python process that does one task at a time, started again after a death."""

    def __init__(self, environment: dict[str, str], greeting: bytes) -> None:
        self._environment, self._greeting = environment, greeting
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._guard = threading.Lock()

    def do(self, task: Any) -> Any:
        """The result of a task, or its error; raises WorkerDied."""
        for _ in range(MOST_DEATHS):
            unsent = b""
            with self._guard:
                if self._stopped:
                    break
                if self._process is None:
                    self._process, unsent = self._start(), self._greeting
                process = self._process
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(unsent + pickle.dumps(task))
                process.stdin.flush()
                return pickle.load(process.stdout)
            except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                self._kill()
        raise WorkerDied(f"it ended with status {process.poll()}")

    def stop(self) -> None:
        """End the process, whatever it does, and start no other."""
        self._stopped = True
        self._kill()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for this process only
        )

    def _kill(self) -> None:
        with self._guard:
            if self._process is not None:
                self._process.kill()
                with suppress(OSError, ValueError):
                    self._process.communicate()
                self._process = None


def serve() -> None:
    """What a worker process runs: tasks from stdin, results to stdout."""
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints must not get between the results
    worker = _Performer(*pickle.load(incoming))
    with suppress(EOFError, OSError):  # the process that sends tasks has ended
        while True:
            pickle.dump(worker.do(pickle.load(incoming)), outgoing)
            outgoing.flush()
    os._exit(0)


class RayEngine(Engine):
    """Workers that are Ray actors, each of which holds the model.

    If this process has called ``ray.init`` already, that Ray is used and left as it is. Results
    come back to this process: workers need no common disk, but files that the model and the images
    are loaded from must be there for them too.

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

    def map_shards(self, work: Job, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results as they come."""
        return self.map_tasks(_Scorer(work, max(1, int(self.cpus))), shards)

    def map_tasks(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Results as they come."""
        rest = iter(tasks)
        first = next(rest, None)
        if first is None:
            return
        ray = require("ray", extra="ray", needed_by="the Ray engine")
        started, actors = self._connect(ray), []
        try:
            sent = ray.put(_packed(work))
            arguments = (sent, list(chain(*import_path())), str(Path.cwd()))
            # Ray starts a worker that died again, and gives it its shard again.
            worker = ray.remote(
                num_cpus=self.cpus,
                num_gpus=self.gpus,
                max_restarts=-1,
                max_task_retries=MOST_DEATHS - 1,
                scheduling_strategy="SPREAD",
            )(_Performer)

            def start() -> Callable[[T], Future[Any]]:
                actors.append(actor := worker.remote(*arguments))
                return lambda task: actor.do.remote(task).future()

            errors = ray.exceptions
            died = (errors.RayActorError, errors.WorkerCrashedError, errors.OutOfMemoryError)
            size = self._size(ray.cluster_resources())
            for result in _results(start, size, chain([first], rest), died=died):
                # A copy: arrays that come are in the store of the cluster, and would keep it full.
                yield copy.deepcopy(result)
        finally:
            for actor in actors:
                ray.kill(actor, no_restart=True)
            if started:
                ray.shutdown()

    def _connect(self, ray: Any) -> bool:
        """Connect to Ray; whether the connection has to be ended afterwards."""
        if ray.is_initialized():
            return False
        settings: dict[str, Any] = {
            "namespace": f"shiftcal-{secrets.token_hex(8)}",
            "log_to_driver": False,
            "logging_level": logging.ERROR,
        }
        if self.address is None:
            cpus = None if self.workers is None else max(1, ceil(self.workers * self.cpus))
            settings |= {"num_cpus": cpus, "include_dashboard": False}
        try:
            host, _, port = (self.address or "").removeprefix("ray://").rpartition(":")
            if host and port.isdecimal():  # Ray itself would try for minutes
                socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
            with tempfile.TemporaryDirectory(prefix="shiftcal-") as empty:
                # Ray puts the folder of its workers first on their path: the current by default.
                if "RAY_JOB_CONFIG_JSON_ENV_VAR" not in os.environ:  # a submitted job has its own
                    settings["runtime_env"] = {"working_dir": empty}
                ray.init(self.address or "local", **settings)
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
