"""Published data sets: download with resume and checksum, unpack safely, check a copy."""

from __future__ import annotations

import hashlib
import http.client
import os
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from shiftcal.checks import check_choice
from shiftcal.datasets.catalog import About, Download
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.files import flush_file, lock, make_folder, parsing, put_in_place
from shiftcal.registry import DATA_SETS

# Called with how much of the current step is done, and the total if that is known.
Progress = Callable[[int, int | None], None]
_TRIES = 6
# Statuses of a server that is busy or out of order, not of a file that does not exist.
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


def _silent(done: int, total: int | None, /) -> None:
    pass


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
    progress: Progress = _silent,
    wait: Callable[[float], None] = time.sleep,
) -> list[Fetched]:
    """Download a data set into a folder and unpack it; files already there are not fetched again.

    Args:
        name: The data set.
        folder: Where to; created if needed.
        again: Download everything even if it is there.
        progress: Called as the work proceeds.
        wait: Called with the seconds to wait between two tries.

    Raises:
        InputError: If a program cannot download it, with what to do.
        FileError: If a file cannot be downloaded, is not the published one, or the disk is full.
    """
    about: About = DATA_SETS.get(name)
    if not about.downloads:
        raise InputError(f"{about.title} cannot be downloaded by a program. {about.by_hand}")
    make_folder(folder)
    fetched = []
    with lock(folder / "download"):
        for source in about.downloads:
            target, marker = folder / source.file, _marker(source, folder)
            intact = target.is_file() and not _mismatch(target, source.digest)
            new = again or not (marker.is_file() if source.unpack else intact)
            if new:
                if again or not intact:
                    download(source, folder, progress=progress, wait=wait)
                if source.unpack:
                    unpack(target, folder)
                    marker.touch()
                    target.unlink()
            fetched.append(Fetched(source.file, source.url, new, bool(source.digest)))
    return fetched


def _marker(source: Download, folder: Path) -> Path:
    """An empty file that says that this version of an archive was unpacked completely."""
    key = hashlib.sha256(f"{source.url} {source.digest}".encode()).hexdigest()[:16]
    return folder / f".{source.file}.{key}.unpacked"


def download(
    source: Download,
    folder: Path,
    *,
    progress: Progress = _silent,
    timeout: float = 30.0,
    wait: Callable[[float], None] = time.sleep,
) -> Path:
    """Download a file.

    Until it is complete and verified it is called ``<file>.partial``, which a later call resumes.

    Args:
        source: Address and checksum.
        folder: Where to; must exist.
        progress: Called as the work proceeds.
        timeout: Seconds without a byte after which the connection counts as broken.
        wait: Called with the seconds to wait between two tries.

    Raises:
        FileError: If it cannot be downloaded, is not the published file, or the disk is full.
    """
    target, partial = folder / source.file, folder / f"{source.file}.partial"
    failures = 0  # in a row that brought nothing
    while True:
        before = _size(partial)
        try:
            _receive(source, partial, progress, timeout)
            break
        except (OSError, http.client.HTTPException) as error:
            failures = 0 if _size(partial) > before else failures + 1
            status = error.code if isinstance(error, urllib.error.HTTPError) else None
            if failures == _TRIES or status not in (None, *_TRANSIENT):
                raise FileError(
                    f"{source.url} could not be downloaded: {error}. {_size(partial):,} bytes are "
                    "kept; the same command resumes there."
                ) from error
            wait(min(2.0**failures, 60.0))
    if problem := _mismatch(partial, source.digest):
        partial.unlink()
        raise FileError(
            f"{source.url} is not the published file: {problem}. It was removed; try again."
        )
    flush_file(partial)
    put_in_place(partial, target)
    return target


