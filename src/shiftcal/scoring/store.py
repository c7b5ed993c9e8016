"""Finished shards in folders, and locks for processes that share a folder."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from shiftcal.checks import check_count
from shiftcal.errors import FileError, InputWarning
from shiftcal.files import atomic_write, make_folder
from shiftcal.scoring.work import ShardResult

FORMAT = "shiftcal-shard-1"


class FolderStore:
    """One file per shard, written atomically, with a checksum of its content.

    Without any folder, shards are kept in memory.

    Args:
        folder: Where shards are written. Processes that share it share the work: a shard is locked
            while one of them scores it.
        cache: A second folder, read first and written to if possible, that several results share.
    """

    def __init__(self, folder: Path | None = None, *, cache: Path | None = None) -> None:
        self._folder = folder
        self._cache = cache
        self._cache_writable = cache is not None
        self._memory: dict[str, ShardResult] = {}
        self._locks: dict[str, FileLock] = {}
        # Damaged files, which may be where nothing can be removed.
        self._useless: set[Path] = set()

    def has(self, key: str) -> bool:
        """Whether the shard is there and as long as it says it is."""
        return key in self._memory or any(_opens(file) for file in self._files(key))

    def get(self, key: str) -> ShardResult | None:
        """The shard; ``None`` if it is not there. A damaged file is removed."""
        for file in self._files(key):
            try:
                result = _read(file, key)
            except FileNotFoundError:  # another process may write it later
                continue
            except OSError:  # says nothing about what is in the file
                self._useless.add(file)
                continue
            if result is not None:
                return result
            self._useless.add(file)
            with suppress(OSError):
                file.unlink(missing_ok=True)
        return self._memory.get(key)

    def put(self, result: ShardResult) -> None:
        """Store a shard in the cache, else in the folder, else in memory."""
        if self._cache is not None and self._cache_writable:
            try:
                return self._write(self._cache, result)
            except (FileError, OSError) as error:
                self._cache_writable = False
                warnings.warn(
                    f"the cache {self._cache} cannot be written ({_reason(error)}); it is only "
                    "read from now on.",
                    InputWarning,
                    stacklevel=2,
                )
        if self._folder is None:
            self._memory[result.key] = result
            return None
        try:
            return self._write(self._folder, result)
        except (FileError, OSError) as error:
            raise FileError(
                f"{self._folder} could not be written: {_reason(error)}. Finished shards are kept; "
                "the same command resumes from there."
            ) from error

    def claim(self, key: str) -> bool:
        """Whether no other process is scoring the shard; it is locked for this one then.

        Locks only save work: where they do not hold, as on some network drives, a shard may be
        scored twice, with the same result.
        """
        if self._folder is None:
            return True
        with suppress(OSError, NotImplementedError):
            lock = _lock(self._folder / "locks" / key)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                return False
            self._locks[key] = lock
        return True

    def release(self, key: str) -> None:
        """Unlock a shard."""
        if lock := self._locks.pop(key, None):
            lock.release()

    def close(self) -> None:
        """Unlock all shards."""
        for key in list(self._locks):
            self.release(key)

    def _files(self, key: str) -> list[Path]:
        folders = [folder for folder in (self._cache, self._folder) if folder is not None]
        files = [folder / key[:2] / f"{key}.shard" for folder in folders]
        return [file for file in files if file not in self._useless]

    def _write(self, folder: Path, result: ShardResult) -> None:
        file = folder / result.key[:2] / f"{result.key}.shard"
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays = {"rows": result.rows, "logits": result.logits}
        if result.features is not None:
            arrays["features"] = result.features
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        bad = json.dumps({str(index): reason for index, reason in sorted(result.bad.items())})
        about = {"key": result.key, "bad": bad, "digest": _digest(arrays, bad)}
        # Not flushed, or the model would wait for the disk; a damaged file is computed again. One
        # entry of metadata only: the order of several differs between processes.
        with atomic_write(file, durable=False) as temporary:
            temporary.write_bytes(save(arrays, metadata={FORMAT: json.dumps(about)}))
        self._useless.discard(file)


def _digest(arrays: dict[str, NDArray[Any]], bad: str) -> str:
    digest = hashlib.blake2b(bad.encode(), digest_size=16)
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _opens(file: Path) -> bool:
    try:
        with safe_open(file, "np"):
            return True
    except (OSError, SafetensorError):
        return False


def _read(file: Path, key: str) -> ShardResult | None:
    """What is in a file; ``None`` if it is damaged."""
    try:
        with safe_open(file, "np") as opened:
            about = json.loads((opened.metadata() or {})[FORMAT])
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        bad = {int(index): str(reason) for index, reason in json.loads(about["bad"]).items()}
        if about["key"] != key or about["digest"] != _digest(arrays, about["bad"]):
            return None
        return ShardResult(key, arrays["rows"], arrays["logits"], arrays.get("features"), bad)
    except (SafetensorError, ValueError, KeyError, AttributeError, TypeError):
        return None


def _reason(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, FileError) else error
    return getattr(cause, "strerror", None) or str(error).rstrip(".")


# --------------------------------------------------------------------------------------
# Processes that share a folder. The system releases locks of a process that is killed.
# --------------------------------------------------------------------------------------


def _lock(file: Path) -> FileLock:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Shards are locked by the thread that reads images, and unlocked by another.
    return FileLock(file, thread_local=False)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for the same folder.

    Raises:
        FileError: If the folder cannot be written.
    """
    file = folder / ".lock"
    try:
        lock = _lock(file)
        lock.acquire()
    except OSError as error:
        raise FileError(f"{folder} could not be locked: {error.strerror or error}.") from error
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()
        lock.release()


