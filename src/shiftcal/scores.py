"""What a model gave for one set of samples, read from and written to files of four formats.

:func:`read_scores` and :func:`write_scores` choose the format by the file's suffix. Whether the
numbers are logits or probabilities is said by the file, never guessed. Nothing is ever unpickled,
and a file is written whole or not at all.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    BINARY,
    RowGroups,
    as_text,
    check_choice,
    check_classes,
    check_confidence,
    check_correct,
    check_features,
    check_labels,
    check_probs,
    check_row_groups,
    check_scores,
    class_indices,
    label_indices,
    logits_of,
    normalize_rows,
    plain,
    to_array,
)
from shiftcal.errors import FileError, InputError, InputWarning, suggest
from shiftcal.files import atomic_write, fetched, naming, parsing, remote_url
from shiftcal.numerics.blocks import LARGE, row_blocks
from shiftcal.numerics.softmax import softmax, softmax_blocks
from shiftcal.scores_io import (
    KEYS,
    KINDS,
    READABLE,
    READERS,
    WRITABLE,
    WRITERS,
    Columns,
    Parts,
    Stack,
    is_empty,
    is_part,
    member_of,
    named_member,
    read_array,
    read_cells,
    read_member,
    suffix_of,
    table_parts,
    text_of,
)
from shiftcal.types import Floats, InputKind, Labels, Logits, Probs

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
        values = _table(self.values, kind, least=2)
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
            "features": None if self.features is None else _table(self.features, "features", n=n),
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
            if self.input == "probabilities" and isinstance(self.values.base, np.memmap):
                with Stack() as stack:
                    for _, probs in self._probs():
                        stack.add(logits_of(probs), Path(self.source))
                    return stack.array()
            return check_scores(self.values, input=self.input)
        except InputError as error:
            if not self.source:
                raise
            raise FileError(f"{self.source}: {error}") from error

    def _probs(self) -> Iterator[tuple[slice, Probs]]:
        """Rows and their probabilities, checked, some at a time."""
        if self.input == "logits":
            yield from softmax_blocks(self.logits())
            return
        if not isinstance(self.values.base, np.memmap):
            yield slice(0, self.n), self._checked_probs
            return
        for rows in row_blocks(self.n, self.k, size=LARGE // 4):
            with naming(self.source):
                probs = check_probs(self.values[rows], first=rows.start)
            yield rows, probs

    @cached_property
    def _checked_probs(self) -> Probs:
        with naming(self.source):
            return check_probs(self.values)

    @cached_property
    def _checked_features(self) -> Floats:
        return check_features(self.features, name="features", n=self.n)

    def as_kind(self, kind: InputKind) -> Scores:
        """The same set with scores of that kind; these very scores if they are so already.

        Probabilities are ``softmax(logits)``. Logits are the logarithms of probabilities, zero
        being raised to the smallest normal float32.
        """
        check_choice(kind, KINDS, name="kind")
        if kind == self.input:
            return self
        z = self.logits()
        return self._with(values=z if kind == "logits" else softmax(z), input=kind)._trusted()

    def _trusted(self) -> Scores:
        """This very set, of values that were checked already."""
        z = self.values if self.input == "logits" else logits_of(self.values)
        self.__dict__["_checked"] = z
        return self

    def _with(self, **parts: Any) -> Scores:
        """The same set with other parts, which are known to be good."""
        made = copy.copy(self)
        if "values" in parts:
            for name in ("_checked", "_checked_probs"):
                made.__dict__.pop(name, None)
        made.__dict__.update(parts)
        return made


def _table(values: object, name: str, *, n: int | None = None, least: int = 1) -> Floats:
    """Numbers ``(n, d)``: floats as they are, unread if they are on disk, others as float64."""
    x = to_array(values, name=name)
    if x.dtype.kind not in "iuf":
        raise InputError(f"{name} must be real numbers; got dtype {x.dtype}.")
    if x.ndim != 2 or len(x) != (n or len(x) or 1) or x.shape[1] < least:
        shape = f"({n or 'n'}, {'k' if least > 1 else 'd'})"
        raise InputError(
            f"{name} must have shape {shape}, a row per sample and at least {least} columns; got "
            f"shape {x.shape}.{BINARY.get(name, '') if x.ndim == 1 else ''}"
        )
    return x if x.dtype.kind == "f" and x.dtype.itemsize <= 8 else x.astype(np.float64)


def _ids(ids: object, n: int) -> NDArray[np.str_]:
    names = plain(to_array(ids, name="ids"), "ids")
    if names.shape != (n,) or names.dtype.kind not in "USiu":
        raise InputError(
            f"ids must be text or whole numbers, one per row, shape ({n},); got shape "
            f"{names.shape} of dtype {names.dtype}."
        )
    return as_text(names, "ids")


def read_scores(
    path: str | os.PathLike[str],
    *,
    normalize: bool = False,
    probability_columns: str | Sequence[str] | None = None,
    logit_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    positive_class: str | None = None,
) -> Scores:
    """The scores in a file; its suffix says the format.

    ``.npz``, ``.npy`` (with its siblings), ``.csv`` and ``.parquet`` are read, as the page on file
    formats describes. Nothing is unpickled. Large ``.npy`` arrays stay on disk.

    Args:
        path: The file.
        normalize: Whether rows of probabilities are divided by their sum, as rounded ones and
            percentages must be; one column is divided by 100. Logits stay as they are.
        probability_columns: Names of the columns of a table that hold probabilities, which are
            the names of the classes; or a pattern with a ``*`` that stands for the class, such as
            ``"p_*"``; or one name, of the column of the positive class of two.
        logit_columns: The same for logits; one column is log-odds.
        id_column: Name of the column of ids.
        label_column: Name of the column of labels.
        positive_class: The class that one column is of, as the labels name it; default: labels
            are 0 and 1.

    Raises:
        FileError: If it is missing, damaged, of another kind, or contradicts itself.
        MissingExtra: If the format needs a package that is not installed.
    """
    probabilities, logits = (
        (one,) if isinstance(one, str) else tuple(one or ())
        for one in (probability_columns, logit_columns)
    )
    columns = Columns(probabilities, logits, id_column, label_column, positive_class)
    with fetched(path) as file, parsing(file, "a scores file"):
        if probabilities and logits:
            raise FileError(f"{file}: its columns must be probabilities or logits, not both.")
        parts = READERS[suffix_of(file, READABLE)](file, columns)
        name = remote_url(path) or file
        return _assembled(name, parts, normalize=normalize, positive=positive_class)


def scores_of_table(path: Path, table: Any, *, kind: str) -> Scores:
    """Scores from a table of pyarrow's with the columns that a Parquet file has.

    Args:
        path: Where it came from, for messages.
        table: The table.
        kind: What that is, such as ``"a record batch"``.
    """
    return _assembled(path, table_parts(path, table, kind=kind))


def _assembled(
    path: Path | str, parts: Parts, *, normalize: bool = False, positive: str | None = None
) -> Scores:
    with naming(path):
        # What Scores takes is wider than what it then has: it checks, and makes text of bytes.
        rest: dict[str, Any] = parts._asdict()
        kind, values, labels = rest.pop("kind"), rest.pop("values"), rest.pop("labels")
        if isinstance(labels, list):
            labels = _label_file(labels).complete() if not all(map(is_empty, labels)) else None
        if values.shape[1] == 1:  # only where the user named one column
            values = _two_columns(values[:, 0], kind, normalize=normalize)
            if labels is not None:
                labels, rest["classes"] = _binary_labels(labels, positive)
        elif positive is not None:
            raise InputError(
                f"the positive class {positive!r} goes with one column of scores; there are "
                f"{values.shape[1]}. Leave it out, or name one column."
            )
        return Scores(values, kind, labels, **rest, source=str(path), normalize=normalize)


def _two_columns(x: NDArray[Any], kind: InputKind, *, normalize: bool) -> NDArray[Any]:
    """Scores of the negative and the positive class from those of the positive one."""
    if kind == "logits":
        return np.column_stack([np.zeros_like(x), x])
    low, high = (float(x.min()), float(x.max())) if len(x) else (0.0, 0.0)
    if normalize and high <= 1:
        raise InputError(
            "one column is normalized from percent, and no number of it is above 1. If they are "
            "fractions, leave normalize out; if percent, write them as 0.5%."
        )
    if low < 0 or high > (100 if normalize else 1):
        raise InputError(
            f"probabilities must lie in [0, 1]; these go from {low:.4g} to {high:.4g}. Percent "
            "up to 100 needs --normalize (normalize=True), log-odds --logit-columns "
            "(logit_columns=)."
        )
    p = x / 100 if normalize else x
    return np.column_stack([1 - p, p])


def _binary_labels(
    labels: NDArray[Any], positive: str | None
) -> tuple[NDArray[np.intp], tuple[str, str] | None]:
    """Labels as 0 and 1, and the names of these two classes if they are known."""
    distinct, where = np.unique(labels, return_inverse=True)
    names = text_of(distinct.tolist())
    if positive is None:
        known = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
        for name in names:
            if name.lower() not in known:
                raise InputError(
                    f"labels of one column of scores must be 0 and 1; got {name!r}. Name the class "
                    "that the column is of: --positive-class (positive_class=)."
                )
        return np.array([known[name.lower()] for name in names], np.intp)[where], None
    others = [name for name in names if name != positive]
    if len(others) > 1:
        raise InputError(
            f"labels must be the positive class {positive!r} and one other; {others[0]!r} and "
            f"{others[1]!r} are among them. {suggest(positive, names)}"
        )
    index = np.array([name == positive for name in names], np.intp)
    return index[where], (others[0], positive) if others else None


def write_scores(
    path: str | os.PathLike[str],
    scores: Scores,
    *,
    confidence: object = None,
    predicted: object = None,
    model_confidence: object = None,
    model_predicted: object = None,
    keep: object = None,
    durable: bool = True,
) -> None:
    """Write scores to a file that :func:`read_scores` reads; the suffix says the format.

    An existing file is replaced in one step; whatever goes wrong, it stays as it was.

    Args:
        path: Where to, ending in ``.npz``, ``.csv`` or ``.parquet``.
        scores: What to write.
        confidence: Confidence ``(n,)`` of the predicted class, written along with the scores.
        predicted: Predicted class ``(n,)`` as an index, likewise.
        model_confidence: Confidence ``(n,)`` of the model's own prediction, if the scores are
            those of another.
        model_predicted: The model's own prediction ``(n,)`` as an index.
        keep: Whether each row is confident enough ``(n,)``; others are for a person.
        durable: Whether the file outlives a power cut at once. Otherwise the system writes it
            within seconds, which is faster for many small files that can be made again.

    Raises:
        FileError: If the suffix is another, or the file cannot be written.
        MissingExtra: If the format needs a package that is not installed.
    """
    columns = {"confidence": confidence, "predicted": predicted, "keep": keep}
    columns |= {"model_confidence": model_confidence, "model_predicted": model_predicted}
    write_pieces(path, [(scores, columns)], durable=durable)


def write_pieces(
    path: str | os.PathLike[str],
    pieces: Iterable[tuple[Scores, Mapping[str, object]]],
    *,
    durable: bool = True,
) -> None:
    """Write scores that come some rows at a time, with columns as in :func:`write_scores`.

    Only ``.csv`` and ``.parquet`` are written as the pieces come; ``.npz`` at the end.
    """
    target = Path(path)
    suffix = suffix_of(target, WRITABLE)
    made = (
        (
            Parts(one.input, one.values, one.labels, one.features, one.ids, one.classes),
            _extra(one, columns),
        )
        for one, columns in pieces
    )
    with atomic_write(target, durable=durable) as temporary:
        try:
            WRITERS[suffix](temporary, made)
        except UnicodeEncodeError as error:
            raise FileError(
                f"{target} cannot be written: {error.object!r} among its ids or classes is not "
                "valid text. Replace the characters that UTF-8 cannot express."
            ) from error


def _extra(scores: Scores, columns: Mapping[str, object]) -> dict[str, NDArray[Any]]:
    """Those columns that there are, checked, in the order in which files have them."""
    extra: dict[str, NDArray[Any]] = {}
    if (keep := columns.get("keep")) is not None:
        extra["keep"] = check_correct(keep, n=scores.n, name="keep")
    for whose in ("", "model_"):
        if (predicted := columns.get(f"{whose}predicted")) is not None:
            extra[f"{whose}predicted"] = check_labels(predicted, n=scores.n, k=scores.k)
        if (confidence := columns.get(f"{whose}confidence")) is not None:
            c = extra[f"{whose}confidence"] = np.asarray(check_confidence(confidence))
            if len(c) != scores.n:
                raise InputError(f"{whose}confidence must have one entry per row, {scores.n}.")
    return extra


def read_features(path: str | os.PathLike[str]) -> Floats:
    """The features ``(n, d)`` in a file.

    A ``.npy`` file whose name ends in ``features`` is one array of them; an
    ``.npz`` file holds them under ``features`` and need hold nothing else; any other file is a
    scores file that has features.

    Raises:
        FileError: If the file cannot be read, or has no features that can be used.
    """
    with fetched(path) as file, naming(path):
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
        names: Names of the samples ``(n,)``, if the file has them.
        classes: Names of the classes that indices stand for.
        n_empty: How many rows have no label.
        noun: What a label is called in messages.
    """

    labels: NDArray[Any]
    names: NDArray[np.str_] | None = None
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

    def match(self, wanted: Sequence[str], *, advice: str = "") -> NDArray[np.intp]:
        """Where among the labels that of each name stands.

        Raises:
            InputError: If one is not there, or names do not tell samples apart.
        """
        found = self.find(wanted)
        if (found < 0).any():
            first = wanted[int(np.argmax(found < 0))]
            raise InputError(
                f"{int((found < 0).sum()):,} of {len(wanted):,} have no {self.noun} here, the "
                f"first of them {first!r}. {advice}"
            )
        return found

    def find(self, wanted: Sequence[str]) -> NDArray[np.intp]:
        """The same, with -1 where there is none; empty names have none.

        Names must be the same letter by letter. Only if none is found so, names without their
        folders are compared, which must tell the samples apart. Rows of one name must agree.
        """
        assert self.names is not None
        names, sought = self.names.tolist(), list(wanted)
        if not set(sought) & set(names) - {""}:
            sought, names = _without_folders(sought), _without_folders(names)
        if len(set(sought)) < len(set(wanted)):
            twice = next(name for name, many in Counter(sought).items() if many > 1)
            raise InputError(f"several are called {twice!r}: the names must hold folders as well.")
        place: dict[str, int] = {}
        known = set(sought)
        for i, name in enumerate(names):
            if name and name in known:
                first = self.labels[place.setdefault(name, i)]
                if first != self.labels[i]:
                    raise InputError(f"it has {name!r} twice, as {first!s} and {self.labels[i]!s}.")
        return np.array([place.get(key, -1) for key in sought], np.intp)


