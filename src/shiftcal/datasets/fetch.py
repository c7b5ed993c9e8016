"""Published data sets: download with resume and checksum, unpack safely, check a copy."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.client
import os
import ssl
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
from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.files import flush_file, lock, make_folder, parsing, put_in_place, refuse_bomb
from shiftcal.registry import DATA_SETS

# Called with the current step, how much of it is done, and the total if that is known.
Progress = Callable[[str, int, int | None], None]
_TRIES, _TIMEOUT = 6, 30.0
# A try that brings this many bytes does not count as a failure: long files on poor lines.
_WORTH_A_TRY = 1 << 20
# Statuses of a server that is busy or out of order, not of a file that does not exist.
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


def _silent(doing: str, done: int, total: int | None, /) -> None:
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
            there = marker.is_file() if source.unpack else target.is_file()
            if there and not source.unpack and source.digest:
                there = not _mismatch(target, source.digest)
            if again or not there:
                download(source, folder, again=again, progress=progress, wait=wait)
                if source.unpack:
                    progress(f"unpacking {source.file}", 0, None)
                    unpack(target, folder)
                    marker.touch()
                    if not keep_archives:
                        target.unlink()
            fetched.append(
                Fetched(source.file, source.url, again or not there, bool(source.digest))
            )
    return fetched


def was_fetched(about: About, folder: Path) -> bool:
    """Whether :func:`get_data_set` has unpacked an archive of this data set into the folder."""
    return any(_marker(source, folder).is_file() for source in about.downloads)


def _marker(source: Download, folder: Path) -> Path:
    """An empty file that says that this version of an archive was unpacked completely."""
    key = hashlib.sha256(f"{source.url} {source.digest}".encode()).hexdigest()[:16]
    return folder / f".{source.file}.{key}.unpacked"


def download(
    source: Download,
    folder: Path,
    *,
    again: bool = False,
    progress: Progress = _silent,
    timeout: float = _TIMEOUT,
    wait: Callable[[float], None] = time.sleep,
) -> Path:
    """Download a file; if it is there already, only verify it.

    Until it is complete and verified it is called ``<file>.partial``, which a later call resumes.

    Args:
        source: Address, name and checksum.
        folder: Where to; must exist.
        again: Download it even if it is there.
        progress: Called as the work proceeds.
        timeout: Seconds without a byte after which the connection counts as broken.
        wait: Called with the seconds to wait between two tries.

    Raises:
        FileError: If it cannot be downloaded, is not the published file, or the disk is full.
    """
    target, partial = folder / source.file, folder / f"{source.file}.partial"
    if target.exists() and not again:
        _verify(source, target, "Remove it, and the same command downloads it.")
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
            if failures >= _TRIES:
                raise FileError(
                    f"{source.url} could not be downloaded: {reason}; gave up after {failures} "
                    f"tries. {_size(partial):,} bytes are kept; the same command resumes there."
                ) from error
            pause = min(2.0 ** (failures - 1), 60.0)
            progress(f"{source.file}: {reason}, trying again in {pause:.0f} s", 0, None)
            wait(pause)
    progress(f"verifying {source.file}", 0, None)
    try:
        _verify(source, partial, "It was removed; try again.")
        flush_file(partial)
        put_in_place(partial, target)
    finally:
        partial.unlink(missing_ok=True)
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
        if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{start}":
            return  # everything had arrived
        if error.code == 416:
            partial.unlink()
            raise ConnectionError("the file on the server has changed") from error
        raise
    with answer:
        if not answer.url.startswith("https:") and not source.digest:
            raise FileError(
                f"{answer.url} is not downloaded: only https can be trusted for a file without a "
                "published checksum. Download it by hand."
            )
        if "html" in (answer.headers.get("Content-Type") or ""):
            raise FileError(
                f"{source.url} returned a web page instead of {source.file}. Open it in a browser "
                "to see what it asks for."
            )
        resumed = (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-")
        if answer.status != 206 or not resumed:
            start = 0
        total = start + answer.length if answer.length is not None else source.size or None
        done = start
        progress(source.file, done, total)
        with partial.open("ab" if start else "wb") as file:
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


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _transient_reason(url: str, error: Exception) -> str:
    """What went wrong, if another try may help.

    Raises:
        FileError: If not.
    """
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    permanent = isinstance(cause, ssl.SSLCertVerificationError)
    if isinstance(error, urllib.error.HTTPError):
        reason = f"the server answers {error.code} {' '.join(str(error.reason).split())}"
        permanent = error.code not in _TRANSIENT
    if permanent:
        raise FileError(f"{url} could not be downloaded: {reason}.") from error
    return reason


def _verify(source: Download, path: Path, advice: str) -> None:
    problem = _mismatch(path, source.digest) if source.digest else ""
    if not source.digest and source.size not in (0, _size(path)):
        problem = f"{source.size:,} bytes expected, got {_size(path):,}"
    if problem:
        raise FileError(f"{path} is not the published file: {problem}. {advice}")


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


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar or zip archive into a folder; files of the same name are replaced.

    Nothing is written outside the folder: :mod:`tarfile`'s ``data`` filter rejects paths and links
    that lead outside and devices, :mod:`zipfile` makes every path relative.

    Raises:
        FileError: If it is damaged, dangerous or too large, or the disk is full.
    """
    with parsing(archive, "an archive", fix="Remove it and download it again."):
        try:
            if archive.suffix.lower() == ".zip":
                with zipfile.ZipFile(archive) as members:
                    refuse_bomb(archive, unpacked=sum(x.file_size for x in members.infolist()))
                    members.extractall(folder)
                return
            unpacked = 0
            with tarfile.open(archive) as opened:
                while (member := opened.next()) is not None:
                    opened.members = []  # type: ignore[attr-defined]  # millions fill the memory
                    unpacked += member.size
                    refuse_bomb(archive, unpacked=unpacked)
                    opened.extract(member, folder, filter="data")
        except OSError as error:
            if error.errno is None:  # a decoder's, such as gzip's of a bad checksum
                raise
            raise FileError(
                f"{archive} could not be unpacked into {folder}: {error.strerror}. It is kept; "
                "make room, and the same command continues."
            ) from error


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
            that have one, or ``"none known"`` if none is published.
    """

    parts: tuple[PartFinding, ...]
    verified: tuple[str, ...]
    altered: tuple[str, ...]
    absent: tuple[str, ...]
    checksums: Literal["verified", "altered", "absent", "none known"]

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
) -> Findings:
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
    known = {part.name: part for part in about.parts}
    chosen = [known[check_choice(one, tuple(known), name="part")] for one in parts or known]
    states = tuple(_check_part(part, about, root, sample, progress) for part in chosen)
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
    outcome: Any = (altered and "altered") or (verified and "verified")
    outcome = outcome or ("absent" if checksums else "none known")
    return Findings(states, tuple(verified), tuple(altered), tuple(absent), outcome)


def _check_part(
    part: Part, about: About, root: Path, sample: int | None, progress: Progress
) -> PartFinding:
    try:
        if not root.is_dir():
            raise MissingData(f"{root} is not a folder.")
        images = about.load(root, **part.options)
    except InputError as error:
        state: Any = "missing" if isinstance(error, MissingData) else "wrong"
        return PartFinding(part.name, state, part.n, 0, 0, (str(error),))
    classes = images.classes or tuple(map(str, range(about.n_classes)))
    problems = [
        f"there must be {expected:,} {what}; there are {found:,}."
        for what, expected, found in (
            ("images", part.n, len(images)),
            ("classes", about.n_classes, len(classes)),
        )
        if found != expected
    ]
    if images.labels is not None:
        counts = np.bincount(images.labels, minlength=len(classes))
        good = counts == part.per_class if part.per_class else counts > 0
        off = [f"{classes[index]} ({counts[index]:,})" for index in np.flatnonzero(~good)]
        rule = f"every class must have {part.per_class or 'some'} images; not so"
        problems += _first_few(rule, off)
    most = len(images) if sample is None else min(sample, len(images))
    chosen = np.unique(np.linspace(0, len(images) - 1, most).round().astype(np.intp))
    bad: list[str] = []
    for start in range(0, len(chosen), 256):
        some = chosen[start : start + 256]
        read = images._each(images.__getitem__, some, os.cpu_count() or 1)
        bad += [str(image) for image in read if isinstance(image, InputError)]
        progress(part.name, start + len(some), len(chosen))
    problems += _first_few(f"{len(bad):,} of {len(chosen):,} images cannot be read", bad)
    state = "wrong" if problems else "complete"
    return PartFinding(part.name, state, part.n, len(images), len(chosen), tuple(problems))


def _first_few(what: str, items: Sequence[str]) -> list[str]:
    """A sentence that names the first three; none if there are none."""
    more = f", and {len(items) - 3:,} more" if len(items) > 3 else ""
    return [f"{what}: {', '.join(items[:3])}{more}".rstrip(".") + "."] if items else []
