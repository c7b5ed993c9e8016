"""Images in tar shards, as WebDataset writes them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets._naming import named_labels
from shiftcal.datasets._sources import files_of
from shiftcal.datasets._tar_index import Member, Sample, samples_of
from shiftcal.datasets.encoded import EncodedImages
from shiftcal.errors import FileError

# A label is a few bytes; a description in JSON may be longer.
_LONGEST_LABEL = 1 << 20


class TarImages(EncodedImages):
    """Plain tar files of samples: members that share their name up to the first dot.

    ``folder/0001.jpg`` and ``folder/0001.cls`` are one sample. Its image is the member with the
    ending of an image; its label is the number or name in ``.cls``, else the entry ``"label"`` of
    ``.json``. Names are sorted to give the classes unless these are given. The headers are read
    once, the images where they are; nothing is unpacked, so names are never taken for paths.

    Args:
        source: A file, a folder of ``.tar`` files, a pattern such as ``train-{000..009}.tar``, or
            a list of files.
        classes: Names of the classes, in the order of the indices.
        name: As for every set; by default that of the source.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        classes: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.files = files_of(source, suffix=".tar")
        name = name or (str(source) if isinstance(source, (str, os.PathLike)) else "tar shards")
        members: list[Member] = []
        shard: list[int] = []
        labels: list[int | str | None] = []
        for number, file in enumerate(self.files):
            found, truth = _read_shard(file)
            members += found
            labels += truth
            shard += [number] * len(found)
        if not members:
            raise FileError(f"{name} holds no images. A sample's image ends in .jpg, .png ...")
        self._keys = [member.name for member in members]
        self._shard = np.array(shard, np.int32)
        self._offset = np.array([member.offset for member in members], np.int64)
        self._size = np.array([member.size for member in members], np.int64)
        names, truth_of_all = named_labels(labels, classes, ids=self._keys, name=name)
        super().__init__(len(members), name=name, labels=truth_of_all, classes=names)

    def _encoded(self, index: int) -> bytes:
        file, size = self.files[self._shard[index]], int(self._size[index])
        try:
            with file.open("rb") as opened:
                opened.seek(int(self._offset[index]))
                found = opened.read(size)
        except OSError as error:
            raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
        if len(found) < size:
            raise FileError(f"{file} has become shorter since it was opened; open it again.")
        return found

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The shard and the member: ``train-000.tar/0001.jpg``."""
        return [f"{self.files[self._shard[i]].name}/{self._keys[i]}" for i in map(int, indices)]


def _read_shard(file: Path) -> tuple[list[Member], list[int | str | None]]:
    members: list[Member] = []
    labels: list[int | str | None] = []
    samples = samples_of(file)
    with file.open("rb") as opened:
        for sample in samples:
            label = _label_of(file, opened, sample)
            if sample.image is not None:
                members.append(sample.image)
                labels.append(label)
            elif label is not None:
                raise FileError(
                    f"{file} must have an image for every label; sample {sample.key} has none."
                )
    return members, labels


def _label_of(file: Path, opened: IO[bytes], sample: Sample) -> int | str | None:
    if "cls" in sample.others:
        return _class(_text(file, opened, sample.others["cls"]))
    if "json" not in sample.others:
        return None
    member = sample.others["json"]
    try:
        told: Any = json.loads(_text(file, opened, member))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file}: {member.name} is not JSON: {error}.") from error
    label = told.get("label") if isinstance(told, dict) else None
    if label is None or (isinstance(label, (int, str)) and not isinstance(label, bool)):
        return label
    raise FileError(
        f"{file}: the label in {member.name} must be a whole number or a name; got {label!r:.40}."
    )


def _text(file: Path, opened: IO[bytes], member: Member) -> str:
    if member.size > _LONGEST_LABEL:
        raise FileError(
            f"{file}: {member.name} must hold a label; it has {member.size:,} bytes, more than "
            f"{_LONGEST_LABEL:,}."
        )
    opened.seek(member.offset)
    try:
        return opened.read(member.size).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise FileError(f"{file}: {member.name} must be text in UTF-8; it is not.") from error


def _class(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text