def _without_folders(names: Sequence[str]) -> list[str]:
    return [name.replace("\\", "/").rpartition("/")[2] for name in names]


def _label_file(
    labels: NDArray[Any] | Sequence[Any] | None,
    names: NDArray[np.str_] | None = None,
    classes: tuple[str, ...] | None = None,
    noun: str = "label",
) -> LabelFile:
    """Labels of a file, of which cells of a table may be empty."""
    if labels is None or not len(labels):
        raise InputError(f"there are no {noun}s. Name them '{noun}s' ('{noun}' in a table).")
    if names is not None and len(names) != len(labels):
        raise InputError(
            f"there must be one name per {noun}; {len(names)} names, {len(labels)} {noun}s."
        )
    if isinstance(labels, np.ndarray):
        return LabelFile(labels, names, classes, noun=noun)
    full = [row for row, cell in enumerate(labels) if not is_empty(cell)]
    given = np.array([labels[row] for row in full])
    there = None if names is None else names[full]
    return LabelFile(given, there, classes, len(labels) - len(full), noun)


def read_label_file(
    path: str | os.PathLike[str],
    *,
    noun: str = "label",
    column: str | None = None,
    keys: Sequence[str] = KEYS,
) -> LabelFile:
    """What the file holds; its suffix says the format.

    ``.npy`` is one array. ``.npz`` holds ``labels``, maybe ``ids`` and ``classes``;
    ``FILE.npz:KEY`` is another array of it. ``.txt`` has a label a line. A ``.csv`` or
    ``.parquet`` table has a column ``label`` and maybe ``file``, ``path`` or ``id``.

    Args:
        path: The file.
        noun: What is read instead of labels, and the name of its column, such as ``group``.
        column: Another name of the column.
        keys: Columns that may say whose labels are; the first that is there counts.

    Raises:
        FileError: If it cannot be read or has no labels.
    """
    place, key = member_of(path)
    suffix, many = place.suffix.lower(), f"{noun}s"
    with fetched(place) as file, naming(path):
        if key is not None:
            return _label_file(_vector(named_member(file, key), many), noun=noun)
        if suffix in (".npy", ".txt") and column is not None:
            raise InputError(f"it has no columns, so {column!r} names nothing. Leave it out.")
        if suffix == ".npy":
            return _label_file(_vector(read_array(file), many), noun=noun)
        if suffix == ".npz":
            labels = _vector(named_member(file, column or many), many)
            ids, classes = read_member(file, "ids"), read_member(file, "classes")
            known = None if classes is None else check_classes(classes, k=classes.size)
            names = None if ids is None else as_text(_vector(ids, "ids"), "ids")
            return _label_file(labels, names, known, noun)
        if suffix == ".txt":
            with parsing(file, "text in UTF-8"):
                lines = file.read_text("utf-8-sig").rstrip().splitlines()
            return _label_file([line.strip() for line in lines], noun=noun)
        if suffix in (".csv", ".parquet"):
            wanted = column or noun
            cells, known = read_cells(file, (wanted, *(key for key in keys if key != wanted)))
            if wanted not in cells:
                raise InputError(f"there is no column {wanted!r}.")
            owner = next((key for key in keys if key in cells and key != wanted), None)
            names = None if owner is None else np.array(text_of(cells[owner]), dtype=np.str_)
            return _label_file(cells[wanted], names, known, noun)
        raise FileError(
            f"{file} must be a file of {many} and end in .npy, .npz, .txt, .csv or .parquet; it "
            f"ends in {file.suffix!r}."
        )


