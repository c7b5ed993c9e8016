"""Published data sets: download with resume and checksum, unpack safely, check a copy."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.client
import os
import shutil
import ssl
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.datasets.image_files import FileImages
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import FileError, InputError, MissingData, UnknownName
from shiftcal.files import flush_file, make_folder, parsing, put_in_place
from shiftcal.registry import DATA_SETS, suggest

# Called with what is being done, how much of it is done, and the total if that is known.
Progress = Callable[[str, int, int | None], None]


def _silent(doing: str, done: int, total: int | None, /) -> None:
    pass


# --------------------------------------------------------------------------------------
# Download
# --------------------------------------------------------------------------------------

_TRIES, _TIMEOUT = 6, 30.0
# A try that brings this many bytes does not count as a failure: long files on poor lines.
_WORTH_A_TRY = 1 << 20
# Statuses of a server that is busy or out of order, not of a file that does not exist.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Fetched:
    """One file of a data set after :func:`get_data_set`.

    Attributes:
        file: Its name.
        url: Its address.
        new: Whether it was downloaded now; ``False`` if it was there already.
        verified: Whether a checksum is published, and so was compared.
    """

    file: str
    url: str
    new: bool
    verified: bool


def get_data_set(
    name: str,
    folder: Path,
    *,
    again: bool = False,
    keep_archives: bool = False,
    progress: Progress = _silent,
    wait: Callable[[float], None] = time.sleep,
) -> list[Fetched]:
    """Download a data set into a folder and unpack it; files already there are not fetched again.

    Args:
        name: The data set.
        folder: Where to; created if needed.
        again: Download everything even if it is there.
        keep_archives: Keep archives after unpacking.
        progress: Called as the work goes on.
        wait: Called with the seconds to wait between two tries.

    Returns:
        One entry per file; none if a complete copy was there that this function did not download.

    Raises:
        InputError: If a program cannot download it, with what to do.
        FileError: If a file cannot be downloaded, is not the published one, or the disk is full.
    """
    about: About = DATA_SETS.get(name)
    if not about.downloads:
        raise InputError(
            f"{about.title} cannot be downloaded by a program. {about.by_hand}".rstrip()
        )
    make_folder(folder)
    with _locked(folder):
        done = [
            not again
            and (_marker(source, folder).is_file() if source.unpack else _is_there(source, folder))
            for source in about.downloads
        ]
        if not any(done) and not again and _looks_complete(name, folder):
            return []
        for source, there in zip(about.downloads, done, strict=True):
            if there:
                continue
            file = download(source, folder, again=again, progress=progress, wait=wait)
            if source.unpack:
                progress(f"unpacking {source.file}", 0, None)
                unpack(file, folder)
                _marker(source, folder).touch()
                if not keep_archives:
                    file.unlink()
    return [
        Fetched(source.file, source.url, not there, bool(source.digest))
        for source, there in zip(about.downloads, done, strict=True)
    ]


def was_fetched(about: About, folder: Path) -> bool:
    """Whether :func:`get_data_set` has unpacked an archive of this data set into the folder."""
    return any(_marker(source, folder).is_file() for source in about.downloads)


def download(
    source: Download,
    folder: Path,
    *,
    again: bool = False,
    progress: Progress = _silent,
    tries: int = _TRIES,
    timeout: float = _TIMEOUT,
    wait: Callable[[float], None] = time.sleep,
) -> Path:
    """Download a file; if it is there already, only verify it.

    Until it is complete and verified it is called ``<file>.partial``, which a later call resumes.

    Args:
        source: Address, name and checksum.
        folder: Where to; must exist.
        again: Download it even if it is there.
        progress: Called as the work goes on.
        tries: Failures in a row, without progress in between, before giving up.
        timeout: Seconds without a byte after which the connection counts as broken.
        wait: Called with the seconds to wait between two tries.

    Raises:
        FileError: If it cannot be downloaded, is not the published file, or the disk is full.
    """
    target, partial = folder / source.file, folder / f"{source.file}.partial"
    if target.exists() and not again:
        _verify(source, target, progress, "Remove it, and the same command downloads it.")
        return target
    failures = 0
    while True:
        before = _size(partial)
        try:
            _receive(source, partial, progress, timeout)
            break
        except (OSError, http.client.HTTPException) as error:
            reason = _transient_reason(source.url, error)
            failures = 1 if _size(partial) - before >= _WORTH_A_TRY else failures + 1
            if failures >= tries:
                raise FileError(
                    f"{source.url} could not be downloaded: {reason}; gave up after {failures} "
                    f"tries. {_size(partial):,} bytes are kept; the same command resumes there."
                ) from error
            pause = min(2.0 ** (failures - 1), 60.0)
            progress(f"{source.file}: {reason}, trying again in {pause:.0f} s", 0, None)
            wait(pause)
    try:
        _verify(source, partial, progress, "It was removed; try again.")
        flush_file(partial)
        put_in_place(partial, target)
    finally:
        partial.unlink(missing_ok=True)
        _tag_file(partial).unlink(missing_ok=True)
    return target


def _receive(source: Download, partial: Path, progress: Progress, timeout: float) -> None:
    """One try: what the server sends is appended to the partial file."""
    start, tag_file = _size(partial), _tag_file(partial)
    tag = tag_file.read_text("utf-8") if start and tag_file.is_file() else ""
    headers = {"User-Agent": f"shiftcal/{version('shiftcal')}", "Accept-Encoding": "identity"}
    # Without a tag of the server's version, only a checksum can tell that the file has changed.
    if start and (tag or source.digest):
        headers |= {"Range": f"bytes={start}-"} | ({"If-Range": tag} if tag else {})
    checked = bool(source.digest)
    _check_address(source.url, checked)
    opener = urllib.request.build_opener(_Redirects(checked))
    try:
        answer = opener.open(urllib.request.Request(source.url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{start}":
            return
        if error.code == 416:
            partial.unlink()
            raise ConnectionError("the file on the server has changed") from error
        raise
    with answer:
        if "html" in (answer.headers.get("Content-Type") or ""):
            raise FileError(
                f"{source.url} gave a web page instead of {source.file}. Open it in a browser to "
                "see what it asks for."
            )
        if answer.status != 206:
            start = 0
            partial.write_bytes(b"")
            tag_file.write_text(_tag(answer.headers), "utf-8")
        elif not (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-"):
            partial.unlink()
            raise ConnectionError("the file on the server has changed")
        total = source.size or None if answer.length is None else start + answer.length
        done = start
        with partial.open("ab") as file:
            progress(source.file, done, total)
            while piece := answer.read1(1 << 18):
                try:
                    file.write(piece)
                    file.flush()
                except OSError as error:
                    raise FileError(
                        f"{partial} could not be written: {error.strerror or error}. What has "
                        "arrived is kept; the same command resumes there."
                    ) from error
                done += len(piece)
                progress(source.file, done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _tag_file(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.tag")


def _tag(headers: Any) -> str:
    """What identifies the server's version of a file; a weak ETag does not."""
    etag = headers.get("ETag") or ""
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified") or ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _transient_reason(url: str, error: Exception) -> str:
    """What went wrong, if another try may help.

    Raises:
        FileError: If not.
    """
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        reason = f"the server answers {error.code} {' '.join(str(error.reason).split())}"
        if error.code not in _TRANSIENT:
            raise FileError(f"{url} could not be downloaded: {reason}. It may have moved.")
        return reason
    if isinstance(cause, ssl.SSLCertVerificationError):
        raise FileError(f"{url} could not be downloaded: its server has no valid certificate.")
    if isinstance(cause, TimeoutError):
        return "no data arrived for too long"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, checked: bool) -> None:
        self.checked = checked

    def redirect_request(self, *args: Any, **kwargs: Any) -> urllib.request.Request | None:
        _check_address(args[-1], self.checked)
        return super().redirect_request(*args, **kwargs)


