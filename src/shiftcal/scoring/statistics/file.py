"""Statistics in a file: JSON with a version and a checksum, tables packed inside it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_classes, check_count
from shiftcal._files import atomic_write
from shiftcal.errors import FileError, InputError
from shiftcal.metrics import MetricSketch
from shiftcal.scoring.statistics.part import Part
from shiftcal.scoring.statistics.score_statistics import PRECISION, ScoreStatistics
from shiftcal.scoring.statistics.totals import LADDER, OF_CONFIDENCE, OF_LABELS, Totals

FORMAT = "shiftcal-statistics"
VERSION = 1
# Higher levels take ten times as long to save a tenth of the size.
_LEVEL = 4
# Larger than statistics of a hundred thousand classes with long names are.
_LARGEST = 1 << 25


def write_statistics(
    path: str | os.PathLike[str], statistics: ScoreStatistics | None, part: Part | None
) -> None:
    """Write statistics, whole or not at all; the same statistics give the same bytes.

    Args:
        path: The file.
        statistics: What it holds; ``None`` for a part of which no image could be read.
        part: Which part of a job they are, if one.
    """
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"shiftcal {version('shiftcal')}",
        "part": None if part is None else part.to_dict(),
        **(_EMPTY if statistics is None else _numbers(statistics)),
    }
    document["checksum"] = _checksum(document)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(document, indent=0, allow_nan=False) + "\n", "utf-8")


# What no row adds; how many classes there are is not known either.
_EMPTY: dict[str, Any] = {"n_classes": 0, "classes": None, "sums": {}, "ladder": [], "cells": {}}


def _numbers(statistics: ScoreStatistics) -> dict[str, Any]:
    cells = statistics.cells.to_arrays()
    return {
        "n_classes": statistics.k,
        "classes": None if statistics.classes is None else list(statistics.classes),
        "sums": dict(statistics.totals.sums),
        "ladder": list(statistics.totals.ladder),
        "cells": {name: _packed(table) for name, table in cells.items()},
    }


def hold_nothing(path: str | os.PathLike[str]) -> bool:
    """Whether a file is of a part of which no image could be read.

    Raises:
        FileError: As for :func:`read_statistics`.
    """
    return _is_empty(_document(Path(path)))


def read_statistics(path: str | os.PathLike[str]) -> tuple[ScoreStatistics, Part | None]:
    """The statistics in a file, and which part of a job they are.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    source = Path(path)
    document = _document(source)
    if _is_empty(document):
        raise FileError(
            f"{source} is of a part of which no image could be read, so that it holds no "
            "statistics. `shiftcal merge` takes it with the other parts."
        )
    try:
        k = check_count(document["n_classes"], name="n_classes", least=2)
        names = document["classes"]
        statistics = ScoreStatistics(
            k,
            None if names is None else check_classes(names, k=k),
            _totals(document["sums"], document["ladder"]),
            _cells(document["cells"]),
        )
        _refuse_contradictions(statistics)
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise FileError(_damaged(source, f"{type(error).__name__}: {error}")) from error
    return statistics, _part(source, document)


def read_part(path: str | os.PathLike[str]) -> Part | None:
    """Which part of a job the statistics in a file are, without unpacking them.

    Raises:
        FileError: As for :func:`read_statistics`.
    """
    return _part(Path(path), _document(Path(path)))


def _part(source: Path, document: dict[str, Any]) -> Part | None:
    node = document.get("part")
    return None if node is None else Part.from_node(source, node)


def _is_empty(document: dict[str, Any]) -> bool:
    return {name: document.get(name) for name in _EMPTY} == _EMPTY


def _document(source: Path) -> dict[str, Any]:
    try:
        if source.stat().st_size > _LARGEST:
            raise FileError(
                f"{source} is too large for statistics, which take a few hundred kilobytes. "
                "Name a file that `shiftcal score --statistics` wrote."
            )
        document = json.loads(source.read_text("utf-8"))
    except OSError as error:
        raise FileError(f"{source} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{source} does not hold statistics, or it is damaged: not JSON ({error}). "
            "Statistics are what `shiftcal score --statistics` or `shiftcal merge` writes."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileError(
            f"{source} does not hold statistics: it has no format {FORMAT!r}. "
            "They are what `shiftcal score --statistics` or `shiftcal merge` writes."
        )
    written = document.get("version")
    if type(written) is not int or written > VERSION:
        raise FileError(
            f"{source} has format version {written!r}, written by {document.get('written_by')}; "
            f"this is shiftcal {version('shiftcal')}, which reads up to version {VERSION}. "
            "Upgrade shiftcal to read it."
        )
    if document.pop("checksum", None) != _checksum(document):
        raise FileError(_damaged(source, "its checksum does not fit its content"))
    return document


def _totals(sums: dict[str, Any], ladder: list[Any]) -> Totals:
    names = (*OF_CONFIDENCE, *OF_LABELS) if ladder else OF_CONFIDENCE
    whole = {name: _whole(sums[name]) for name in names}
    if len(ladder) not in (0, LADDER) or len(sums) != len(names):
        raise InputError(f"the sums are not those of {FORMAT} version {VERSION}")
    return Totals(whole, tuple(_whole(value) for value in ladder))


def _cells(tables: dict[str, str]) -> MetricSketch:
    wanted = MetricSketch(precision=PRECISION).to_arrays()
    found = {name: _unpacked(tables[name], like=table) for name, table in wanted.items()}
    if not np.array_equal(found["settings"], wanted["settings"]):
        raise InputError("its cells are not of the size that statistics have")
    return MetricSketch.from_arrays(found)


def _refuse_contradictions(statistics: ScoreStatistics) -> None:
    """What no rows could have led to."""
    cells, sums = statistics.cells.to_arrays(), statistics.totals.sums
    count, correct = cells["top1_count"], cells["top1_correct"]
    right = sums.get("correct", 0)
    if not (
        sums["rows"] == statistics.cells.n == count.sum() > 0
        and right == correct.sum()
        and (correct >= 0).all()
        and (count >= correct).all()
        and sums.get("regret", 0) >= 0
        and 0 <= sums.get("constant", 0) <= sums["rows"]
    ):
        raise InputError("its numbers contradict one another")


def _packed(table: NDArray[Any]) -> str:
    raw = np.ascontiguousarray(table, dtype=table.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(raw, _LEVEL)).decode("ascii")


def _unpacked(text: str, *, like: NDArray[Any]) -> NDArray[Any]:
    """The table, if it has the size it must have; nothing larger is ever unpacked."""
    unpack = zlib.decompressobj()
    raw = unpack.decompress(base64.b64decode(text, validate=True), like.nbytes + 1)
    table = np.frombuffer(raw, dtype=like.dtype.newbyteorder("<"))
    return table.astype(like.dtype).reshape(like.shape)


def _whole(value: object) -> int:
    if type(value) is not int:
        raise InputError(f"it holds {value!r} where a whole number belongs")
    return value


def _checksum(document: dict[str, Any]) -> str:
    content = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def _damaged(source: Path, why: str) -> str:
    return f"{source} is damaged: {why}. Score that part again."