def _vector(part: NDArray[Any], name: str) -> NDArray[Any]:
    if part.ndim != 1:
        raise InputError(f"{name} must have shape (n,); got shape {part.shape}.")
    return part


def read_labels(path: str | os.PathLike[str], scores: Scores) -> Labels:
    """The labels of the rows of ``scores``, from another file.

    A ``.npy`` file is one array of labels, a ``.txt`` file has one a line. An ``.npz`` file holds
    ``labels`` and may hold ``ids`` and ``classes``; a ``.csv`` or ``.parquet`` table has a column
    ``label`` and may have ``file``, ``path`` or ``id``. Labels that say whose they are, by ids or
    by such a column, are joined by the ids of ``scores``, which must have them. Others are taken
    in order; that is an :class:`~shiftcal.errors.InputWarning` if ``scores`` have ids. Class names
    are looked up among those of ``scores``; whether labels are names or indices is told by all
    labels of the file.

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
        joined = _joined(path, given, scores)
        return labels if joined is None else labels[joined]


def read_groups(
    path: str | os.PathLike[str], scores: Scores, *, column: str | None = None
) -> RowGroups:
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
        joined = _joined(path, given, scores)
        groups = given.labels if joined is None else given.labels[joined]
        return check_row_groups(groups, n=scores.n)


def _joined(
    path: str | os.PathLike[str], given: LabelFile, scores: Scores
) -> NDArray[np.intp] | None:
    """Where the label of every row stands in the file; ``None`` if they are in order."""
    if given.names is None:
        if len(given.complete()) != scores.n:
            raise InputError(
                f"{given.noun}s must have one entry per row: {scores.n} rows, "
                f"{len(given.labels)} {given.noun}s."
            )
        if scores.ids is not None:
            warnings.warn(
                f"{given.noun}s of {os.fspath(path)} were joined by order: it does not say whose "
                "they are, the scores have ids. Add ids to it if the order may differ.",
                InputWarning,
                stacklevel=3,
            )
        return None
    if scores.ids is None:
        raise InputError(
            f"it names the row of each {given.noun}, but the scores have no ids to match. Add ids "
            f"to the scores, or leave the names out if {given.noun}s are in order."
        )
    return given.match(scores.ids.tolist(), advice=_ADVICE if given.noun == "label" else "")


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
        if given.names is None or scores.ids is None:
            whose = "the labels" if given.names is None else "the scores"
            raise InputError(
                f"rows with a label are found by their ids, and {whose} have none. "
                "Add ids, or give a label for every row."
            )
        labels = _indices(given, scores)
        found = given.find(scores.ids.tolist())
        kept = np.flatnonzero(found >= 0)
        if not len(kept):
            raise InputError(
                f"no row of the scores has a label in it: their ids are such as {scores.ids[0]!r}. "
                "Check that both files are about the same samples."
            )
        return scores._with(
            values=scores.values[kept],
            labels=labels[found[kept]],
            features=None if scores.features is None else scores.features[kept],
            ids=scores.ids[kept],
        )


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
    used, where = np.unique(own, return_inverse=True)
    indices: Labels = class_indices([given.classes[i] for i in used], scores.classes)[where]
    return indices
