"""What every figure is: its numbers and words, drawn, written and read back."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, final

from shiftcal._files import atomic_write
from shiftcal._registry import Registry
from shiftcal.errors import FileError, InputError
from shiftcal.report.figures import _style
from shiftcal.report.figures._record import Record, from_plain, to_plain

FORMAT, VERSION = "shiftcal-figure", 1
_DOTS_PER_INCH = 200
# What a file would otherwise say of the day and the program, and so differ.
_SILENT: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
}


@dataclass(frozen=True, kw_only=True)
class FigureData(Record, ABC):
    """Everything a figure shows, in the units shown.

    Attributes:
        kind: What the figure is called in its file: the name of the file of its class.
        title: Above the picture; empty for none.
        note: In small print below it: what an interval is, how many repetitions.
    """

    kind: ClassVar[str]

    title: str = ""
    note: str = ""

    @final
    def to_dict(self) -> dict[str, Any]:
        """Its values in JSON's types, with its kind; :meth:`from_dict` gives it back, equal."""
        return {"kind": self.kind, **to_plain(self)}

    @final
    @staticmethod
    def from_dict(values: dict[str, Any]) -> FigureData:
        """The figure of the kind that the values name.

        Raises:
            UnknownName: If there is no such kind.
            InputError: If a value is missing, unknown, not of its type, or does not fit others.
        """
        values = dict(values)
        kind = values.pop("kind", None)
        figure: FigureData = from_plain(_registry.get(kind), values, where=f"the figure {kind!r}")
        return figure

    @final
    def draw(self) -> Any:
        """A ``matplotlib.figure.Figure``, without pyplot and without changing any setting.

        Raises:
            MissingExtra: If matplotlib is not installed.
        """
        with _style.applied():
            return self._drawn()

    @abstractmethod
    def _drawn(self) -> Any:
        """The figure; the look is applied."""


_registry: Registry[FigureData] = Registry("shiftcal.report.figures", "kind of figure", FigureData)
kinds = _registry.names


def write_figure(data: FigureData, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write ``<name>.png`` (200 dpi), ``<name>.svg`` and ``<name>.json``, each whole or not at all.

    The same data gives the same bytes with the same matplotlib. The JSON holds the data.

    Args:
        data: The figure.
        folder: Must exist.
        name: Of the files, without an ending.

    Raises:
        FileError: If a file cannot be written.
        MissingExtra: If matplotlib is not installed.
    """
    with _style.applied():
        figure = data.draw()
        contents = {suffix: _rendered(figure, suffix) for suffix in ("png", "svg")}
    contents["json"] = _document(data).encode()
    written = []
    for suffix, content in contents.items():
        path = Path(folder) / f"{name}.{suffix}"
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
        written.append(path)
    return written


def read_figure(path: str | os.PathLike[str]) -> FigureData:
    """The data of a figure that :func:`write_figure` wrote, to be looked up or drawn again.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    source = Path(path)
    again = "Write the figure again."
    try:
        document = json.loads(source.read_text("utf-8"))
    except OSError as error:
        raise FileError(f"{source} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{source} is not the data of a figure, or it is damaged: not JSON ({error}). {again}"
        ) from error
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise FileError(
            f"{source} is not the data of a figure: it has no format {FORMAT!r}. "
            "Name the .json file beside the picture."
        )
    version = document.pop("version", None)
    if version != VERSION:
        raise FileError(
            f"{source} has format version {version!r}; this shiftcal reads version {VERSION}. "
            "Upgrade shiftcal, or write the figure again."
        )
    try:
        return FigureData.from_dict(document)
    except InputError as error:
        raise FileError(f"{source} is damaged: {error} {again}") from error


def _rendered(figure: Any, suffix: str) -> bytes:
    content = BytesIO()
    figure.savefig(content, format=suffix, dpi=_DOTS_PER_INCH, metadata=_SILENT[suffix])
    return content.getvalue()


def _document(data: FigureData) -> str:
    document = {"format": FORMAT, "version": VERSION, **data.to_dict()}
    return _lines_of(document, 0) + "\n"


def _lines_of(value: Any, depth: int) -> str:
    """JSON with one line for each value, and one for a whole row of numbers or names."""
    start, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {_lines_of(item, depth + 1)}" for key, item in value.items()]
        return "{" + start + f",{start}".join(rows) + end + "}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        rows = [_lines_of(item, depth + 1) for item in value]
        return "[" + start + f",{start}".join(rows) + end + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
