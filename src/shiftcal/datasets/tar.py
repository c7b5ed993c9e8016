"""Images in tar shards, as WebDataset writes them."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.image_files import SUFFIXES, EncodedImages, files_of
from shiftcal.datasets.labels import named_labels
from shiftcal.errors import FileError
from shiftcal.files import parsing

_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5")
# The folder and the name up to its first dot, then the rest.
_NAME = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]+)")
_LONGEST_LABEL = 1 << 20


class _Member(NamedTuple):
    """A file in an archive: its bytes are ``size`` from ``offset`` on."""

    name: str
    offset: int
    size: int


class TarImages(EncodedImages):
    """Plain tar files of samples: members that share their name up to the first dot.

    ``folder/0001.jpg`` and ``folder/0001.cls`` are one sample. Its image is the member with the
    ending of an image; its label is the number or name in ``.cls``, else the entry ``"label"`` of
    ``.json``. Names are sorted to give the classes. Headers are read once and images where they
    are; nothing is unpacked, so names in the archive never become paths.

    Args:
        source: A file, a folder of ``.tar`` files, a pattern such as ``train-{000..009}.tar``, or
            a list of files.
    """

    def __init__(self, source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> None:
        self.files = files_of(source, suffix=".tar")
        name = str(source) if isinstance(source, (str, os.PathLike)) else "tar shards"
        shards = [_read_shard(file) for file in self.files]
        samples = [sample for shard in shards for sample in shard]
        if not samples:
            raise FileError(f"{name} holds no images. A sample's image ends in .jpg, .png ...")
        self._shard = np.repeat(np.arange(len(shards), dtype=np.int32), [len(s) for s in shards])
        self._keys = [member.name for member, _ in samples]
        self._offset = np.array([member.offset for member, _ in samples], np.int64)
        self._size = np.array([member.size for member, _ in samples], np.int64)
        labels = [label for _, label in samples]
        classes, indices = named_labels(labels, None, ids=self._keys, name=name)
        super().__init__(len(samples), name=name, labels=indices, classes=classes)

    def _encoded(self, index: int) -> bytes:
        file, size = self.files[self._shard[index]], int(self._size[index])
        with parsing(file, "a tar file"), file.open("rb") as opened:
            opened.seek(int(self._offset[index]))
            content = opened.read(size)
        if len(content) < size:
            raise FileError(f"{file} has become shorter since it was opened; open it again.")
        return content

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The shard and the member: ``train-000.tar/0001.jpg``."""
        return [f"{self.files[self._shard[i]].name}/{self._keys[i]}" for i in map(int, indices)]


def _read_shard(file: Path) -> list[tuple[_Member, int | str | None]]:
    """The image and the label of every sample, in the order in which they begin."""
    samples: dict[str, dict[str, _Member]] = {}
    for member in _members(file):
        if parts := _NAME.fullmatch(member.name):
            ending = parts[2].lower()
            role = "image" if f".{ending}" in SUFFIXES else ending
            if samples.setdefault(parts[1], {}).setdefault(role, member) != member:
                raise FileError(f"{file} must have one {role} per sample; got {member.name} too.")
    shard = []
    with file.open("rb") as opened:
        for key, sample in samples.items():
            label = _label(file, opened, sample)
            if "image" in sample:
                shard.append((sample["image"], label))
            elif label is not None:
                raise FileError(f"{file} must have an image for every label; {key} has none.")
    return shard


def _members(file: Path) -> Iterator[_Member]:
    """Plain files, by the headers alone."""
    with parsing(file, "a tar file"), file.open("rb") as opened:
        if opened.read(8).startswith(_COMPRESSED):
            raise FileError(
                f"{file} is compressed, but images are read at random, which needs a plain .tar. "
                "Decompress it first."
            )
        opened.seek(0)
        with tarfile.open(fileobj=opened, mode="r:") as archive:
            while (info := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # it keeps every header
                if info.isdir():
                    continue
                if not info.isreg() or info.sparse is not None:
                    raise FileError(
                        f"{file} must hold plain files; {info.name} is a link or the like. Write "
                        "it again: tar --dereference --hard-dereference."
                    )
                yield _Member(info.name, info.offset_data, info.size)
            opened.seek(archive.offset)
            # Python's reader stops at a damaged header as if it were the end.
            if opened.read(512) != bytes(512):
                raise FileError(f"{file} is damaged or cut short. Write it again.")


def _label(file: Path, opened: IO[bytes], sample: dict[str, _Member]) -> int | str | None:
    member = sample.get("cls") or sample.get("json")
    if member is None:
        return None
    opened.seek(member.offset)
    try:
        text = opened.read(min(member.size, _LONGEST_LABEL)).decode("utf-8").strip()
        if "cls" in sample:
            return int(text) if text.isascii() and text.isdigit() else text
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file}: {member.name} is not text or JSON in UTF-8 ({error}).") from error
    label = document.get("label") if isinstance(document, dict) else None
    if label is None or (isinstance(label, (int, str)) and not isinstance(label, bool)):
        return label
    raise FileError(
        f"{file}: the label in {member.name} must be a whole number or a name; got {label!r:.40}."
    )
