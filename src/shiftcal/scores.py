"""What a model gave for one set of samples, read from and written to files of five formats.

:func:`read_scores` and :func:`write_scores` choose the format by the file's suffix. Whether the
numbers are logits or probabilities is said by the file, never guessed. Nothing is ever unpickled,
and a file is written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    BINARY,
    as_text,
    check_choice,
    check_classes,
    check_confidence,
    check_features,
    check_labels,
    check_row_groups,
    check_scores,
    class_indices,
    label_indices,
    normalize_rows,
    plain,
    to_array,
)
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.files import atomic_write, find, naming, parsing
from shiftcal.numerics.softmax import softmax
from shiftcal.scores_io import (
    KEYS,
    KINDS,
    WRITABLE,
    Parts,
    is_empty,
    is_part,
    member_of,
    named_member,
    read_array,
    read_cells,
    read_member,
    read_parts,
    suffix_of,
    table_parts,
    text_of,
    write_parts,
)
from shiftcal.types import Floats, InputKind, Labels, Logits

__all__ = ["Scores", "read_features", "read_labelled", "read_labels", "read_scores", "write_scores"]

_ADVICE = (
    "Add them, or judge only the rows that have a label "
    "(evaluate --labelled-only, read_labelled in Python)."
)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of ``n`` samples for ``k`` classes, consistent with one another.

    The scores themselves stay as they came, on disk where they are memory-mapped, and their
    values are checked only by :meth:`logits`: a set with a missing number can still be looked at.

    Args:
        values: Logits or probabilities ``(n, k)``, float16, float32 or float64.
        input: Which of the two they are.
        labels: True classes ``(n,)`` in ``0..k-1``, or by name if ``classes`` are given.
        features: What a layer of the model gave for the samples, ``(n, d)``.
        ids: A name for every sample, ``(n,)``.
        classes: Names of the ``k`` classes, in the order of the columns.
        source: The file they came from, to be named in messages.
        normalize: Whether rows of probabilities are divided by their sum, as rounded ones must be;
            logits stay as they are.

    Raises:
        InputError: If lengths disagree, labels are out of range, or a name is given twice.
    """

    values: Floats
    input: InputKind = "logits"
    labels: Labels | None = None
    features: Floats | None = None
    ids: NDArray[np.str_] | None = None
    classes: tuple[str, ...] | None = None
    source: str = ""
    normalize: InitVar[bool] = False

    def __post_init__(self, normalize: bool) -> None:
        kind = check_choice(self.input, KINDS, name="input")
        values = _values(self.values, kind)
        if normalize and kind == "probabilities":
            values = normalize_rows(values)
        n, k = values.shape
        classes = None if self.classes is None else check_classes(self.classes, k=k)
        labels = None
        if self.labels is not None:
            given = label_indices(to_array(self.labels, name="labels"), classes)
            labels = check_labels(given, n=n, k=k)
        checked = {
            "values": values,
            "labels": labels,
            "features": None if self.features is None else _features(self.features, n),
            "ids": None if self.ids is None else _ids(self.ids, n),
            "classes": classes,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        known = [name for name in ("labels", "features", "ids") if getattr(self, name) is not None]
        named = "named classes" if self.classes else "classes"
        parts = [f"{self.n:,} rows", f"{self.k:,} {named}", self.input, *known]
        return f"<Scores: {', '.join(parts)}{f', from {self.source}' if self.source else ''}>"

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.values.shape[0]

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.values.shape[1]

    def logits(self) -> Logits:
        """Finite logits ``(n, k)`` in float32 or float64, whichever kind the scores are.

        The values are checked at the first call.

        Raises:
            InputError: If the values are not what they are said to be, or not finite. It is a
                FileError that names the file if they came from one.
        """
        return self._checked

    @cached_property
    def _checked(self) -> Logits:
        try:
            return check_scores(self.values, input=self.input)
        except InputError as error:
            if not self.source:
                raise
            raise FileError(f"{self.source}: {error}") from error

    def as_kind(self, kind: InputKind) -> Scores:
        """The same set with scores of that kind; these very scores if they are so already.

        Probabilities are ``softmax(logits)``. Logits are the logarithms of probabilities, zero
        being raised to the smallest normal float32.
        """
        check_choice(kind, KINDS, name="kind")
        if kind == self.input:
            return self
        z = self.logits()
        return replace(self, values=z if kind == "logits" else softmax(z), input=kind)


def _values(values: object, kind: str) -> Floats:
    z = _real(values, kind)
    if z.ndim != 2 or z.shape[0] < 1 or z.shape[1] < 2:
        raise InputError(
            f"{kind} must have shape (n, k), a row per sample and a column per class, at least "
            f"1 and 2 of them; got shape {z.shape}.{BINARY[kind] if z.ndim == 1 else ''}"
        )
    return z


def _features(features: object, n: int) -> Floats:
    f = _real(features, "features")
    if f.ndim != 2 or f.shape[0] != n or f.shape[1] < 1:
        raise InputError(
            f"features must have shape ({n}, d), a row per sample; got shape {f.shape}."
        )
    return f


def _real(values: object, name: str) -> Floats:
    """Floats as they are, unread if they are on disk; integers and long doubles as float64."""
    x = to_array(values, name=name)
    if x.dtype.kind not in "iuf":
        raise InputError(f"{name} must be real numbers; got dtype {x.dtype}.")
    if x.dtype.kind == "f" and x.dtype.itemsize <= 8:
        return x
    return x.astype(np.float64)


def _ids(ids: object, n: int) -> NDArray[np.str_]:
    names = plain(to_array(ids, name="ids"), "ids")
    if names.shape != (n,) or names.dtype.kind not in "USiu":
        raise InputError(
            f"ids must be text or whole numbers, one per row, shape ({n},); got shape "
            f"{names.shape} of dtype {names.dtype}."
        )
    return as_text(names, "ids")


def read_scores(path: str | os.PathLike[str], *, normalize: bool = False) -> Scores:
    """The scores in a file; its suffix says the format.

    ``.npz``, ``.npy`` (with its siblings), ``.csv``, ``.parquet`` and ``.safetensors`` are read, as
    the page on file formats describes. Nothing is unpickled. Large ``.npy`` arrays stay on disk.

    Args:
        path: The file.
        normalize: Whether rows of probabilities are divided by their sum, as rounded ones must be;
            logits stay as they are.

    Raises:
        FileError: If it is missing, damaged, of another kind, or contradicts itself.
        MissingExtra: If the format needs a package that is not installed.
    """
    file = find(path)
    with parsing(file, "a scores file"):
        return _assembled(file, read_parts(file), normalize=normalize)


def scores_of_table(path: Path, table: Any, *, kind: str) -> Scores:
    """Scores from a table of pyarrow's with the columns that a Parquet file has.

    Args:
        path: Where it came from, for messages.
        table: The table.
        kind: What that is, such as ``"a record batch"``.
    """
    return _assembled(path, table_parts(path, table, kind=kind))


def _assembled(path: Path, parts: Parts, *, normalize: bool = False) -> Scores:
    with naming(path):
        # What Scores takes is wider than what it then has: it checks, and makes text of bytes.
        rest: dict[str, Any] = parts._asdict()
        kind, values, labels = rest.pop("kind"), rest.pop("values"), rest.pop("labels")
        scores = Scores(values, kind, **rest, source=str(path), normalize=normalize)
        if isinstance(labels, list):
            labels = _label_file(labels).complete() if not all(map(is_empty, labels)) else None
        return scores if labels is None else replace(scores, labels=labels)


def write_scores(
    path: str | os.PathLike[str],
    scores: Scores,
    *,
    confidence: object = None,
    predicted: object = None,
    durable: bool = True,
) -> None:
    """Write scores to a file that :func:`read_scores` reads; the suffix says the format.

    An existing file is replaced in one step; whatever goes wrong, it stays as it was.

    Args:
        path: Where to, ending in ``.npz``, ``.csv``, ``.parquet`` or ``.safetensors``.
        scores: What to write.
        confidence: Confidence ``(n,)`` of the predicted class, written along with the scores.
        predicted: Predicted class ``(n,)`` as an index, likewise.
        durable: Whether the file outlives a power cut at once. Otherwise the system writes it
            within seconds, which is faster for many small files that can be made again.

    Raises:
        FileError: If the suffix is another, or the file cannot be written.
        MissingExtra: If the format needs a package that is not installed.
    """
    target = Path(path)
    suffix = suffix_of(target, WRITABLE)
    extra: dict[str, NDArray[Any]] = {}
    if predicted is not None:
        extra["predicted"] = check_labels(predicted, n=scores.n, k=scores.k)
    if confidence is not None:
        extra["confidence"] = np.asarray(check_confidence(confidence))
        if len(extra["confidence"]) != scores.n:
            raise InputError(
                "confidence must have one entry per row: "
                f"{scores.n} rows, {len(extra['confidence'])} entries."
            )
    parts = Parts(
        scores.input, scores.values, scores.labels, scores.features, scores.ids, scores.classes
    )
    with atomic_write(target, durable=durable) as temporary:
        try:
            write_parts(temporary, suffix, parts, extra)
        except UnicodeEncodeError as error:
            raise FileError(
                f"{target} cannot be written: {error.object!r} among its ids or classes is not "
                "valid text. Replace the characters that UTF-8 cannot express."
            ) from error


def read_features(path: str | os.PathLike[str]) -> Floats:
    """The features ``(n, d)`` in a file.

    A ``.npy`` file whose name ends in ``features`` or ``feature`` is one array of them; an
    ``.npz`` file holds them under ``features`` and need hold nothing else; any other file is a
    scores file that has features.

    Raises:
        FileError: If the file cannot be read, or has no features that can be used.
    """
    file = find(path)
    with naming(file):
        if file.suffix.lower() == ".npz":
            features = read_member(file, "features")
        elif is_part(file, ["features"]):
            features = read_array(file)
        else:
            features = read_scores(file).features
        if features is None:
            raise InputError("it has no features. Save them as 'features', an array (n, d).")
        return check_features(features, name="features")


def model_digest(origin: Mapping[str, Any] | None) -> str | None:
    """A digest of the model and its preprocessing; ``None`` if the origin does not say which.

    Args:
        origin: How a bank or a scores file was made.
    """
    try:
        model = origin["model"]  # type: ignore[index]
        facts = [model["fingerprint"], model["preprocessing"]]
    except (KeyError, TypeError):
        return None
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()


def model_digest_of_file(path: Path) -> str | None:
    """The same of a scores file; ``None`` for those that were not written by ``shiftcal score``."""
    if path.suffix.lower() != ".npz":
        return None
    try:
        return model_digest(json.loads(str(read_member(path, "origin"))))
    except (FileError, ValueError, RecursionError):
        return None


# --------------------------------------------------------------------------------------
# Labels in a file of their own, and which of them is whose: one reader for scores and images.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelFile:
    """Class indices or names, and maybe whose they are.

    Attributes:
        labels: Numbers or text ``(n,)``, of the rows that have a label.
        keys: Names of the samples ``(n,)``, by the column that holds them.
        classes: Names of the classes that indices stand for.
        n_empty: How many rows have no label.
        noun: What a label is called in messages.
    """

    labels: NDArray[Any]
    keys: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    classes: tuple[str, ...] | None = None
    n_empty: int = 0
    noun: str = "label"

    def complete(self) -> NDArray[Any]:
        """The labels, if every row has one.

        Raises:
            InputError: If cells are empty.
        """
        if self.n_empty:
            raise InputError(
                f"{self.noun}s must be given for every row or for none; {self.n_empty} of "
                f"{self.n_empty + len(self.labels)} are missing. Drop those rows, or the column."
            )
        return self.labels

    def match(
        self, wanted: Sequence[str], *, every: bool = True, advice: str = ""
    ) -> NDArray[np.intp]:
        """Where among the labels that of each name stands; -1 where there is none.

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
        names = self.keys[column].tolist()
        if every and "" in names:
            raise InputError(
                f"{column} must not be empty where {self.noun}s are joined by it; that of a row "
                f"with a {self.noun} is. Fill it in, or remove the row."
            )
        sought = list(wanted)
        if not set(sought) & set(names) - {""}:
            sought, names = _without_folders(sought), _without_folders(names)
        place = {name: i for i, name in enumerate(names) if name}
        missing = [name for name, key in zip(wanted, sought, strict=True) if key not in place]
        if every and missing:
            raise InputError(
                f"{len(missing):,} of {len(wanted):,} have no {self.noun} here: they are not in "
                f"{column!r}, the first of them {missing[0]!r}. {advice}"
            )
        if len(set(sought)) < len(set(wanted)):
            twice = next(name for name, many in Counter(sought).items() if many > 1)
            raise InputError(f"several are called {twice!r}: {column!r} must hold folders as well.")
        known, seen = set(sought), dict[str, Any]()
        for name, label in zip(names, self.labels.tolist(), strict=True):
            if name and name in known and seen.setdefault(name, label) != label:
                raise InputError(f"it has {name!r} twice, as {seen[name]!r} and as {label!r}.")
        return np.array([place.get(key, -1) for key in sought], np.intp)


def _without_folders(names: Sequence[str]) -> list[str]:
    return [name.replace("\\", "/").rpartition("/")[2] for name in names]


def _label_file(
    labels: NDArray[Any] | Sequence[Any] | None,
    keys: Mapping[str, NDArray[np.str_]] | None = None,
    classes: tuple[str, ...] | None = None,
    noun: str = "label",
) -> LabelFile:
    """Labels of a file, of which cells of a table may be empty."""
    if labels is None or not len(labels):
        raise InputError(f"there are no {noun}s. Name them '{noun}s' ('{noun}' in a table).")
    keys = keys or {}
    for column, names in keys.items():
        if len(names) != len(labels):
            raise InputError(
                f"there must be one of {column} per {noun}; {len(names)} {column}, "
                f"{len(labels)} {noun}s."
            )
    if isinstance(labels, np.ndarray):
        return LabelFile(labels, keys, classes, noun=noun)
    full = [row for row, cell in enumerate(labels) if not is_empty(cell)]
    there = {column: names[full] for column, names in keys.items()}
    given = np.array([labels[row] for row in full])
    return LabelFile(given, there, classes, len(labels) - len(full), noun)


def read_label_file(
    path: str | os.PathLike[str], *, noun: str = "label", column: str | None = None
) -> LabelFile:
    """What the file holds; its suffix says the format.

    ``.npy`` is one array. ``.npz`` holds ``labels``, maybe ``ids`` and ``classes``;
    ``FILE.npz:KEY`` is another array of it. ``.txt`` has a label a line. A ``.csv`` or
    ``.parquet`` table has a column ``label`` and maybe ``file``, ``path`` or ``id``. A
    ``.safetensors`` file is a scores file with labels.

    Args:
        path: The file.
        noun: What is read instead of labels, and the name of its column, such as ``group``.
        column: Another name of the column.

    Raises:
        FileError: If it cannot be read or has no labels.
    """
    file, key = member_of(path)
    file = find(file)
    suffix = file.suffix.lower()
    many = f"{noun}s"
    with naming(path):
        if key is not None:
            return _label_file(_vector(named_member(file, key), many))
        if suffix in (".npy", ".txt") and column is not None:
            raise InputError(f"it has no columns, so {column!r} names nothing. Leave it out.")
        if suffix == ".npy":
            return _label_file(_vector(read_array(file), many), noun=noun)
        if suffix == ".npz":
            labels = _vector(named_member(file, column, default=many), many)
            ids, classes = read_member(file, "ids"), read_member(file, "classes")
            names = None if classes is None else check_classes(classes, k=classes.size)
            keys = {} if ids is None else {"ids": as_text(_vector(ids, "ids"), "ids")}
            return _label_file(labels, keys, names, noun)
        if suffix == ".txt":
            with parsing(file, "text in UTF-8"):
                lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
            while lines and not lines[-1]:
                lines.pop()
            if "" in lines:
                raise InputError(f"line {lines.index('') + 1} is empty; every line needs a {noun}.")
            return _label_file(lines, noun=noun)
        if suffix in (".csv", ".parquet"):
            wanted = column or noun
            others = [name for name in KEYS if name != wanted]
            cells, names = read_cells(file, (wanted, *others))
            if column is not None and column not in cells:
                raise InputError(f"there is no column {column!r}.")
            keys = {name: np.array(text_of(cells[name])) for name in others if name in cells}
            return _label_file(cells.get(wanted), keys, names, noun)
        if suffix == ".safetensors" and noun == "label":
            scores = read_scores(file)
            keys = {} if scores.ids is None else {"ids": scores.ids}
            return _label_file(scores.labels, keys, scores.classes)
        raise FileError(
            f"{file} must be a file of {many} and end in .npy, .npz, .txt, .csv or .parquet (of "
            f"labels: or .safetensors); it ends in {file.suffix!r}."
        )


def _vector(part: NDArray[Any], name: str) -> NDArray[Any]:
    if part.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,); got shape {part.shape}. Save them as one list."
        )
    return part


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
            return labels[given.match(_names(given, scores), advice=_ADVICE)]
        given.complete()
        labels = check_labels(labels, n=scores.n, k=scores.k)
    _warn_of_order(path, given, scores)
    return labels


def read_groups(
    path: str | os.PathLike[str], scores: Scores, *, column: str | None = None
) -> NDArray[Any]:
    """The group of every row of ``scores``, from a file that is read and joined as labels are.

    Args:
        path: The file; groups are ``groups`` in an ``.npz`` file, and ``group`` in a table.
        scores: The rows.
        column: Another name of that array or column.

    Raises:
        FileError: As for :func:`read_labels`.
    """
    given = read_label_file(path, noun="group", column=column)
    with naming(path):
        if given.keys:
            return given.labels[given.match(_names(given, scores), advice="Add them.")]
        groups = given.complete()
        check_row_groups(groups, n=scores.n)
    _warn_of_order(path, given, scores)
    return groups


def _warn_of_order(path: str | os.PathLike[str], given: LabelFile, scores: Scores) -> None:
    if scores.ids is not None:
        warnings.warn(
            f"{given.noun}s of {os.fspath(path)} were joined by order: it does not say whose they "
            "are, the scores have ids. Add ids to it if the order may differ.",
            InputWarning,
            stacklevel=3,
        )


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
        )


def _names(given: LabelFile, scores: Scores) -> list[str]:
    """The names of all rows, by which labels are found."""
    column = next(iter(given.keys))
    if scores.ids is None:
        raise InputError(
            f"it says whose its {given.noun}s are ({column!r}), and the scores have no ids to find "
            f"them by. Add ids to the scores; or, if {given.noun}s are in the order of the rows, "
            f"leave {column!r} out."
        )
    ids = scores.ids.tolist()
    if "" in ids:
        raise InputError(
            f"ids must not be empty where {given.noun}s are joined by them; that of row "
            f"{ids.index('')} of {scores.source or 'the scores'} is (the first row is 0). Fill it "
            "in."
        )
    return ids


def _indices(given: LabelFile, scores: Scores) -> Labels:
    """The class indices of all labels of the file.

    All of them are looked at, wanted or not: whether text is names or indices is told by all of
    it. Classes with names on both sides are matched by name.
    """
    n = len(given.labels)
    if not n:
        return np.empty(0, dtype=np.intp)
    found = label_indices(given.labels, given.classes or scores.classes)
    if not (given.classes and scores.classes):
        return check_labels(found, n=n, k=scores.k)
    own = check_labels(found, n=n, k=len(given.classes))
    used = np.unique(own)
    place = np.zeros(len(given.classes), dtype=np.intp)
    place[used] = class_indices([given.classes[i] for i in used], scores.classes)
    indices: Labels = place[own]
    return indices