def _receive(source: Download, partial: Path, progress: Progress, timeout: float) -> None:
    """One try: what the server sends is appended to the partial file."""
    start = _size(partial)
    headers = {"User-Agent": f"shiftcal/{version('shiftcal')}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(source.url, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # no bytes beyond those that have arrived
            return
        raise
    with answer:
        resumed = (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-")
        done = start if answer.status == 206 and resumed else 0
        total = done + answer.length if answer.length is not None else source.size or None
        with partial.open("ab" if done else "wb") as file:
            while piece := answer.read1(1 << 18):
                file.write(piece)
                file.flush()
                done += len(piece)
                progress(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _mismatch(path: Path, digest: str) -> str:
    """How a file differs from its published checksum; empty if it does not, or none is known."""
    algorithm, _, digits = digest.partition(":")
    if not digits:
        return ""
    with path.open("rb") as file:
        # MD5 only has to find accidents, and some systems forbid it otherwise.
        got = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return "" if got.hexdigest() == digits else f"{algorithm} {digits}, got {got.hexdigest()}"


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar or zip archive into a folder; files of the same name are replaced.

    Nothing is written outside the folder: :mod:`tarfile`'s ``data`` filter rejects paths and links
    that lead outside and devices, :mod:`zipfile` makes every path relative.

    Raises:
        FileError: If it is damaged or dangerous, or the disk is full.
    """
    with parsing(archive, "an archive", fix="Remove it and download it again."):
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as members:
                members.extractall(folder)
            return
        with tarfile.open(archive) as opened:
            while (member := opened.next()) is not None:
                opened.members = []  # type: ignore[attr-defined]  # millions fill the memory
                opened.extract(member, folder, filter="data")


@dataclass(frozen=True)
class PartFinding:
    """The state of one part of a copy.

    Attributes:
        name: The part.
        state: ``"missing"`` if it is not there, ``"wrong"`` if it is not as published.
        expected: Images there must be.
        found: Images there are.
        decoded: Images that were decoded.
        problems: What is missing or wrong, in sentences.
    """

    name: str
    state: Literal["complete", "missing", "wrong"]
    expected: int
    found: int = 0
    decoded: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class CopyState:
    """The state of a copy of a data set.

    Attributes:
        parts: Of each part that was checked.
        altered: Downloaded files whose checksum is not the published one, with both.
    """

    parts: tuple[PartFinding, ...]
    altered: tuple[str, ...]

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
    progress: Progress = _silent,
) -> CopyState:
    """Compare a copy of a data set with what is published.

    Args:
        name: The data set.
        root: Its folder.
        parts: Parts to check; default: all.
        sample: Images of a part to decode, spread over it; ``None`` is all.
        progress: Called as the work proceeds.

    Raises:
        UnknownName: If there is no such data set, or no such part of it.
    """
    about: About = DATA_SETS.get(name)
    chosen = [check_choice(one, tuple(about.counts), name="part") for one in parts or about.counts]
    files = [source for source in about.downloads if (root / source.file).is_file()]
    problems = {source.file: _mismatch(root / source.file, source.digest) for source in files}
    return CopyState(
        tuple(_check_part(part, about, root, sample, progress) for part in chosen),
        tuple(f"{file}: {problem}" for file, problem in problems.items() if problem),
    )


def _check_part(
    part: str, about: About, root: Path, sample: int | None, progress: Progress
) -> PartFinding:
    expected, k = about.counts[part], about.n_classes
    try:
        images = about.load(root, **({about.option: part} if about.option else {}))
    except InputError as error:
        state: Any = "missing" if isinstance(error, MissingData) else "wrong"
        return PartFinding(part, state, expected, problems=(str(error),))
    n, problems = len(images), []
    if n != expected:
        problems.append(f"there must be {expected:,} images; there are {n:,}.")
    classes = images.classes or tuple(map(str, range(k)))
    if images.labels is not None:
        counts = np.bincount(images.labels, minlength=k)
        each = expected // k if about.balanced and expected % k == 0 else 0
        good = counts == each if each else counts > 0
        odd = [f"{classes[i]} ({counts[i]:,})" for i in np.flatnonzero(~good)]
        problems += _first_few(f"every class must have {each or 'some'} images; not so", odd)
    rows = np.unique(np.linspace(0, n - 1, n if sample is None else min(sample, n)).astype(np.intp))
    bad: list[str] = []
    for start in range(0, len(rows), 256):
        some = rows[start : start + 256]
        read = images._each(images.__getitem__, some, os.cpu_count() or 1)
        bad += [str(image) for image in read if isinstance(image, InputError)]
        progress(start + len(some), len(rows))
    problems += _first_few(f"{len(bad):,} of {len(rows):,} images cannot be read", bad)
    state = "wrong" if problems else "complete"
    return PartFinding(part, state, expected, n, len(rows), tuple(problems))


def _first_few(what: str, items: Sequence[str]) -> list[str]:
    """A sentence that names the first three; none if there are none."""
    more = f", and {len(items) - 3:,} more" if len(items) > 3 else ""
    return [f"{what}: {', '.join(items[:3])}{more}".rstrip(".") + "."] if items else []