def _check_address(url: str, checked: bool) -> None:
    scheme = urlsplit(url).scheme.lower()
    if scheme not in ("http", "https"):
        raise FileError(f"{url!r} is not downloaded: an address must begin with https: or http:.")
    if scheme == "http" and not checked:
        raise FileError(
            f"{url} is not downloaded: plain http can be tampered with, and no checksum is known "
            "to find that out. Download it by hand from a place you trust."
        )


def _verify(source: Download, path: Path, progress: Progress, advice: str) -> None:
    if source.digest:
        progress(f"verifying {source.file}", 0, None)
        problem = _mismatch(path, source.digest)
    else:
        wrong = source.size not in (0, _size(path))
        problem = f"{source.size:,} bytes expected, got {_size(path):,}" if wrong else ""
    if problem:
        raise FileError(f"{path} is not the published file: {problem}. {advice}")


def _is_there(source: Download, folder: Path) -> bool:
    file = folder / source.file
    return file.is_file() and not (source.digest and _mismatch(file, source.digest))


def _mismatch(path: Path, digest: str, *, unpacked: bool = False) -> str:
    """How a file differs from its published checksum; empty if it does not.

    Args:
        path: The file.
        digest: ``md5:...`` or ``sha256:...``.
        unpacked: Whether the checksum is of what the file, ``.gz`` or ``.bz2``, unpacks to.
    """
    algorithm, _, digits = digest.lower().partition(":")
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}[path.suffix] if unpacked else open
    with parsing(path, "a compressed file"), opener(path, "rb") as file:
        # MD5 only has to find accidents, and some systems forbid it otherwise.
        got = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return "" if got.hexdigest() == digits else f"{algorithm} {digits}, got {got.hexdigest()}"


