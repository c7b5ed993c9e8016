"""Input validation. Everything below this layer trusts what it is given."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError, InputWarning, UnknownName, suggest
from shiftcal.types import Confidence, Correct, Floats, Images, Labels, Logits, Probs, Weights

# Elements looked at in one go, so that checks need no memory worth mentioning.
_BLOCK = 1 << 18
# Beyond this even differences of logits are of no use, and their squares overflow.
_LARGEST_LOGIT = 1e30
BINARY = {
    "logits": " For a binary score s, pass np.column_stack([np.zeros_like(s), s]).",
    "probabilities": " For a binary probability p, pass np.column_stack([1 - p, p]).",
}


def to_array(values: object, *, name: str) -> NDArray[Any]:
    """``values`` as a numpy array, whatever holds them, or an error that names them."""
    masked = sys.modules.get("numpy.ma")  # numpy imports it with the first use, and slowly
    if masked and isinstance(values, masked.MaskedArray) and masked.is_masked(values):
        raise InputError(f"{name} must not be masked; fill or drop the masked entries first.")
    try:
        if hasattr(values, "detach"):  # a torch tensor, which numpy does not take in every state
            tensor: Any = values
            tensor = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
            values = tensor.numpy(force=True)
        array = np.asarray(values)
        array = array if array.flags.aligned else array.copy()  # compiled code needs it
    except Exception as error:  # torch, jax and others raise what they like here
        raise InputError(f"{name} could not be read as an array: {error}.") from error
    if array.ndim == 0:
        raise InputError(
            f"{name} must be an array; got {type(values).__name__}. Read a file first, with "
            "shiftcal.read_scores; of Scores, pass logits()."
        )
    # Kind V first: the name of a type takes longer than all the rest.
    bfloat16 = array.dtype.kind == "V" and array.dtype.name == "bfloat16"
    return array.astype(np.float32) if bfloat16 else array


def _matrix(values: object, *, name: str, k: int | None) -> Floats:
    """Finite numbers ``(n, k)``, with ``k`` columns if it is given."""
    x = to_array(values, name=name)
    if len(x) == 0:
        raise InputError(f"{name} must have at least one row; this set is empty.")
    if x.ndim != 2 or x.shape[1] < 2:
        hint = BINARY[name] if x.ndim == 1 or x.shape[1:] == (1,) else ""
        raise InputError(
            f"{name} must have shape (n, k), a row per sample and a column per class, k >= 2; got "
            f"shape {x.shape}.{hint}"
        )
    if k is not None and x.shape[1] != k:
        raise InputError(
            f"{name} must have {k} columns, one per class it was fitted with; got {x.shape[1]}."
        )
    return _finite(_as_float(x, name), name)


def _vector(values: object, *, name: str, n: int | None = None) -> Floats:
    """Numbers ``(n,)``, not checked to be finite."""
    x = to_array(values, name=name)
    if x.ndim != 1 or len(x) == 0 or len(x) != (n or len(x)):
        raise InputError(f"{name} must have shape ({n or 'n'},), not empty; got shape {x.shape}.")
    return _as_float(x, name)


def _as_float(x: NDArray[Any], name: str) -> Floats:
    """Float32 or float64 as it came; halves and integers are widened, exactly."""
    if x.dtype.kind not in "iufb":
        hint = " From pandas: frame.to_numpy(dtype=float)." if x.dtype == object else ""
        raise InputError(f"{name} must be real numbers; got dtype {x.dtype}.{hint}")
    if x.dtype == np.float16:
        return x.astype(np.float32)
    # The plain type, even over an equal one: numpy's fast paths compare types by identity.
    return np.ascontiguousarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)


def _finite(x: Floats, name: str) -> Floats:
    """``x`` itself, if all of it is finite; logits must also be within ±1e30."""
    limit = _LARGEST_LOGIT if name == "logits" else float(np.finfo(x.dtype).max)
    for start, block in _blocks(x):
        # Two looks without a copy; a NaN makes both ends NaN, and no comparison holds then.
        if block.min() >= -limit and block.max() <= limit:
            continue
        bad = np.argwhere(~(np.abs(block) <= limit))[0]
        value = float(block[tuple(bad)])
        infinite = name == "logits" and np.isinf(value)
        hint = ' Of zero probabilities: pass them with input="probabilities".' if infinite else ""
        rule = f"lie within ±{limit:g}" if np.isfinite(value) else "be finite"
        row = start + int(bad[0])
        raise InputError(f"{name} must {rule}; row {row} holds {value:g}. Drop such rows.{hint}")
    return x


def _blocks(x: Floats) -> Iterator[tuple[int, Floats]]:
    """Blocks of rows, each with the number of its first row."""
    rows = max(1, _BLOCK // max(1, x.size // len(x)))
    for start in range(0, len(x), rows):
        yield start, x[start : start + rows]


# --------------------------------------------------------------------------------------
# Names of classes, labels and groups.
# --------------------------------------------------------------------------------------


def plain(x: NDArray[Any], name: str) -> NDArray[Any]:
    """Text or numbers from an array of objects that are all the one or all the other.

    An array of any other type is returned as it is.

    Raises:
        InputError: Naming the first entry that is neither, or not what the first one is.
    """
    if x.dtype.kind not in "OT":  # T is numpy's text of any length
        return x
    entries = x.ravel().tolist()
    text = any(isinstance(entry, str) for entry in entries)
    kind = str if text else (int, float, np.integer, np.floating)
    for i, entry in enumerate(entries):
        if not isinstance(entry, kind) or isinstance(entry, bool):
            raise InputError(
                f"{name} must be all text or all whole numbers; entry {i} is {repr(entry)[:40]}. "
                "Fill in what is missing, or drop those rows."
            )
    return np.array(entries, dtype=np.str_ if text else None).reshape(x.shape)


def as_text(values: NDArray[Any], name: str) -> NDArray[np.str_]:
    """Text from text, from UTF-8 bytes, or from whole numbers."""
    try:
        return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values.astype(str)
    except UnicodeDecodeError as error:
        raise InputError(f"{name} must be text in UTF-8; {error.object!r} is not.") from error


def check_classes(classes: object, *, k: int) -> tuple[str, ...]:
    """Names of the ``k`` classes in the order of the columns, all different and none empty."""
    given = plain(to_array(classes, name="classes"), "classes")
    if given.shape != (k,) or given.dtype.kind not in "US":
        raise InputError(
            f"classes must be the names of the {k} columns of the scores, as text; got shape "
            f"{given.shape} of dtype {given.dtype}."
        )
    names = as_text(given, "classes").tolist()
    for column, name in enumerate(names):
        if not name or name in names[:column]:
            what = f"{name!r} comes twice" if name else f"that of column {column} is empty"
            raise InputError(f"classes must have names, all different; {what}.")
    return tuple(names)


def label_indices(labels: NDArray[Any], classes: Sequence[str] | None) -> NDArray[Any]:
    """Numbers as they are; text by the names of the classes, or else as numbers.

    Text that is a class name is that class even if it also looks like a number. Either all labels
    are names or all are numbers, so pass those of a whole file at a time.

    Args:
        labels: Numbers or text ``(n,)``.
        classes: The names, in the order of the columns.

    Raises:
        InputError: If a label is neither a class name nor a number.
    """
    given = plain(labels, "labels")
    if given.dtype.kind not in "US":
        return given
    distinct, where = np.unique(as_text(given, "labels"), return_inverse=True)
    where = where.reshape(labels.shape)
    if not set(distinct.tolist()) & set(classes or ()):
        try:
            return distinct.astype(np.float64)[where]
        except ValueError:  # not numbers either
            pass
    return class_indices(distinct.tolist(), classes)[where]


def class_indices(names: Sequence[str], classes: Sequence[str] | None) -> NDArray[np.intp]:
    """Where each name stands among the classes, which are in the order of the columns.

    Raises:
        InputError: If a name is not among them.
    """
    position = {name: i for i, name in enumerate(classes or ())}
    for name in names:
        if name not in position:
            if classes is None:
                raise InputError(
                    f"labels must be class indices, as the classes have no names; got {name!r}. "
                    "Name them where the scores are made: classes=, or --classes of shiftcal bank."
                )
            near = suggest(name, classes[:10])
            raise InputError(
                f"labels must be among the {len(classes)} classes; {name!r} is not. {near}"
            )
    return np.array([position[name] for name in names], dtype=np.intp)


def check_groups(groups: object, *, k: int | None = None) -> dict[str, tuple[int, ...]]:
    """Two or more groups of classes in their order: name -> its members, sorted.

    Every group has a member, and no class is in two of them; some classes may be in none.

    Args:
        groups: Mapping of names to class indices.
        k: How many classes there are, if that is known.

    Raises:
        InputError: If they are something else.
    """
    if not isinstance(groups, Mapping) or len(groups) < 2:
        raise InputError(
            "groups must be two or more, a mapping of names to class indices such as "
            f'{{"bear": [294, 295], "bicycle": [444, 671]}}; got {groups!r:.80}.'
        )
    names = check_classes(list(groups), k=len(groups))
    checked: dict[str, tuple[int, ...]] = {}
    owner: dict[int, str] = {}
    for name, given in zip(names, groups.values(), strict=True):
        members = to_array(given, name=f"group {name!r}")
        if members.ndim != 1 or not members.size or members.dtype.kind not in "iu":
            raise InputError(f"group {name!r} must be a list of class indices; got {given!r:.80}.")
        checked[name] = tuple(sorted(members.tolist()))
        for member in checked[name]:
            if member < 0 or (k is not None and member >= k):
                limit = "0 or more" if k is None else f"from 0 to {k - 1}"
                raise InputError(f"class indices of group {name!r} must be {limit}; got {member}.")
            if owner.setdefault(member, name) != name or checked[name].count(member) > 1:
                raise InputError(
                    f"a class must be in one group and once; {member} is in {owner[member]!r} and "
                    f"in {name!r}."
                )
    return checked


class RowGroups(NamedTuple):
    """The group of every row, checked.

    Attributes:
        names: Of the groups, in the order they come.
        codes: ``(n,)`` the number of every row's group.
    """

    names: tuple[str, ...]
    codes: NDArray[np.intp]


def check_row_groups(groups: object, *, n: int) -> RowGroups:
    """The names of the groups, and of every row the number of its group.

    Names are text; whole numbers, truth values and dates stand for the text they are written as,
    so that 7, 7.0 and ``"7"`` are one group, in memory and in a file.

    Args:
        groups: ``(n,)`` one entry per row: a list, an array, a column of a data frame.
        n: How many rows there are.

    Raises:
        InputError: If they are as many as something else, an entry is missing, or it is of a kind
            that has no text of its own.
    """
    if isinstance(groups, RowGroups):
        return groups
    if isinstance(groups, (list, tuple)):  # numpy would make text of what is missing
        groups = np.array(groups, dtype=object)
    given = plain(to_array(groups, name="groups"), "groups")
    if given.shape != (n,):
        raise InputError(
            f"groups must have one entry per row, shape ({n},); got shape {given.shape}. Groups by "
            "several columns: join them to one text first, such as 'site 3, camera 1'."
        )
    if given.dtype.kind == "f" and (given == np.floor(given)).all():
        given = given.astype(np.int64)
    texts = as_text(given, "groups") if given.dtype.kind in "USiubM" else np.array([""])
    if missing := {"", "NaT"}.intersection(texts.tolist()):
        raise InputError(
            f"groups must be names, whole numbers or dates, none missing; got {given.dtype} with "
            f"{missing.pop()!r}. Give such rows a name, such as 'unknown'."
        )
    names, first, codes = np.unique(texts, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return RowGroups(tuple(names[order].tolist()), np.argsort(order)[codes])


# --------------------------------------------------------------------------------------
# Images.
# --------------------------------------------------------------------------------------

LEAST_SIDE = 8


@dataclass(frozen=True)
class ImageLayout:
    """How images came, so that what is made of them can be given back the same way.

    Attributes:
        shape: The shape that came.
        grey: Whether there was one channel.
    """

    shape: tuple[int, ...]
    grey: bool

    def to_colour(self, images: NDArray[np.uint8]) -> Images:
        """A slice along the first axis of checked images as ``(n, height, width, 3)``."""
        return np.repeat(images[..., None], 3, axis=3) if self.grey else images

    def from_colour(self, images: Images) -> NDArray[np.uint8]:
        """The other way: of grey images the green channel is kept."""
        return images[..., 1] if self.grey else images


def check_images(images: object) -> tuple[NDArray[np.uint8], ImageLayout]:
    """Images as a batch ``(n, height, width, 3)``, or ``(n, height, width)`` if they are grey.

    One image is a batch of one. Nothing is copied, so that a file mapped into memory stays there.

    Raises:
        InputError: If they are not uint8, not of such a shape, smaller than 8 pixels, or if it
            cannot be told whether three grey images or the channels of one came.
    """
    if getattr(images, "mode", None) in ("P", "1", "CMYK", "YCbCr", "HSV", "LAB"):  # Pillow's
        images = images.convert("RGB")  # type: ignore[attr-defined]
    if isinstance(images, (list, tuple)) and len({np.shape(image) for image in images}) > 1:
        raise InputError(
            "images of a list must have one size; these differ. Corrupt them one by one, with "
            "first_index=0, 1, ... for what they would be in a batch."
        )
    given = images if isinstance(images, np.memmap) else to_array(images, name="images")
    if given.dtype != np.uint8:
        raise InputError(
            f"images must be uint8, 0 to 255; got {given.dtype}. If they are 0 to 1, pass "
            "(images * 255).round().astype(np.uint8)."
        )
    shape, last = given.shape, given.shape[-1]
    colour = given.ndim in (3, 4) and last in (1, 3)
    first = given.ndim > 2 and shape[-3] in (1, 3) and last not in (1, 3)
    if first or not (colour or (given.ndim in (2, 3) and last >= LEAST_SIDE)):
        axes = "0, 2, 3, 1" if given.ndim == 4 else "1, 2, 0"
        hint = " Leave transparency out: images[..., :3]." if last == 4 else ""
        if first:  # of one image, or three grey ones
            hint = f" Channels first: images.transpose({axes}); three grey: images[..., None]."
        raise InputError(
            "images must have shape (n, height, width, 3) or (height, width, 3), channels last, or "
            f"the same without the last axis if they are grey; got shape {shape}.{hint}"
        )
    grey = not colour or last == 1
    batch = given[..., 0] if colour and grey else given
    batch = batch if batch.ndim == (3 if grey else 4) else batch[None]
    if min(batch.shape[1:3]) < LEAST_SIDE:
        raise InputError(
            f"images must be at least {LEAST_SIDE} pixels high and wide; these are "
            f"{batch.shape[1]} x {batch.shape[2]}. Enlarge them first."
        )
    return batch, ImageLayout(shape, grey)


# --------------------------------------------------------------------------------------
# Options.
# --------------------------------------------------------------------------------------


def check_choice(value: object, allowed: Sequence[str], *, name: str) -> Any:
    """``value`` if it is one of ``allowed``."""
    if isinstance(value, str) and value in allowed:
        return value
    hint = suggest(value, allowed)
    near = f" {hint}" if hint.startswith("Did you mean") else ""  # all are named already
    raise UnknownName(
        f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.{near}"
    )


def check_flag(value: object, *, name: str) -> bool:
    """``value`` if it is true or false."""
    if isinstance(value, bool):
        return value
    raise InputError(f"{name} must be true or false; got {value!r}.")


def check_count(value: object, *, name: str, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int of at least ``least``, and at most ``most`` if that is given."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and least <= int(value) and (most is None or int(value) <= most):  # type: ignore[call-overload]
        return int(value)  # type: ignore[call-overload]
    limit = "" if most is None else f" and at most {most:,}"
    raise InputError(f"{name} must be a whole number of at least {least}{limit}; got {value!r}.")


def _number(value: object, name: str, rule: str, good: Callable[[float], bool]) -> float:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if number and good(float(value)):  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise InputError(f"{name} must {rule}; got {value!r}.")


def check_fraction(value: object, *, name: str) -> float:
    """``value`` as a float strictly between 0 and 1."""
    return _number(value, name, "lie strictly between 0 and 1", lambda x: 0 < x < 1)


def check_not_negative(value: object, *, name: str) -> float:
    """``value`` as a finite float of at least 0."""
    return _number(value, name, "be a number of at least 0", lambda x: 0 <= x < np.inf)


def check_positive(value: object, *, name: str) -> float:
    """``value`` as a finite float above 0."""
    return _number(value, name, "be a number above 0", lambda x: 0 < x < np.inf)


def check_range(value: object, *, name: str) -> tuple[float, float]:
    """``value`` as two positive finite numbers, the smaller first."""
    try:
        low, high = (float(end) for end in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low = high = 0.0
    if 0 < low < high < np.inf:
        return low, high
    raise InputError(
        f"{name} must be two positive numbers, the smaller first, such as (0.01, 100); "
        f"got {value!r}."
    )


# --------------------------------------------------------------------------------------
# Scores and what belongs to their rows.
# --------------------------------------------------------------------------------------

# Rows of probabilities may miss one by this much: float16 softmax over 1000 classes does.
_SUM_TOLERANCE = 5e-3
# Rows from which on logits are rejected if all look like probabilities: so many rows of real
# logits are never all on the simplex; fewer could be.
GUARD_FROM = 10
# A probability of zero has no logarithm; float32 softmax underflows here anyway.
SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)
# A softmax in float32 can exceed 1 by so much.
_ABOVE_ONE = 1e-6


def check_scores(scores: object, *, input: str = "logits", k: int | None = None) -> Logits:
    """Logits of shape ``(n, k)`` from what a model gave, whichever kind it is.

    Args:
        scores: Array-like ``(n, k)``.
        input: What the numbers are: ``"logits"`` or ``"probabilities"``. Probabilities become
            ``log(max(p, 1.2e-38))``, which is the same as logits for everything shiftcal does.
        k: Number of classes they must have.

    Raises:
        InputError: If they are not that kind, not finite, empty, or of another shape.
    """
    if check_choice(input, ("logits", "probabilities"), name="input") == "logits":
        return check_logits(scores, k=k)
    return logits_of(check_probs(scores, k=k))


def logits_of(probs: Floats) -> Logits:
    """``log(max(p, 1.2e-38))`` of checked probabilities."""
    return np.log(np.maximum(probs, SMALLEST_PROBABILITY))


def check_logits(logits: object, *, k: int | None = None) -> Logits:
    """Finite logits ``(n, k)`` with ``n >= 1`` and ``k >= 2``, in float32 or float64.

    Rows that all look like probabilities, or percentages, are rejected; fewer than ten, which
    may do so by chance, give a warning.
    """
    z = _matrix(logits, name="logits", k=k)
    # A few rows may sum to about one by chance.
    total = _row_sum(z, slack=0.02 if len(z) >= GUARD_FROM else 1e-3)
    if total is not None:
        percent = " in percent, divide them by 100" if total == 100 else ""
        few = len(z) < GUARD_FROM
        text = (
            f"these logits {'look like' if few else 'are'} probabilities{percent}: every row is "
            f'non-negative and sums to {total}. Say input="probabilities" (in a file, name the '
            "array so); if they really are logits, add a constant to them first."
        )
        if not few:
            raise InputError(text)
        warnings.warn(text, InputWarning, stacklevel=2)
    return z


def check_probs(probs: object, *, k: int | None = None, first: int = 0) -> Probs:
    """Probabilities ``(n, k)`` as float64: each in [0, 1], every row summing to one.

    Rows may miss one by 0.005 (half precision does); they are divided by their sum. ``first`` is
    the number of the first row, for messages.
    """
    p = _matrix(probs, name="probabilities", k=k).astype(np.float64)
    low, high, sums = float(p.min()), float(p.max()), p.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1)))
    if low < 0 or high > 1 + _SUM_TOLERANCE:
        hint = 'Logits go in with input="logits".'
        if _row_sum(p) == 100:
            hint = "They are in percent: divide them by 100, or normalize (--normalize)."
        raise InputError(
            f"probabilities must lie in [0, 1]; these go from {low:.4g} to {high:.4g}. {hint}"
        )
    if abs(sums[worst] - 1) > _SUM_TOLERANCE:
        raise InputError(
            f"every row of probabilities must sum to 1; row {first + worst} sums to "
            f"{sums[worst]:.4g}. "
            "If they were rounded: --normalize, or normalize=True in read_scores and Scores."
        )
    # What is right up to rounding stays: equal probabilities in two rows must still tie.
    inexact = np.abs(sums - 1) > 1e-12
    p[inexact] /= sums[inexact, None]
    np.minimum(p, 1.0, out=p)
    return p


def _row_sum(z: Floats, *, slack: float = 0.02) -> int | None:
    """What all rows sum to if they are probabilities or percentages: 1 or 100; else ``None``."""
    total = 100 if z[0].sum() > 50 else 1
    for block in (z[:8], *(part for _, part in _blocks(z))):  # the first rows mostly tell
        if block.min() < 0 or np.abs(block.sum(axis=1) - total).max() > slack * total:
            return None
    return total


def normalize_rows(probs: NDArray[Any]) -> Floats:
    """Rows divided by their sum, where they can be rounded probabilities or percentages.

    Percentages sum to 100 within 5. Other rows with numbers outside of [0, 1], or without a
    positive sum, stay for the check to reject.
    """
    p = np.array(probs, dtype=np.float64)
    sums = p.sum(axis=1)
    fractions = (p <= 1).all(axis=1) & (sums > 0)
    rounded = (p >= 0).all(axis=1) & (fractions | (np.abs(sums - 100) <= 5))
    p[rounded] /= sums[rounded, None]
    return p


def check_features(features: object, *, name: str, n: int | None = None) -> Floats:
    """Finite features ``(n, d)`` with at least one row."""
    f = to_array(features, name=name)
    if f.ndim != 2 or 0 in f.shape or len(f) != (n or len(f)):
        raise InputError(
            f"{name} must have shape ({n or 'n'}, d), a row per sample; got shape {f.shape}."
        )
    return _finite(_as_float(f, name), name)


def check_labels(labels: object, *, n: int, k: int) -> Labels:
    """Integer labels ``(n,)`` in ``0..k-1``."""
    y = plain(to_array(labels, name="labels"), "labels")
    if y.ndim != 1:
        how = "argmax(axis=1) if they are one-hot" if y.shape == (n, k) else "ravel()"
        raise InputError(f"labels must have shape ({n},); got shape {y.shape}. Pass labels.{how}.")
    if len(y) != n:
        raise InputError(
            f"labels must have one entry per row: {n} rows, {len(y)} labels. Both must come from "
            "the same samples in the same order."
        )
    if y.dtype.kind not in "iufb":
        raise InputError(
            f"labels must be class indices 0..{k - 1}; got values like {y[0]!r}. Map names to "
            "their column first: np.array([list(classes).index(name) for name in labels])."
        )
    if y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.floor(y)).all()):
        bad = int(np.argmax(~np.isfinite(y) | (y != np.floor(y))))
        raise InputError(f"labels must be whole numbers; entry {bad} is {y[bad]}.")
    out = y.astype(np.intp, copy=False)
    low, high = int(out.min()), int(out.max())
    if low < 0 or high >= k:
        hint = " If yours start at 1, pass labels - 1." if low == 1 and high == k else ""
        raise InputError(
            f"labels must lie in 0..{k - 1}, one per column; these go from {low} to {high}.{hint}"
        )
    return out


def check_weights(sample_weight: object, *, n: int) -> Weights | None:
    """Weights ``(n,)``, finite, non-negative and not all zero; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    name = "sample_weight"
    w = _finite(_vector(sample_weight, name=name, n=n), name).astype(np.float64)
    if w.min() < 0 or not w.any():
        raise InputError(
            "sample_weight must not be negative, nor zero everywhere; row "
            f"{int(w.argmin())} has {w.min():.4g}."
        )
    return w