@contextmanager
def workshop(folder: Path, *, host: Path | None = None) -> Iterator[Path]:
    """A folder for unfinished work, removed by the last process that leaves it with its work done.

    If the work is interrupted it stays, unless no shard was finished.

    Args:
        folder: Created if it does not exist.
        host: The folder around it, if nothing in that is worth keeping without the workshop:
            temporary files of killed processes are removed too, and then the folder if it is empty.
    """
    users = folder / "users"
    make_folder(users)
    mine = _lock(users / secrets.token_hex(8))
    mine.acquire()
    done = False
    try:
        yield folder
        done = True
    finally:
        mine.release()
        with suppress(OSError):
            Path(mine.lock_file).unlink()
        if (done or not any(folder.rglob("*.shard"))) and not any(map(_is_held, users.glob("*"))):
            for file in [] if host is None else host.glob(".shiftcal-*.tmp"):
                file.unlink(missing_ok=True)
            # After those: a folder that holds anything, and no workshop, is not recognised as ours.
            shutil.rmtree(folder, ignore_errors=True)
            if host is not None:
                with suppress(OSError):  # finished work is in it
                    host.rmdir()


def _is_held(file: Path) -> bool:
    try:
        with FileLock(file, blocking=False):
            return False
    except Timeout:
        return True
    except OSError:
        return False


@dataclass(frozen=True)
class Notes:
    """Numbers found by trial that all who share a folder must agree on, such as a batch size.

    Attributes:
        workshop: Folder of one result, which is asked first; ``None`` for none.
        cache: Folder that several results share; not used where it cannot be.
    """

    workshop: Path | None = None
    cache: Path | None = None

    def settled(self, name: str, find: Callable[[], int]) -> int:
        """The number of that name; computed by ``find`` if no folder has it, while others wait."""
        with ExitStack() as locks:
            known: dict[Path, dict[str, int]] = {}
            for folder in (self.workshop, self.cache):
                if folder is not None:
                    with suppress(FileError, OSError):  # a cache that cannot be written
                        locks.enter_context(alone_in(folder))
                    known[folder] = _read_notes(folder)
            number = next((notes[name] for notes in known.values() if name in notes), None)
            if number is None:
                number = find()
            for folder, notes in known.items():
                if name not in notes:
                    # What can be computed again may fail to be written.
                    with suppress(FileError, OSError), atomic_write(folder / "notes.json") as file:
                        file.write_text(json.dumps({**notes, name: number}, indent=1), "utf-8")
            return number


def _read_notes(folder: Path) -> dict[str, int]:
    """The numbers in a folder; none if the file is missing or damaged: they can be found again."""
    try:
        notes = json.loads((folder / "notes.json").read_text("utf-8"))
        return {str(name): check_count(notes[name], name=str(name)) for name in notes}
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return {}
