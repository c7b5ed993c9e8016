"""A published data set fetched from its official addresses; what is there is not fetched twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.datasets._room import check_room
from shiftcal.datasets.about import Download
from shiftcal.datasets.check import check_data_set
from shiftcal.datasets.download import Line, Unwatched, Watch, download
from shiftcal.datasets.known import known
from shiftcal.datasets.unpack import unpack
from shiftcal.errors import FileError, InputError

# What was fetched into a folder, written after each file.
RECEIPT = ".shiftcal-fetched.json"
_LOCK = ".shiftcal-fetching.lock"


@dataclass(frozen=True)
class Fetched:
    """What became of one file of a data set.

    Attributes:
        file: Its name.
        url: Its address.
        new: Whether it was fetched now; ``False`` if it was there already.
        verified: Whether a checksum is published, and so was compared.
        holds: What it is or was unpacked to, at the top of the folder.
    """

    file: str
    url: str
    new: bool
    verified: bool
    holds: tuple[str, ...]


def get_data_set(
    name: str,
    folder: Path,
    *,
    again: bool = False,
    keep_archives: bool = False,
    watch: Watch | None = None,
    line: Line | None = None,
) -> list[Fetched]:
    """Fetch a data set into a folder; none of what is there in full is fetched again.

    Args:
        name: Of the data set.
        folder: Where to; made if it is not there.
        again: Fetch everything even if it is there.
        keep_archives: Leave archives in the folder after they were unpacked.
        watch: Told of progress and of broken connections.
        line: Patience with the network.

    Returns:
        What became of each file; nothing if the data set was complete in the folder without our
        having fetched it.

    Raises:
        InputError: If it cannot be fetched by a program, with what to do.
        FileError: If a file cannot be fetched, is not what was published, or the disk is full.
    """
    listed, _, about = known(name)
    if not about.downloads:
        raise InputError(f"{about.title} cannot be fetched by a program. {about.by_hand}".rstrip())
    _make(folder)
    with _alone(folder):
        receipt = {} if again else _read_receipt(folder)
        wanted = [source for source in about.downloads if not _there(source, receipt, folder)]
        if wanted and not receipt and not again and _complete(listed, folder):
            return []
        needed = _needed(wanted, keep_archives=keep_archives) - _begun(wanted, folder)
        check_room(folder, needed, about.title)
        for source in wanted:
            receipt[source.file] = _fetch(
                source, folder, again=again, watch=watch or Unwatched(), line=line or Line()
            )
            _write_receipt(folder, receipt)
            _tidy(source, folder, keep=keep_archives)
    return [
        Fetched(
            source.file,
            source.url,
            source in wanted,
            bool(source.digest),
            tuple(receipt[source.file]["holds"]),
        )
        for source in about.downloads
    ]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise FileError(f"{folder} is a file. Name a folder, or one that is to be made.") from error


def _fetch(
    source: Download, folder: Path, *, again: bool, watch: Watch, line: Line
) -> dict[str, Any]:
    file = download(source, folder, watch=watch, line=line, again=again)
    holds = [source.file]
    if source.unpack:
        doing = f"unpacking {source.file}"
        holds = unpack(file, folder, step=lambda done, size: watch.moved(doing, done, size))
    return {"url": source.url, "digest": source.digest, "holds": holds}


def _tidy(source: Download, folder: Path, *, keep: bool) -> None:
    # After the receipt: killed in between, an archive is left over, but nothing fetched twice.
    if source.unpack and not keep:
        (folder / source.file).unlink(missing_ok=True)


def _there(source: Download, receipt: dict[str, Any], folder: Path) -> bool:
    entry = receipt.get(source.file)
    if entry is None or (entry["url"], entry["digest"]) != (source.url, source.digest):
        return False
    return all((folder / name).exists() for name in entry["holds"])


def _complete(name: str, folder: Path) -> bool:
    """Whether the data set is there though we did not fetch it."""
    if not any(not path.name.startswith(".") for path in folder.iterdir()):
        return False
    return check_data_set(name, folder, sample=0, digests=False).complete


def _needed(wanted: list[Download], *, keep_archives: bool) -> int:
    """Bytes that are known to be needed: an archive stands beside its content for a while."""
    packed = [source.size for source in wanted if source.unpack]
    beside = sum(packed) if keep_archives else max(packed, default=0)
    return sum(source.size for source in wanted) + beside


def _begun(wanted: list[Download], folder: Path) -> int:
    """Bytes of what is wanted that are on the disk already."""
    files = [folder / f"{source.file}{end}" for source in wanted for end in ("", ".partial")]
    return sum(file.stat().st_size for file in files if file.is_file())


def _read_receipt(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / RECEIPT).read_text("utf-8"))
        return {
            file: {k: entry[k] for k in ("url", "digest", "holds")} for file, entry in found.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _write_receipt(folder: Path, receipt: dict[str, Any]) -> None:
    with atomic_write(folder / RECEIPT) as temporary:
        temporary.write_text(json.dumps(receipt, indent=1), "utf-8")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep another process from fetching into the same folder, where the system can do that."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileError(
                f"another process is fetching into {folder}. Wait for it, or name another folder."
            ) from error
        except OSError:  # a network disk that knows no locks
            pass
        yield
