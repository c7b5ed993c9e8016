"""Where shards are scored: this process, several processes or threads, or a Ray cluster."""

from __future__ import annotations

import importlib
import inspect
import logging
import mmap
import os
import pickle
import queue
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, islice
from math import ceil
from multiprocessing import resource_tracker
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count, check_not_negative
from shiftcal.errors import FileError, InputError, InputWarning, ShiftcalError, require
from shiftcal.numerics.jit import thread_count
from shiftcal.registry import ENGINES
from shiftcal.scoring.work import Shard, ShardResult, Work, is_unwanted

names = ENGINES.names
get = ENGINES.get


class Engine(ABC):
    """Where the work is done.

    Attributes:
        name: Name on the command line.
    """

    name: ClassVar[str]

    @abstractmethod
    def map_shards(self, work: Work, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results of all shards, in any order, each as soon as it is finished.

        A result depends on ``work`` and the shard alone, to the bit, wherever it is computed
        (unless the arithmetic of the model itself depends on the number of threads or the
        processor). ``shards`` is consumed no further than there are workers. If a worker dies, its
        shard is given to another; if the model raises, the iteration ends with that error.

        Args:
            work: What is done with a shard; sent to every worker once, without its ``tell``.
            shards: The shards.
        """


def engine_of(name: str | Engine, **settings: object) -> Engine:
    """The engine of that name; an engine object is returned as it is.

    Args:
        name: ``"local"`` or ``"ray"``.
        **settings: Of that engine, such as ``workers`` or ``address``; ``None`` is the default.

    Raises:
        UnknownName: If there is no such engine.
        InputError: If the engine has no such setting.
        MissingExtra: If it needs a package that is not installed.
    """
    settings = {key: value for key, value in settings.items() if value is not None}
    if isinstance(name, Engine):
        if settings:
            raise InputError(
                f"{', '.join(settings)} must be left out if engine is an engine object; pass it to "
                f"{type(name).__name__}."
            )
        return name
    for key in settings:
        accepted = list(inspect.signature(ENGINES.get(name)).parameters)
        if key not in accepted:
            others = [e for e in names() if key in inspect.signature(get(e)).parameters]
            hint = f" Use engine {others[0]} for {key}." if others else ""
            raise InputError(
                f"{key} must be left out for the {name} engine, which takes "
                f"{', '.join(accepted)}.{hint}"
            )
    engine: Engine = get(name)(**settings)
    return engine


# --------------------------------------------------------------------------------------
# Handing shards to workers that may die.
# --------------------------------------------------------------------------------------

# A shard that has ended so many workers would end the next one too.
MOST_DEATHS = 3


class WorkerDied(Exception):
    """A worker ended before its shard was finished."""


class _Pool(ABC):
    """Workers; each slot has at most one shard at a time. Handles can be keys of a dict."""

    @abstractmethod
    def submit(self, slot: int, shard: Shard) -> Any:
        """Start a shard in a slot, with a new worker if there is none; returns a handle."""

    def wait(self, handles: Sequence[Any]) -> Any:
        """The first handle that is finished."""
        done, _ = wait(handles, return_when=FIRST_COMPLETED)
        return next(handle for handle in handles if handle in done)

    @abstractmethod
    def result(self, slot: int, handle: Any) -> ShardResult:
        """The result of a finished handle; raises WorkerDied, or what the model raised."""

    @abstractmethod
    def stop(self, handles: Sequence[Any]) -> None:
        """End all workers, whatever they are doing."""


def _results(
    pool_of: Callable[[int], _Pool], size: int, shards: Iterable[Shard]
) -> Iterator[ShardResult]:
    """Results as they come. After an error, shards in progress are finished, then it is raised.

    Args:
        pool_of: Makes a pool of so many workers; not called if there is no shard.
        size: Workers at most.
        shards: A shard is taken when a worker is free for it.
    """
    rest, waiting, late = iter(shards), deque[Shard](), None
    try:
        for shard in islice(rest, size):
            waiting.append(shard)
    except Exception as error:  # shards taken before are scored first
        late = error
    if not waiting:
        if late is not None:
            raise late
        return
    free = list(range(len(waiting)))
    busy: dict[Any, tuple[int, Shard]] = {}
    deaths: Counter[str] = Counter()
    failure: Exception | None = None
    pool = pool_of(len(waiting))
    try:
        while True:
            while free and failure is None:
                try:
                    following = waiting.popleft() if waiting else next(rest, None)
                except Exception as error:  # shards in progress are finished first
                    failure = error
                    break
                if following is None:
                    failure = late
                    break
                slot = free.pop()
                busy[pool.submit(slot, following)] = (slot, following)
            if not busy:
                break
            handle = pool.wait(list(busy))
            slot, shard = busy.pop(handle)
            free.append(slot)
            try:
                result = pool.result(slot, handle)
            except WorkerDied as death:
                deaths[shard.key] += 1
                waiting.append(shard)
                if deaths[shard.key] == MOST_DEATHS:
                    failure = failure or ShiftcalError(
                        f"{MOST_DEATHS} workers died at images {shard.start} to {shard.stop - 1} "
                        f"({shard.condition.name}). The likely cause is memory: use fewer workers "
                        f"or a smaller batch size. The last one: {death}"
                    )
                continue
            except Exception as error:
                failure = failure or error
                continue
            yield result
        if failure is not None:
            raise failure
    finally:
        pool.stop(list(busy))


class Worker:
    """Work that continues from shard to shard, so that images it has read serve the next one.

    Args:
        work: A copy for this worker alone: it sets the number of threads of the model.
        threads: How many threads it may use.
    """

    def __init__(self, work: Work, *, threads: int) -> None:
        work.model.use_threads(threads)
        self._shards: queue.SimpleQueue[Shard | None] = queue.SimpleQueue()
        self._results = replace(work, threads=threads)(self._coming())

    def do(self, shard: Shard) -> ShardResult:
        """The result of a shard. After an error the worker cannot be used any more."""
        self._shards.put(shard)
        try:
            return next(self._results)
        except (Exception, SystemExit) as error:  # user code must not end this process
            raise portable(error) from error

    def close(self) -> None:
        """End the thread that reads images."""
        self._shards.put(None)
        next(self._results, None)

    def _coming(self) -> Iterator[Shard]:
        while not is_unwanted():
            with suppress(queue.Empty):
                shard = self._shards.get(timeout=0.1)
                if shard is None:
                    return
                yield shard


def portable(error: BaseException) -> Exception:
    """The error, or a ShiftcalError of the same text if it cannot be sent to another process."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # classes with their own __init__ raise anything here
        copy = None
    if isinstance(error, Exception) and type(copy) is type(error) and str(copy) == str(error):
        return error
    return ShiftcalError(f"{type(error).__name__} in a worker: {error}")


# --------------------------------------------------------------------------------------
# Sending work to other processes.
# --------------------------------------------------------------------------------------

# Arrays from this size on are mapped by all processes of this machine instead of copied.
_LARGE = 1 << 20
_ALIGNED = 64


def part_of_joblib(module: str) -> Any:
    """Loky or cloudpickle: depending on its version, joblib bundles or requires them."""
    try:
        return importlib.import_module(f"joblib.externals.{module}")
    except ModuleNotFoundError:
        return importlib.import_module(module)


def packed(work: Work, **options: Any) -> bytes:
    """The pickled work, including functions of a script or notebook.

    Raises:
        InputError: If a part of it cannot be pickled.
    """
    try:
        return part_of_joblib("cloudpickle").dumps(work, **options)
    except Exception as error:  # user objects raise anything here
        raise InputError(
            "the model and the images must be picklable to reach other processes; that failed "
            f"with {type(error).__name__}: {error}. With one local worker they stay in this one."
        ) from error


def _unpacked(load: Callable[[], Work]) -> Work:
    """The work; raises InputError if constructors of user classes fail here."""
    try:
        return load()
    except ShiftcalError as error:
        raise portable(error) from None
    except (Exception, SystemExit) as error:
        raise InputError(
            "the model and the images must be such that a worker can load them, from files and "
            f"modules that its machine has too; that failed with {type(error).__name__}: {error}. "
            "With one local worker they stay in this process."
        ) from None


def _write(work: Work, folder: Path) -> None:
    """Write the pickled work, its large arrays to a file that workers map."""
    buffers: list[memoryview] = []

    def in_band(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            buffers.append(raw)
        return raw.nbytes < _LARGE

    content = packed(work, protocol=5, buffer_callback=in_band)
    spans = []
    try:
        with (folder / "arrays").open("wb") as file:
            for raw in buffers:
                start = -(-file.tell() // _ALIGNED) * _ALIGNED
                file.seek(start)
                file.write(raw)
                spans.append((start, start + raw.nbytes))
        (folder / "work").write_bytes(pickle.dumps((content, spans)))
    except OSError as error:
        raise FileError(
            f"{tempfile.gettempdir()} must have room for the model and the images in memory, which "
            f"workers read from there: {error.strerror or error}. Set TMPDIR to another folder."
        ) from error


def _read(folder: Path) -> Work:
    content, spans = pickle.loads((folder / "work").read_bytes())
    if not spans:
        return pickle.loads(content)
    with (folder / "arrays").open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    return pickle.loads(content, buffers=[whole[start:stop] for start, stop in spans])


# --------------------------------------------------------------------------------------
# Worker processes that import nothing from the current folder unless the user named it.
# --------------------------------------------------------------------------------------

# The environment and the path belong to the whole process.
_LOCK = threading.RLock()


@contextmanager
def safe_start() -> Iterator[None]:
    """Start processes that do not import from the current folder and ignore Ctrl-C.

    Python puts the current folder first on the path of a process started with ``-m`` or ``-c``,
    as workers are; a file ``joblib.py`` among the data would run there. What workers need from
    that folder reaches them through :func:`extend_search_path`. Ctrl-C is blocked in this thread,
    which they inherit; this process handles it afterwards, or at once in another thread.
    """
    with _LOCK, _safe_path():
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            yield
            return
        # Started along with the first worker otherwise, and it unblocks Ctrl-C.
        resource_tracker.ensure_running()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def _safe_path() -> Iterator[None]:
    path, here = sys.path, _current_folder()
    # An empty entry of PYTHONPATH is the current folder.
    entries = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    wanted = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(entries)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    if here != str(Path(__file__).parents[2]):  # where workers import shiftcal from
        sys.path = [folder for folder in path if folder not in ("", here)]
    try:
        yield
    finally:
        sys.path = path
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def search_path() -> list[str]:
    """Folders from which this process imports modules, for its workers.

    The current folder comes last, and only if modules were imported from it.
    """
    here = _current_folder()
    paths = [str(Path(folder).absolute()) for folder in sys.path if folder not in ("", here)]
    used = here and any(_is_from(module, Path(here)) for module in list(sys.modules.values()))
    return [*paths, here] if used else paths


def extend_search_path(paths: Sequence[str]) -> None:
    """Append existing folders to the module path; they hide no installed module."""
    sys.path += [p for p in dict.fromkeys(paths) if p not in sys.path and Path(p).exists()]


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # it was removed
        return ""


def _is_from(module: ModuleType | None, folder: Path) -> bool:
    """Whether a top-level module or package lies in the folder itself."""
    name = getattr(module, "__name__", None)
    if not isinstance(name, str) or "." in name or name == "__main__":
        return False
    file = getattr(module, "__file__", None)
    places = getattr(module, "__path__", None) or ([file] if isinstance(file, str) else [])
    return any(Path(place).parent == folder for place in places)


def settle(parent: int, remove: str | None = None) -> None:
    """Set up a worker process: ignore Ctrl-C, and end when the parent process ends.

    Args:
        parent: Process id of the parent.
        remove: Folder to delete if the parent was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        if remove is not None:
            shutil.rmtree(remove, ignore_errors=True)
        os._exit(1)

    if os.name != "nt":  # where the parent's id stays the same after its end
        threading.Thread(target=end_with_parent, daemon=True).start()


# --------------------------------------------------------------------------------------
# This machine.
# --------------------------------------------------------------------------------------

# Variables that numerical libraries read when they start.
_LIMITS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA", "NUMEXPR")
# The worker of this process, if it is one.
_WORKER: dict[str, Worker] = {}


def _do(folder: str, threads: int, paths: Sequence[str], shard: Shard) -> ShardResult:
    """What a worker process runs; the first shard loads the work."""
    if folder not in _WORKER:
        extend_search_path(paths)
        _WORKER[folder] = Worker(_unpacked(lambda: _read(Path(folder))), threads=threads)
    return _WORKER[folder].do(shard)


class _Processes(_Pool):
    """Processes of loky, which need no guard in the user's script; started afresh after a death."""

    def __init__(self, work: Work, size: int, threads: int) -> None:
        self._folder = tempfile.mkdtemp(prefix="shiftcal-")
        try:
            _write(work, Path(self._folder))
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._task = (_do, self._folder, threads, search_path())
        self._size = size
        self._env = {f"{name}_NUM_THREADS": str(threads) for name in _LIMITS}
        self._executor: Any = None

    def submit(self, slot: int, shard: Shard) -> Future[ShardResult]:
        with safe_start():
            if self._executor is not None:
                try:
                    return self._executor.submit(*self._task, shard)
                except BrokenProcessPool:
                    self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = part_of_joblib("loky").ProcessPoolExecutor(
                max_workers=self._size,
                initializer=settle,
                initargs=(os.getpid(), self._folder),
                env=self._env,
                timeout=None,
            )
            return self._executor.submit(*self._task, shard)

    def result(self, slot: int, handle: Future[ShardResult]) -> ShardResult:
        try:
            return handle.result()
        except BrokenProcessPool as error:
            raise WorkerDied(" ".join(str(error).split())) from error

    def stop(self, handles: Sequence[Future[ShardResult]]) -> None:
        try:
            # A thread of loky fails, with a traceback, at a task that it has yet to send.
            end = time.monotonic() + 1.0
            while time.monotonic() < end and not all(h.running() or h.done() for h in handles):
                time.sleep(0.001)
            if self._executor is not None:
                self._executor.shutdown(wait=True, kill_workers=True)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


class _Threads(_Pool):
    """Threads, each with its copy of the work, since a model need not be thread-safe."""

    def __init__(self, work: Work, size: int, threads: int) -> None:
        self._packed, self._tell, self._threads = packed(work), work.tell, threads
        self._executors = [
            ThreadPoolExecutor(1, thread_name_prefix="shiftcal-worker") for _ in range(size)
        ]
        self._workers: dict[int, Worker] = {}
        # Torch models set this for the whole process.
        self._torch: Any = sys.modules.get("torch")
        self._torch_threads = self._torch and self._torch.get_num_threads()

    def submit(self, slot: int, shard: Shard) -> Future[ShardResult]:
        return self._executors[slot].submit(self._do, slot, shard)

    def _do(self, slot: int, shard: Shard) -> ShardResult:
        if slot not in self._workers:
            work = replace(_unpacked(lambda: pickle.loads(self._packed)), tell=self._tell)
            self._workers[slot] = Worker(work, threads=self._threads)
        return self._workers[slot].do(shard)

    def result(self, slot: int, handle: Future[ShardResult]) -> ShardResult:
        return handle.result()

    def stop(self, handles: Sequence[Future[ShardResult]]) -> None:
        for executor in self._executors:
            executor.shutdown(wait=True, cancel_futures=True)  # a thread cannot be ended
        for worker in self._workers.values():
            worker.close()
        if self._torch is not None:
            self._torch.set_num_threads(self._torch_threads)


class LocalEngine(Engine):
    """Workers on this machine.

    One worker is this process itself: images are prepared while the model runs, and both use all
    processors. Several workers share the processors; that pays for models that use only one.

    Args:
        workers: How many; no more are started than there are shards.
        kind: What several workers are. ``"processes"`` suit every model, and one that is killed,
            for example for lack of memory, is replaced. ``"threads"`` start faster and suit models
            that release the interpreter's lock.
    """

    name: ClassVar[str] = "local"

    def __init__(
        self, *, workers: int = 1, kind: Literal["processes", "threads"] = "processes"
    ) -> None:
        self.workers = check_count(workers, name="workers")
        self.kind = check_choice(kind, ("processes", "threads"), name="kind")

    def map_shards(self, work: Work, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results as they come, in the order of the shards if there is one worker."""
        if self.workers == 1:
            return work(shards)
        processors = os.cpu_count() or 1
        if self.workers > processors:
            warnings.warn(
                f"workers should be at most {processors}, the number of processors; got "
                f"{self.workers}. Each takes memory, and they share the same processors.",
                InputWarning,
                stacklevel=2,
            )
        pool = _Processes if self.kind == "processes" else _Threads
        threads = max(1, thread_count() // self.workers)
        return _results(lambda size: pool(work, size, threads), self.workers, shards)


# --------------------------------------------------------------------------------------
# A Ray cluster, or a Ray started for this run on this machine.
# --------------------------------------------------------------------------------------

# Seconds without any worker before a warning.
PATIENCE = 60.0


class Actor:
    """A worker in a process of the cluster.

    Args:
        sent: The pickled work, ``(bytes,)``.
        threads: How many threads it may use.
        paths: Module path of the process that sent it.
        folder: Current folder of that process, for relative paths.
    """

    def __init__(
        self, sent: NDArray[np.uint8], threads: int, paths: Sequence[str], folder: str
    ) -> None:
        self._sent, self._threads = sent, threads
        self._worker: Worker | None = None
        extend_search_path(paths)
        with suppress(OSError):  # another machine need not have it
            os.chdir(folder)

    def ready(self) -> None:
        """Returns once the cluster has started this worker."""

    def do(self, shard: Shard) -> ShardResult:
        """The result of a shard; the first one loads the work."""
        if self._worker is None:
            work = _unpacked(lambda: pickle.loads(self._sent.data))
            self._worker = Worker(work, threads=self._threads)
        return self._worker.do(shard)


class _Actors(_Pool):
    """Actors on whatever machines the cluster has room."""

    def __init__(self, work: Work, *, cpus: float, gpus: float) -> None:
        self._ray = require("ray", extra="ray", needed_by="the Ray engine")
        # Bytes as an array: actors of one machine read them from its memory without a copy.
        sent = self._ray.put(np.frombuffer(packed(work), np.uint8))
        self._arguments = (sent, max(1, int(cpus)), search_path(), str(Path.cwd()))
        # A dead worker is replaced here, where its shard is known.
        settings = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        self._actor = self._ray.remote(**settings, scheduling_strategy="SPREAD")(Actor)
        self._actors: dict[int, Any] = {}
        self._starting: list[Any] = []

    def submit(self, slot: int, shard: Shard) -> Any:
        if slot not in self._actors:
            self._actors[slot] = self._actor.remote(*self._arguments)
            self._starting.append(self._actors[slot].ready.remote())
        return self._actors[slot].do.remote(shard)

    def wait(self, handles: Sequence[Any]) -> Any:
        if self._starting and not self._ray.wait(self._starting, timeout=PATIENCE)[0]:
            free = self._ray.available_resources()
            warnings.warn(
                f"no worker has started for {PATIENCE:.0f} s: the cluster has "
                f"{free.get('CPU', 0):g} CPUs and {free.get('GPU', 0):g} GPUs free. Still waiting; "
                "end other work there, or ask for fewer cpus_per_worker or gpus_per_worker.",
                InputWarning,
                stacklevel=2,
            )
        self._starting = []
        done, _ = self._ray.wait(list(handles), num_returns=1)
        return done[0]

    def result(self, slot: int, handle: Any) -> ShardResult:
        errors = self._ray.exceptions
        try:
            result: ShardResult = self._ray.get(handle)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, Exception) else error) from None
        except (errors.RayActorError, errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            self._end(slot)
            raise WorkerDied(" ".join(str(error).split())) from error
        # Arrays that come are in the store of the cluster, and would keep it full.
        features = None if result.features is None else result.features.copy()
        rows, logits = result.rows.copy(), result.logits.copy()
        return replace(result, rows=rows, logits=logits, features=features)

    def stop(self, handles: Sequence[Any]) -> None:
        for slot in list(self._actors):
            self._end(slot)

    def _end(self, slot: int) -> None:
        self._ray.kill(self._actors.pop(slot), no_restart=True)


class RayEngine(Engine):
    """Workers that are Ray actors, each of which holds the model.

    If this process has called ``ray.init`` already, that Ray is used, and left as it is; Ray then
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
        self.cpus = _share(cpus_per_worker, name="cpus_per_worker")
        self.gpus = _share(gpus_per_worker, name="gpus_per_worker")
        if self.cpus == 0 and workers is None and self.gpus == 0:
            raise InputError("cpus_per_worker must be more than 0 if workers is not given; got 0.")

    def map_shards(self, work: Work, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results as they come."""
        rest = iter(shards)
        first = next(rest, None)
        if first is None:
            return
        ray = require("ray", extra="ray", needed_by="the Ray engine")
        started = self._connect(ray)
        try:
            size = self._size(ray.cluster_resources())
            yield from _results(
                lambda _: _Actors(work, cpus=self.cpus, gpus=self.gpus), size, chain([first], rest)
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
                    f"be left out; got {self.address!r}. Call ray.shutdown() first to go elsewhere."
                )
            return False
        settings: dict[str, Any] = {
            "namespace": f"shiftcal-{secrets.token_hex(8)}",
            "log_to_driver": False,
            "logging_level": logging.ERROR,
        }
        with tempfile.TemporaryDirectory(prefix="shiftcal-") as empty, safe_start():
            # Ray puts the folder of its workers first on their path: the current one by default.
            if "RAY_JOB_CONFIG_JSON_ENV_VAR" not in os.environ:  # a submitted job has its own
                settings["runtime_env"] = {"working_dir": empty}
            if self.address is None:
                _see_to_token()
                cpus = None if self.workers is None else max(1, ceil(self.workers * self.cpus))
                ray.init("local", num_cpus=cpus, include_dashboard=False, **settings)
                return True
            try:
                host, _, port = self.address.removeprefix("ray://").rpartition(":")
                if host and port.isdecimal():  # Ray itself would try for minutes
                    socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
                ray.init(self.address, **settings)
            except (OSError, RuntimeError, ValueError) as error:
                first = str(error).strip().partition("\n")[0]
                raise InputError(
                    f"address must be that of a running Ray cluster; got {self.address!r}, and "
                    f"{type(error).__name__}: {first}"
                ) from error
        return True

    def _size(self, resources: dict[str, float]) -> int:
        """How many workers, as asked for or as many as fit."""
        needs = {"CPU": self.cpus, "GPU": self.gpus}
        fit = [resources.get(name, 0) / each for name, each in needs.items() if each]
        most = int(min(fit)) if fit else 0
        if self.workers is not None and (self.address is not None or self.workers <= most):
            return self.workers
        if self.workers is None and most:
            return most
        raise InputError(
            f"workers with {self.cpus:g} CPUs and {self.gpus:g} GPUs must fit into the cluster, "
            f"which has {resources.get('CPU', 0):g} and {resources.get('GPU', 0):g}; "
            f"{most} would. Ask for less in cpus_per_worker, gpus_per_worker or workers."
        )


def _share(value: object, *, name: str) -> float:
    share = check_not_negative(value, name=name)
    if share > 1 and share % 1:
        raise InputError(f"{name} must be a whole number or below 1, as Ray has it; got {share:g}.")
    return share


def _see_to_token() -> None:
    """Set an authentication token where Ray cannot write its own to ``~/.ray``.

    Ray does not start without one, and reads the variable once per process, so it stays set.
    """
    if os.environ.keys() & {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}:
        return
    with suppress(OSError, RuntimeError):  # no home, or one that cannot be written
        folder = Path.home() / ".ray"
        if (folder / "auth_token").exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
