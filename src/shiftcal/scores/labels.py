"""Labels in a file of their own."""

from __future__ import annotations

import csv as table
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import as_text, check_classes, check_labels, class_indices, label_indices
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.files import find, naming, parsing
from shiftcal.scores import formats as npy
from shiftcal.scores import formats as npz
from shiftcal.scores import formats as parquet
from shiftcal.scores.formats import KEYS, LABEL, PREFIX, layout_of, read_scores, refuse_repeated
from shiftcal.scores.scores import (
    Scores,
    in_rows_of_the_file,
    is_empty,
    present,
    refuse_near_misses,
    text_of,
)
from shiftcal.types import Labels

# --------------------------------------------------------------------------------------
# Labels in a file of their own, and which of them is whose: one reader for scores and images.
# --------------------------------------------------------------------------------------

NO_LABELS = "there are no labels. Name them 'labels' ('label' in a table)."


@dataclass(frozen=True)
class LabelFile:
    """Class indices or names, and maybe whose they are.

    Attributes:
        labels: Numbers or text ``(n,)``; cells of a table, of which some may be empty; or
            ``None`` if there are none.
        keys: Names of the samples ``(n,)``, by the column that holds them.
        classes: Names of the classes that indices stand for.
    """

    labels: NDArray[Any] | Sequence[Any] | None
    keys: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.labels is None or not len(self.labels):
            raise InputError(NO_LABELS)
        for column, names in self.keys.items():
            if len(names) != len(self.labels):
                raise InputError(
                    f"there must be one of {column} per label; {len(names)} {column}, "
                    f"{len(self.labels)} labels."
                )

    def complete(self) -> NDArray[Any]:
        """The labels, one for every row.

        Raises:
            InputError: If cells are empty.
        """
        given = self.labels
        labels = given if given is None or isinstance(given, np.ndarray) else present(given)
        if labels is None:
            raise InputError(NO_LABELS)
        return labels

    def labelled(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The labels there are, and the rows that have them; a cell that is empty is none."""
        given = self.labels
        if given is None or isinstance(given, np.ndarray):
            labels = np.empty(0) if given is None else given
            return labels, np.arange(len(labels))
        full = [row for row, cell in enumerate(given) if not is_empty(cell)]
        return np.array([given[row] for row in full]), np.array(full, dtype=np.intp)

    def match(
        self, wanted: Sequence[str], *, every: bool = True, advice: str = ""
    ) -> NDArray[np.intp]:
        """Where among :meth:`labelled` the label of each name stands; -1 where there is none.

        Names must be the same letter by letter. Only if none is found so, names without their
        folders are compared, which must tell the samples apart. Rows of one name must agree.

        Args:
            wanted: Names of the samples.
            every: Whether all must be found. The first column that has them counts; otherwise the
                first that has any.
            advice: What to do about names that are not there, to end the message with.

        Raises:
            InputError: If names are not there, or do not tell samples apart.
        """
        faults: list[InputError] = []
        found = np.full(len(wanted), -1, np.intp)
        for column in self.keys:
            try:
                found = self._match(column, wanted, every=every, advice=advice)
            except InputError as error:
                faults.append(error)
                continue
            if (found >= 0).any():
                return found
        if faults:
            raise faults[0]
        return found

    def _match(
        self, column: str, wanted: Sequence[str], *, every: bool, advice: str
    ) -> NDArray[np.intp]:
        labels, rows = self.labelled()
        names = self.keys[column][rows].tolist()
        if every and "" in names:
            raise InputError(
                f"{column} must not be empty where labels are joined by it; that of row "
                f"{rows[names.index('')]} of this file is (the first row is 0). Fill it in, or "
                "remove the row."
            )
        sought = list(wanted)
        if not set(sought) & set(names) - {""}:
            sought, names = _without_folders(sought), _without_folders(names)
        place = {name: i for i, name in enumerate(names) if name}
        missing = [name for name, key in zip(wanted, sought, strict=True) if key not in place]
        if every and missing:
            raise InputError(
                f"{len(missing):,} of {len(wanted):,} have no label here: they are not in "
                f"{column!r}, the first of them {missing[0]!r}. {advice}"
            )
        if len(set(sought)) < len(set(wanted)):
            twice = next(name for name, many in Counter(sought).items() if many > 1)
            raise InputError(f"several are called {twice!r}: {column!r} must hold folders as well.")
        known, seen = set(sought), dict[str, Any]()
        for name, label in zip(names, labels.tolist(), strict=True):
            if name and name in known and seen.setdefault(name, label) != label:
                raise InputError(f"it has {name!r} twice, as {seen[name]!r} and as {label!r}.")
        return np.array([place.get(key, -1) for key in sought], np.intp)


def _without_folders(names: Sequence[str]) -> list[str]:
    return [name.replace("\\", "/").rpartition("/")[2] for name in names]


def read_label_file(path: str | os.PathLike[str]) -> LabelFile:
    """What the file holds; its suffix says the format.

    ``.npy`` is one array. ``.npz`` holds ``labels``, maybe ``ids`` and ``classes``;
    ``FILE.npz:KEY`` is another array of it. ``.txt`` has a label a line. A ``.csv`` or
    ``.parquet`` table has a column ``label`` and maybe ``file``, ``path`` or ``id``. A
    ``.safetensors`` file is a scores file with labels.

    Raises:
        FileError: If it cannot be read or has no labels.
    """
    file, key = npz.member_of(path)
    file = find(file)
    with naming(path):
        if key is not None:
            return LabelFile(_vector(npz.named_member(file, key), "labels"))
        if file.suffix.lower() not in _READERS:
            raise FileError(
                f"{file} must be a file of labels and end in {', '.join(_READERS)}; it ends in "
                f"{file.suffix!r}."
            )
        return _READERS[file.suffix.lower()](file)


def _from_npy(path: Path) -> LabelFile:
    return LabelFile(_vector(npy.read_array(path), "labels"))


def _from_npz(path: Path) -> LabelFile:
    labels = _vector(npz.named_member(path, None, default="labels"), "labels")
    ids, classes = npz.read_member(path, "ids"), npz.read_member(path, "classes")
    names = None if classes is None else as_text(_vector(classes, "classes"), "classes")
    return LabelFile(
        labels,
        {} if ids is None else {"ids": as_text(_vector(ids, "ids"), "ids")},
        None if names is None else check_classes(names, k=len(names)),
    )


def _vector(part: NDArray[Any], name: str) -> NDArray[Any]:
    if part.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,); got shape {part.shape}. Save them as one list."
        )
    return part


def _from_txt(path: Path) -> LabelFile:
    with parsing(path, "text in UTF-8"):
        lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines:
        raise FileError(f"{path}: line {lines.index('') + 1} is empty; every line needs a label.")
    return LabelFile(lines)


def _from_csv(path: Path) -> LabelFile:
    with (
        parsing(path, "comma-separated text in UTF-8"),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = table.reader(file, strict=True, skipinitialspace=True)
        header = next(filter(None, rows), [])
        refuse_near_misses(path, header, (LABEL, *KEYS))
        refuse_repeated(path, header, (LABEL, *KEYS))
        cells = _columns(path, header, rows)
    if any(name.startswith((PREFIX["logits"], PREFIX["probabilities"])) for name in header):
        # Indices in a table of scores count its own columns, not those of the scores judged.
        return _from_cells(cells, layout_of(path, header).classes)
    return _from_cells(cells)


def _columns(path: Path, header: Sequence[str], rows: Any) -> dict[str, list[str]]:
    """The cells of labels and names, empty where a row is too short to have them."""
    columns: dict[str, list[str]] = {name: [] for name in (LABEL, *KEYS) if name in header}
    at = [(header.index(name), cells) for name, cells in columns.items()]
    for row in filter(None, rows):
        if len(row) > len(header):
            raise FileError(
                f"{path}, line {rows.line_num}: a row must have no more than {len(header)} cells, "
                f"as the first line has; this one has {len(row)}. A comma may stand in an "
                "unquoted cell: put it in quotes."
            )
        for i, cells in at:
            cells.append(row[i] if i < len(row) else "")
    return columns


def _from_parquet(path: Path) -> LabelFile:
    return _from_cells(*parquet.read_cells(path, (LABEL, *KEYS)))


def _from_cells(
    cells: Mapping[str, list[Any]], classes: tuple[str, ...] | None = None
) -> LabelFile:
    keys = {name: np.array(text_of(cells[name]), dtype=np.str_) for name in KEYS if name in cells}
    return LabelFile(cells.get(LABEL), keys, classes)


def _from_scores(path: Path) -> LabelFile:
    scores = read_scores(path)
    keys = {} if scores.ids is None else {"ids": scores.ids}
    return LabelFile(scores.labels, keys, scores.classes)


_READERS = {
    ".npy": _from_npy,
    ".npz": _from_npz,
    ".txt": _from_txt,
    ".csv": _from_csv,
    ".parquet": _from_parquet,
    ".safetensors": _from_scores,
}


# --------------------------------------------------------------------------------------
# Labels that came later, in a file of their own.
# --------------------------------------------------------------------------------------

_ADVICE = (
    "Add them, or judge only the rows that have a label "
    "(evaluate --labelled-only, read_labelled in Python)."
)


def read_labels(path: str | os.PathLike[str], scores: Scores) -> Labels:
    """The labels of the rows of ``scores``, from another file.

    A ``.npy`` file is one array of labels, a ``.txt`` file has one a line. An ``.npz`` file holds
    ``labels`` and may hold ``ids`` and ``classes``; a ``.csv`` or ``.parquet`` table has a column
    ``label`` and may have ``file``, ``path`` or ``id``; any other file is a scores file with
    labels. Labels that say whose they are, by ids or by such a column, are joined by the ids of
    ``scores``, which must have them. Others are taken in order; that is an
    :class:`~shiftcal.errors.InputWarning` if ``scores`` have ids. Class names are looked up among
    those of ``scores``; whether labels are names or indices is told by all labels of the file.

    Args:
        path: The file.
        scores: The rows that need labels.

    Raises:
        FileError: If the file cannot be read, a row finds no label in it, or it says whose labels
            are and ``scores`` have no ids.
    """
    given = read_label_file(path)
    with naming(path):
        labels = _indices(given, scores)
        if given.keys:
            return labels[given.match(_ids(given, scores), advice=_ADVICE)]
        given.complete()
        labels = check_labels(labels, n=scores.n, k=scores.k)
    if scores.ids is not None:
        warnings.warn(
            f"labels of {os.fspath(path)} were joined by order: it does not say whose they are, "
            "the scores have ids. Add ids to it if the order may differ.",
            InputWarning,
            stacklevel=2,
        )
    return labels


def read_labelled(path: str | os.PathLike[str], scores: Scores) -> Scores:
    """The rows of ``scores`` that have a label in another file, with their labels.

    For labels that have arrived in part. Rows keep their order; an empty cell of a table is no
    label, and a row whose id is empty has none. Both sides must have ids.

    Args:
        path: The file, as for :func:`read_labels`.
        scores: The rows to choose from.

    Raises:
        FileError: If the file cannot be read, ids are lacking, or no row has a label in it.
    """
    given = read_label_file(path)
    with naming(path):
        if not given.keys or scores.ids is None:
            whose = "the scores" if given.keys else "the labels"
            raise InputError(
                f"rows that have a label can be told by ids only, and {whose} have none. "
                "Add ids, or give a label for every row."
            )
        labels = _indices(given, scores)
        found = given.match(scores.ids.tolist(), every=False)
        kept = np.flatnonzero(found >= 0)
        if not len(kept):
            example = next(filter(None, scores.ids.tolist()), None)
            such = "all empty" if example is None else f"such as {example!r}"
            raise InputError(
                f"no row of the scores has a label in it: their ids are {such}. "
                "Check that both files speak of the same samples."
            )
        return replace(
            scores,
            values=scores.values[kept],
            labels=labels[found[kept]],
            features=None if scores.features is None else scores.features[kept],
            ids=scores.ids[kept],
            rows=kept if scores.rows is None else scores.rows[kept],
        )


def _ids(given: LabelFile, scores: Scores) -> list[str]:
    """The names of all rows, by which labels are found."""
    if scores.ids is None:
        column = next(iter(given.keys))
        raise InputError(
            f"it says whose its labels are ({column!r}), and the scores have no ids to find them "
            f"by. Add ids to the scores; or, if labels are in the order of the rows, leave "
            f"{column!r} out."
        )
    ids = scores.ids.tolist()
    if "" in ids:
        raise InputError(
            "ids must not be empty where labels are joined by them; that of row "
            f"{ids.index('')} of {scores.source or 'the scores'} is (the first row is 0). Fill it "
            "in, or judge only the rows that have an id and a label (evaluate --labelled-only, "
            "read_labelled in Python)."
        )
    return ids


def _indices(given: LabelFile, scores: Scores) -> Labels:
    """The class indices of all rows of the file that have a label.

    All of them are looked at, wanted or not: whether text is names or indices is told by all of
    it. Messages count the rows of the file. Classes with names on both sides are matched by name.
    """
    there, rows = given.labelled()
    found = label_indices(there, given.classes or scores.classes)
    if not (given.classes and scores.classes):
        return _checked(found, rows, scores.k)
    own = _checked(found, rows, len(given.classes))
    used = np.unique(own)
    place = np.zeros(len(given.classes), dtype=np.intp)
    place[used] = class_indices([given.classes[i] for i in used], scores.classes)
    indices: Labels = place[own]
    return indices


def _checked(labels: NDArray[Any], rows: NDArray[np.intp], k: int) -> Labels:
    if not len(rows):
        return np.empty(0, dtype=np.intp)
    try:
        return check_labels(labels, n=len(rows), k=k)
    except InputError as error:
        raise InputError(in_rows_of_the_file(rows, str(error))) from error