def _marker(source: Download, folder: Path) -> Path:
    """An empty file that says that this version of an archive was unpacked completely."""
    key = hashlib.sha256(f"{source.url} {source.digest}".encode()).hexdigest()[:16]
    return folder / f".{source.file}.{key}.unpacked"


def _looks_complete(name: str, folder: Path) -> bool:
    if all(path.name.startswith(".") for path in folder.iterdir()):
        return False
    return check_data_set(name, folder, sample=0, digests=False).complete


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".shiftcal.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise FileError(
            f"another process is downloading into {folder}. Wait for it, or name another folder."
        ) from error
    try:
        yield
    finally:
        lock.release()


# --------------------------------------------------------------------------------------
# Unpack
# --------------------------------------------------------------------------------------


def unpack(archive: Path, folder: Path, *, most: int | None = None) -> None:
    """Unpack a tar or zip archive into a folder, completely or not at all.

    Nothing is written outside the folder: :mod:`tarfile`'s ``data`` filter rejects paths and links
    that lead outside and devices, :mod:`zipfile` makes every path relative.

    Args:
        archive: A tar, plain or compressed, or a ``.zip``.
        folder: Where its content goes. Files of the same name are replaced.
        most: Bytes it may unpack to; by default a hundred times its size and 64 MiB, since images
            hardly shrink.

    Raises:
        FileError: If it is damaged, dangerous or too large, or the disk is full.
    """
    most = 100 * _size(archive) + (1 << 26) if most is None else most
    temporary = folder / f".{archive.name}.unpacking"
    shutil.rmtree(temporary, ignore_errors=True)  # of a run that was killed
    temporary.mkdir(mode=0o700)
    try:
        with parsing(archive, "an archive", fix="Remove it and download it again."):
            try:
                if archive.suffix.lower() == ".zip":
                    _unpack_zip(archive, temporary, most)
                else:
                    _unpack_tar(archive, temporary, most)
                _move_content(temporary, folder)
            except OSError as error:
                if error.errno is None:  # a decoder's, such as gzip's of a bad checksum
                    raise
                raise FileError(
                    f"{archive} could not be unpacked into {folder}: {error.strerror}. It is kept; "
                    "make room, and the same command continues."
                ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unpack_zip(archive: Path, folder: Path, most: int) -> None:
    with zipfile.ZipFile(archive) as opened:
        _check_growth(archive, sum(member.file_size for member in opened.infolist()), most)
        opened.extractall(folder)


def _unpack_tar(archive: Path, folder: Path, most: int) -> None:
    unpacked = 0
    with tarfile.open(archive) as opened:
        while (member := opened.next()) is not None:
            opened.members = []  # type: ignore[attr-defined]  # millions would fill the memory
            unpacked += member.size
            _check_growth(archive, unpacked, most)
            opened.extract(member, folder, filter="data")


def _check_growth(archive: Path, unpacked: int, most: int) -> None:
    if unpacked > most:
        raise FileError(
            f"{archive} was not unpacked: its {_size(archive):,} bytes would become more than "
            f"{most:,}. Do not trust it."
        )


def _move_content(source: Path, folder: Path) -> None:
    for path in sorted(source.iterdir()):
        target = folder / path.name
        if path.is_dir() and target.is_dir() and not path.is_symlink():
            _move_content(path, target)
        else:
            path.replace(target)


# --------------------------------------------------------------------------------------
# Check
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartFinding:
    """The state of one part of a copy.

    Attributes:
        name: The part.
        state: ``"missing"`` if none of it is there, ``"wrong"`` if it is not as published.
        expected: Images there must be.
        found: Images there are.
        decoded: Images that were decoded.
        problems: What is missing or wrong, in sentences.
    """

    name: str
    state: Literal["complete", "missing", "wrong"]
    expected: int
    found: int
    decoded: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """The state of a copy of a data set.

    Attributes:
        parts: Of each part that was checked.
        verified: Files whose checksum is the published one.
        altered: Files with another checksum, with both.
        absent: Files with a published checksum that are not there. A complete copy may lack them:
            some sets have several layouts.
        checksums: ``"verified"``, ``"altered"``, ``"absent"`` if the copy has none of the files
            that have one, ``"none known"`` if none is published, or ``"not compared"``.
    """

    parts: tuple[PartFinding, ...]
    verified: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    checksums: Literal["verified", "altered", "absent", "none known", "not compared"] = (
        "not compared"
    )

    @property
    def complete(self) -> bool:
        """Whether everything is there and as published."""
        return not self.altered and all(part.state == "complete" for part in self.parts)


def check_data_set(
    name: str,
    root: Path,
    *,
    parts: Sequence[str] = (),
    sample: int | None = 100,
    digests: bool = True,
    progress: Progress = _silent,
) -> Findings:
    """Compare a copy of a data set with what is published.

    Args:
        name: The data set.
        root: Its folder.
        parts: Parts to check; default: all.
        sample: Images of a part to decode, spread over it; ``None`` is all.
        digests: Whether to verify checksums of files.
        progress: Called as the work goes on.

    Raises:
        UnknownName: If there is no such data set, or no such part of it.
    """
    about: About = DATA_SETS.get(name)
    known = {part.name: part for part in about.parts}
    for part_name in parts:
        if part_name not in known:
            raise UnknownName(
                f"no part of {about.title} is called {part_name!r}. {suggest(part_name, [*known])}"
            )
    chosen = [part for part in about.parts if not parts or part.name in parts]
    states = tuple(_check_part(part, about, root, sample, progress) for part in chosen)
    if not digests:
        return Findings(states)
    verified, altered, absent = [], [], []
    checksums = about.checksums(chosen)
    for file_name, digest in checksums.items():
        file = next((root / at for at in about.paths(file_name) if (root / at).is_file()), None)
        if file is None:
            absent.append(file_name)
            continue
        progress(f"verifying {file_name}", 0, None)
        unpacked = file.suffix in (".gz", ".bz2") and not file_name.endswith(file.suffix)
        try:
            problem = _mismatch(file, digest, unpacked=unpacked)
        except FileError as error:
            problem = str(error)
        if problem:
            altered.append(f"{file_name}: {problem}")
        else:
            verified.append(file_name)
    return Findings(
        states,
        tuple(verified),
        tuple(altered),
        tuple(absent),
        "altered"
        if altered
        else "verified"
        if verified
        else "absent"
        if checksums
        else "none known",
    )


def _check_part(
    part: Part, about: About, root: Path, sample: int | None, progress: Progress
) -> PartFinding:
    if not root.is_dir():
        problem = f"{root} is not a folder." if root.exists() else f"there is no {root}."
        return PartFinding(part.name, "missing", part.n, 0, 0, (problem,))
    try:
        images = about.load(root, **part.options)
    except InputError as error:
        state: Any = "missing" if isinstance(error, MissingData) else "wrong"
        return PartFinding(part.name, state, part.n, 0, 0, (str(error),))
    problems = _wrong_counts(part, images, about)
    if isinstance(images, FileImages):
        gone = [file for file in images.files if not (images.root / file).is_file()]
        problems += _first_few("missing files", gone)
    most = len(images) if sample is None else min(sample, len(images))
    chosen = np.unique(np.linspace(0, len(images) - 1, most).round().astype(np.intp)).tolist()

    def reason(index: int) -> str:
        try:
            images[index]
        except InputError as error:
            return str(error)
        return ""

    unreadable: list[str] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for start in range(0, len(chosen), 256):
            some = chosen[start : start + 256]
            unreadable += filter(None, pool.map(reason, some))
            progress(part.name, start + len(some), len(chosen))
    problems += _first_few(
        f"{len(unreadable):,} of {len(chosen):,} images cannot be read", unreadable
    )
    state = "wrong" if problems else "complete"
    return PartFinding(part.name, state, part.n, len(images), len(chosen), tuple(problems))


def _wrong_counts(part: Part, images: ImageSet, about: About) -> list[str]:
    problems = []
    if len(images) != part.n:
        problems.append(f"there must be {part.n:,} images; there are {len(images):,}.")
    classes = images.classes or ()
    if classes and len(classes) != about.n_classes:
        problems.append(f"there must be {about.n_classes:,} classes; there are {len(classes):,}.")
    if images.labels is None:
        return problems
    counts = np.bincount(images.labels, minlength=max(len(classes), about.n_classes))
    names = [*classes, *map(str, range(len(classes), len(counts)))]
    if part.per_class:
        off = [
            f"{name} ({count:,})"
            for name, count in zip(names, counts, strict=True)
            if count != part.per_class
        ]
        problems += _first_few(f"every class must have {part.per_class:,} images; not so", off)
    elif len(counts) == len(classes):
        empty = [name for name, count in zip(names, counts, strict=True) if not count]
        problems += _first_few("no images of", empty)
    return problems


def _first_few(what: str, items: Sequence[str]) -> list[str]:
    """A sentence that names the first three; none if there are none."""
    more = f", and {len(items) - 3:,} more" if len(items) > 3 else ""
    return [f"{what}: {', '.join(items[:3])}{more}".rstrip(".") + "."] if items else []