def check_confidence(confidence: object, *, name: str = "confidence") -> Confidence:
    """Confidences ``(n,)`` in [0, 1], in float32 or float64.

    A softmax in float32 can give 1.0000001: what exceeds 1 by no more than 1e-6 is taken as 1.
    """
    given = to_array(confidence, name=name)
    if given.ndim == 2 and given.shape[1] > 1:
        raise InputError(
            f"{name} must have shape (n,), the probability of the predicted class; got shape "
            f"{given.shape}. From whole rows: probs.max(axis=1)."
        )
    c = _vector(given, name=name)
    # One look, block by block, decides everything: a NaN makes both ends NaN.
    ends = np.array([(block.min(), block.max()) for _, block in _blocks(c)])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    if low >= 0 and 1 < high <= 1 + _ABOVE_ONE:
        return np.minimum(c, 1)
    if not (low >= 0 and high <= 1):
        _finite(c, name)
        raise InputError(
            f"{name} must lie in [0, 1]; these go from {low:.4g} to {high:.4g}. "
            "Pass the probability of the predicted class, as a fraction."
        )
    return c


def check_correct(correct: object, *, n: int, name: str = "correct") -> Correct:
    """Booleans ``(n,)``, or zeros and ones: whether each row is correct."""
    r = to_array(correct, name=name)
    if r.shape != (n,):
        raise InputError(
            f"{name} must have one entry per confidence, shape ({n},); got shape {r.shape}."
        )
    if r.dtype.kind != "b" and (r.dtype.kind not in "iuf" or not ((r == 0) | (r == 1)).all()):
        hint = " From labels: probs.argmax(axis=1) == labels." if name == "correct" else ""
        raise InputError(f"{name} must hold True and False (or 1 and 0).{hint}")
    if r.dtype == np.bool_ and r.view(np.uint8).max(initial=0) > 1:  # bytes viewed as booleans
        return r.view(np.uint8) != 0
    return r.astype(np.bool_, copy=False)
