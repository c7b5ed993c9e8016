"""Where finished shards are kept: a folder, with a second one that may be shared."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from shiftcal._files import atomic_write
from shiftcal.errors import FileError, InputWarning
from shiftcal.scoring.claims import Claims
from shiftcal.scoring.shard import ShardResult
from shiftcal.scoring.sweep import sweep

FORMAT = "shiftcal-shard-1"
# Below the folder.
CLAIMS = "claims"


class Store(Protocol):
    """Finished shards by their keys."""

    def has(self, key: str) -> bool:
        """Whether the shard is there."""

    def get(self, key: str) -> ShardResult | None:
        """The shard; ``None`` if it is not there, or damaged."""

    def put(self, result: ShardResult) -> None:
        """Keep a shard."""

    def claim(self, key: str) -> bool:
        """Whether nobody else is working on the shard; it is ours then."""

    def release(self, key: str) -> None:
        """Let go of it."""

    def close(self) -> None:
        """Let go of everything."""


class MemoryStore:
    """Shards in memory, for results that go nowhere else."""

    def __init__(self) -> None:
        self._results: dict[str, ShardResult] = {}

    def close(self) -> None:
        """Nothing to let go of."""

    def has(self, key: str) -> bool:
        """Whether the shard is there."""
        return key in self._results

    def get(self, key: str) -> ShardResult | None:
        """The shard, if it is there."""
        return self._results.get(key)

    def put(self, result: ShardResult) -> None:
        """Keep a shard."""
        self._results[result.key] = result

    def claim(self, key: str) -> bool:
        """Always: nobody else knows of it."""
        return True

    def release(self, key: str) -> None:
        """Nothing to let go of."""


class FolderStore:
    """One file a shard, written whole or not at all, with a checksum of what is in it.

    Args:
        folder: Where shards are written and claimed.
        cache: A second folder to read from, and to write to and to claim in as long as that is
            possible: others find there what was done here, and do not do it at the same time.
            ``None`` for none.
    """

    def __init__(self, folder: Path, *, cache: Path | None = None) -> None:
        self._folder = folder
        self._cache = cache
        self._cache_writable = cache is not None
        self._claims = [Claims(place / CLAIMS) for place in (folder, cache) if place is not None]
        # Files that cannot be used, and may be where nothing can be removed.
        self._useless: set[Path] = set()

    def has(self, key: str) -> bool:
        """Whether a file of that key is there and complete."""
        return any(_opens(file) for file in self._files(key))

    def get(self, key: str) -> ShardResult | None:
        """The shard; a damaged file is removed, so that it is made again."""
        for file in self._files(key):
            if not file.exists():
                continue  # another process may be about to write it
            try:
                found = _read(file, key)
            except OSError:  # it says nothing about what is in the file
                self._useless.add(file)
                continue
            if found is not None:
                return found
            self._useless.add(file)
            with suppress(OSError):
                file.unlink(missing_ok=True)
        return None

    def put(self, result: ShardResult) -> None:
        """Write a shard to the cache, or to the folder if there is none or it cannot be written."""
        content = _content(result)
        if self._cache is not None and self._cache_writable:
            try:
                self._write(self._cache, result.key, content)
            except (FileError, OSError) as error:
                self._cache_writable = False
                warnings.warn(
                    f"the cache {self._cache} cannot be written ({_reason(error)}); it is only "
                    "read from now on.",
                    InputWarning,
                    stacklevel=2,
                )
            else:
                return
        try:
            self._write(self._folder, result.key, content)
        except (FileError, OSError) as error:
            raise FileError(
                f"{self._folder} could not be written: {_reason(error)}. What is done is kept; "
                "the same command goes on from there."
            ) from error

    def claim(self, key: str) -> bool:
        """Whether no other process works on it, in this folder or for another with this cache."""
        taken: list[Claims] = []
        for claims in self._claims:
            if not claims.take(key):
                for ours in taken:
                    ours.release(key)
                return False
            taken.append(claims)
        return True

    def release(self, key: str) -> None:
        """Let go of it."""
        for claims in self._claims:
            claims.release(key)

    def close(self) -> None:
        """Let go of everything; what killed processes left in the cache goes after a day."""
        for claims in self._claims:
            claims.release_all()
        if self._cache is not None and self._cache_writable:
            sweep(self._cache, self._claims[-1], self._cache / CLAIMS)

    def _files(self, key: str) -> list[Path]:
        folders = [self._folder] if self._cache is None else [self._cache, self._folder]
        files = [_place(folder, key) for folder in folders]
        return [file for file in files if file not in self._useless]

    def _write(self, folder: Path, key: str, content: bytes) -> None:
        file = _place(folder, key)
        file.parent.mkdir(parents=True, exist_ok=True)
        # The model would wait for the disk; a file that a power cut damaged is made again.
        with atomic_write(file, durable=False) as temporary:
            temporary.write_bytes(content)
        self._useless.discard(file)


@contextmanager
def passing_store(cache: Path | None) -> Iterator[Store]:
    """A store for the time of a block; what it holds is lost then but for what the cache took.

    Args:
        cache: As for :class:`FolderStore`.
    """
    if cache is None:
        yield MemoryStore()
        return
    with tempfile.TemporaryDirectory(prefix="shiftcal-") as folder:
        store = FolderStore(Path(folder), cache=cache)
        try:
            yield store
        finally:
            store.close()


def _place(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.shard"


def _content(result: ShardResult) -> bytes:
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.ascontiguousarray(result.rows),
        "logits": np.ascontiguousarray(result.logits),
    }
    if result.features is not None:
        arrays["features"] = np.ascontiguousarray(result.features)
    bad = json.dumps({str(index): reason for index, reason in sorted(result.bad.items())})
    about = {"key": result.key, "bad": bad, "digest": _digest(arrays, bad)}
    # One entry only: the order of several is another in every process.
    return save(arrays, metadata={FORMAT: json.dumps(about)})


def _digest(arrays: dict[str, NDArray[Any]], bad: str) -> str:
    whole = hashlib.blake2b(bad.encode(), digest_size=16)
    for name in sorted(arrays):
        whole.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        whole.update(arrays[name].tobytes())
    return whole.hexdigest()


def _opens(file: Path) -> bool:
    """Whether the file is there and as long as it says it is."""
    try:
        with safe_open(file, "np"):
            return True
    except (OSError, SafetensorError):
        return False


def _read(file: Path, key: str) -> ShardResult | None:
    """What is in a file; ``None`` if it is damaged.

    Raises:
        OSError: If the file cannot be opened.
    """
    try:
        with safe_open(file, "np") as opened:
            about = json.loads((opened.metadata() or {})[FORMAT])
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        bad = about["bad"]
        if about["key"] != key or about["digest"] != _digest(arrays, bad):
            return None
        return ShardResult(
            key,
            arrays["rows"],
            arrays["logits"],
            arrays.get("features"),
            {int(index): str(reason) for index, reason in json.loads(bad).items()},
        )
    except (SafetensorError, ValueError, KeyError, AttributeError, TypeError):
        return None


def _reason(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, FileError) else error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(error).rstrip(".")
