"""What every model is: images in, logits out, batch by batch; functions and grouped classes."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    check_choice,
    check_classes,
    check_count,
    check_flag,
    check_groups,
    check_images,
    check_scores,
    to_array,
)
from shiftcal.errors import FileError, InputError, MissingData, MissingExtra
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.types import Floats, Images, InputKind, Logits

# Bytes that a batch may take on its way through the model.
_BUDGET = 512 << 20
# A ResNet-20 in onnxruntime is as fast with 32 images as with 512: more only takes memory.
_LARGEST = 256
# Memory per image as a multiple of its own numbers as float32: two layers of 64 channels at the
# resolution of the image.
_ASSUMED = 128 / 3


class Outputs(NamedTuple):
    """What a model returns for images.

    Attributes:
        logits: ``(n, k)``, finite.
        features: ``(n, d)`` of a layer, for models asked for features.
    """

    logits: Logits
    features: Floats | None = None


class Model(ABC):
    """Anything that turns images into logits. An adapter implements :meth:`_forward`.

    Args:
        preprocessing: What happens to images first; by default pixels between 0 and 1, channels
            first.
        classes: Names of the classes, in the order of the logits. Their number is checked.
        output: What the model returns, ``"logits"`` or ``"probabilities"``, which become their
            logarithm.
        batch_size: Images per call; ``None`` takes the largest power of two, at most 256, that
            needs no more than 512 MiB at 171 bytes per number of the input.
        key: A name for this model, such as ``"my-model-v3"``; change it when the model changes.
            The fingerprint is then made of the key and the options that decide the outputs.

    Attributes:
        spec: The text the model was made from, if any.
    """

    spec: str | None = None

    def __init__(
        self,
        *,
        preprocessing: Preprocessing | None = None,
        classes: Sequence[str] | None = None,
        output: InputKind = "logits",
        batch_size: int | None = 256,
        key: str | None = None,
    ) -> None:
        if not isinstance(preprocessing, Preprocessing | None):
            raise InputError(
                f"preprocessing must be a Preprocessing; got {type(preprocessing).__name__}. "
                "Preprocessing.from_dict makes one of a dict."
            )
        self.preprocessing: Preprocessing = preprocessing or Preprocessing()
        named = None if classes is None else check_classes(classes, k=len(classes))
        self.classes: tuple[str, ...] | None = named
        self.output: InputKind = check_choice(output, ("logits", "probabilities"), name="output")
        self.batch_size = None if batch_size is None else check_count(batch_size, name="batch_size")
        if key is not None and not (isinstance(key, str) and key):
            raise InputError(f"key must be a name; got {key!r}. Leave it out if there is none.")
        self.key = key

    def __repr__(self) -> str:
        name = type(self).__name__ + (f" {self.spec}" if self.spec else "")
        classes = "not named" if self.classes is None else f"{len(self.classes)} named"
        return f"<{name}, classes: {classes}, {self.preprocessing}>"

    @abstractmethod
    def _forward(self, batch: NDArray[Any]) -> Any:
        """Logits ``(n, k)`` of a preprocessed batch, or ``(logits, features)``.

        Trusts its input; its output is checked.
        """

    @property
    def fingerprint(self) -> str | None:
        """A digest of what decides the outputs; ``None`` if that is unknown.

        Preprocessing is not part of it, nor what changes only the rounding (:attr:`engine`). Work
        with a model without fingerprint cannot be resumed.
        """
        parts = self._identity() if self.key is None else ("key", self.key)
        if parts is None:
            return None
        chosen = [f"{name}={value!r}" for name, value in sorted(self._choices().items())]
        return digest([self.output, *parts, *chosen])

    def _identity(self) -> Iterable[str | bytes | memoryview] | None:
        """What :attr:`fingerprint` is made of, besides :attr:`output` and :meth:`_choices`."""
        return None

    def _choices(self) -> Mapping[str, str | bool | None]:
        """Options of the adapter that decide the outputs, with or without a key."""
        return {}

    @property
    def engine(self) -> str:
        """What computes the outputs, with its version, such as ``"onnxruntime 1.20.1 CPU..."``."""
        return type(self).__name__

    def use_threads(self, threads: int) -> None:
        """Use at most this many threads from now on, where the adapter decides that."""
        del threads

    @final
    def logits(self, images: object) -> Logits:
        """Logits of images, one row per image.

        Args:
            images: uint8, ``(n, height, width, 3)``, or without the last axis if they are grey;
                one image is a batch of one. Not changed.

        Returns:
            Finite logits ``(n, k)``.

        Raises:
            InputError: If the images cannot be used, or the model raises or returns anything but
                finite logits; the message names the images of the batch.
        """
        return self.outputs(images).logits

    @final
    def outputs(self, images: object) -> Outputs:
        """Logits of images, and features if the model was asked for them; see :meth:`logits`."""
        pixels, layout = check_images(images)
        if len(pixels) == 0:
            raise InputError("images must hold at least one image; this batch is empty.")
        size = self.size_of_batches(layout.to_colour(np.asarray(pixels[:1])))
        k = len(self.classes) if self.classes else None
        parts: list[Outputs] = []
        for start in range(0, len(pixels), size):
            colour = layout.to_colour(np.asarray(pixels[start : start + size]))
            batch = self.preprocessing.apply(colour)
            parts.append(self.run(batch, first=start, k=k))
            k = parts[0].logits.shape[1]
        return self.joined(parts, where=f"images 0 to {len(pixels) - 1}")

    @final
    def size_of_batches(self, images: Images) -> int:
        """How many images like these, ``(n, height, width, 3)``, go through the model at once."""
        if self.batch_size is not None:
            return self.batch_size
        each = _ASSUMED * 4 * self.preprocessing.apply(images[:1]).size
        most = min(_LARGEST, max(1, int(_BUDGET // each)))
        return 1 << (most.bit_length() - 1)

    @final
    def run(self, batch: NDArray[Any], *, first: int = 0, k: int | None = None) -> Outputs:
        """What the model returns for one preprocessed batch, for :meth:`joined`.

        Args:
            batch: What :meth:`Preprocessing.apply` returned for some images.
            first: Index of the first of them, for messages.
            k: Columns the logits must have, if known.

        Raises:
            InputError: As for :meth:`logits`.
        """
        where = f"images {first} to {first + len(batch) - 1}"
        try:
            output = self._forward(batch)
        except MissingExtra:
            raise
        except (Exception, SystemExit) as error:  # a model may raise anything
            memory = isinstance(error, MemoryError) or "out of memory" in str(error)
            advice = " Set a smaller batch_size (--batch-size)." if memory else ""
            raise InputError(
                f"the model failed on {where}, given {batch.dtype} of shape {batch.shape}: "
                f"{type(error).__name__}: {error}{advice}"
            ) from error
        if isinstance(output, tuple) and len(output) != 2:
            raise InputError(
                f"the model's output for {where} must be logits, or a pair of logits and features; "
                f"got a tuple of {len(output)}."
            )
        logits, features = output if isinstance(output, tuple) else (output, None)
        z = _check_rows(logits, "output", len(batch), first)
        if z.shape[1] < 2 or k not in (None, z.shape[1]):
            raise InputError(
                f"the model's output for {where} must have a column per class, {k or 'two or more'}"
                f"; got shape {z.shape}. For a binary score s, return "
                "np.column_stack([np.zeros_like(s), s])."
            )
        if features is not None:
            features = _check_rows(features, "features", len(batch), first)
            features = features.astype(np.promote_types(features.dtype, np.float32), copy=False)
        # A copy, since the model may use the array for the next batch as well.
        return Outputs(z.astype(np.promote_types(z.dtype, np.float32)), features)

    @final
    def joined(self, parts: Sequence[Outputs], *, where: str) -> Outputs:
        """Outputs of consecutive batches as one; probabilities become logits.

        Args:
            parts: What :meth:`run` returned, in order.
            where: Which images these are, for messages.

        Raises:
            InputError: If they are not what :attr:`output` says.
        """
        widths = {None if part.features is None else part.features.shape[1] for part in parts}
        if len(widths) > 1:
            raise InputError(
                f"the model's features for {where} must have the same columns for all images; got "
                f"{sorted(width or 0 for width in widths)}."
            )
        features = [part.features for part in parts if part.features is not None]
        try:
            logits = check_scores(
                np.concatenate([part.logits for part in parts]), input=self.output
            )
        except InputError as error:
            hint = ""
            if self.output == "logits" and "probabilities" in str(error):
                hint = ' For a model, set output="probabilities" (?output=probabilities in a spec).'
            raise InputError(f"the model's output for {where}: {error}{hint}") from error
        return Outputs(logits, np.concatenate(features) if features else None)


def _check_rows(output: Any, noun: str, n: int, first: int) -> NDArray[Any]:
    """Finite numbers with a row for each of ``n`` images, the first of them image ``first``."""
    name = f"the model's {noun} for images {first} to {first + n - 1}"
    z = to_array(output, name=name)
    if z.ndim != 2 or len(z) != n or not z.shape[1] or z.dtype.kind not in "fiu":
        raise InputError(
            f"{name} must be numbers of shape ({n}, columns); got shape {z.shape} of {z.dtype}."
        )
    bad = ~np.isfinite(z).all(axis=1)
    if bad.any():
        raise InputError(
            f"{name} must be finite; {int(bad.sum())} of {n} rows hold NaN or infinity, the first "
            f"that of image {first + int(bad.argmax())}. Check the weights, mean and std."
        )
    return z


def first_line(error: BaseException) -> str:
    """The first line of what a library says went wrong."""
    return str(error).strip().partition("\n")[0]


def digest(parts: Iterable[str | bytes | memoryview]) -> str:
    """SHA-256 of the parts, each preceded by its length."""
    state = hashlib.sha256()
    for part in parts:
        data = memoryview(part.encode() if isinstance(part, str) else part)
        state.update(data.nbytes.to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def as_features(values: Any, *, name: str) -> NDArray[Any]:
    """``(n, d)`` as it is, and the mean over positions of ``(n, c, h, w)``.

    Raises:
        InputError: For any other shape.
    """
    array = np.asarray(values)
    if array.ndim == 4:
        wide = np.float64 if array.dtype == np.float64 else np.float32
        array = array.mean(axis=(2, 3), dtype=wide)
    if array.ndim != 2:
        raise InputError(
            "features_from must name something of shape (n, d), or (n, c, h, w) to be averaged "
            f"over positions; {name!r} has shape {array.shape}. Name another layer."
        )
    return array


def in_fixed_batches(
    run: Callable[[NDArray[Any]], Sequence[NDArray[Any]]],
    batch: NDArray[Any],
    shape: Sequence[Any],
) -> tuple[NDArray[Any], ...]:
    """The outputs of a network on a batch, where its file may fix the size of the batch.

    Args:
        run: From an array to arrays with one row per image.
        batch: Images; the last piece is filled up with copies of its last image.
        shape: Of the network's input; only whole numbers are fixed.

    Raises:
        InputError: If the images do not have that shape.
    """
    for wanted, actual in zip(shape[1:], batch.shape[1:], strict=True):
        if isinstance(wanted, int) and wanted != actual:
            raise InputError(
                f"the network takes inputs of shape {tuple(shape[1:])}; these images give "
                f"{batch.shape[1:]}. Set resize and crop, or channels, in the preprocessing; on "
                "the command line ?resize=256&crop=224 or ?channels=1."
            )
    size = shape[0] if isinstance(shape[0], int) else len(batch)
    parts = []
    for start in range(0, len(batch), size):
        piece = batch[start : start + size]
        n = len(piece)
        if n < size:
            piece = np.concatenate([piece, np.repeat(piece[-1:], size - n, axis=0)])
        parts.append([output[:n] for output in run(piece)])
    return tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))


class CallableModel(Model):
    """A function that takes a batch of images and returns ``(n, k)`` logits.

    It may also return a pair, logits and features ``(n, d)``.

    Args:
        function: Called with the array that the preprocessing returns.
        raw: Pass the pixels as they are, uint8 of shape ``(n, height, width, 3)``; the
            preprocessing can then only resize and crop.
        key: A name for this function, such as ``"my-model-v3"``; change it when the function
            changes. Without it there is no fingerprint.
        preprocessing: As for every model.
        **options: ``classes``, ``output`` and ``batch_size``, as for every model.
    """

    def __init__(
        self,
        function: Callable[[NDArray[Any]], Any],
        *,
        raw: bool = False,
        key: str | None = None,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        super().__init__(preprocessing=preprocessing, key=key, **options)
        if check_flag(raw, name="raw"):
            self.preprocessing = replace(self.preprocessing, layout="nhwc", dtype="uint8")
        self.function = function

    def _forward(self, batch: NDArray[Any]) -> Any:
        return self.function(batch)


class WrappedModel(Model):
    """A model that runs another one and changes its outputs.

    Preprocessing, batch size and threads are those of the other model.

    Args:
        model: The other model.
        classes: Names of the classes, if known.
    """

    def __init__(self, model: Model, *, classes: Sequence[str] | None = None) -> None:
        super().__init__(
            preprocessing=model.preprocessing,
            classes=classes,
            batch_size=model.batch_size,
        )
        self.model = model

    @property
    def engine(self) -> str:
        """The engine of the model."""
        return self.model.engine

    def use_threads(self, threads: int) -> None:
        """As the model does."""
        self.model.use_threads(threads)


class GroupedModel(WrappedModel):
    """Groups of a model's classes as the classes.

    The logit of a group is ``log(sum(exp(z)))`` over the logits ``z`` of its members: the log of
    the sum of their probabilities up to a constant per row. So ``softmax`` of these logits is the
    probability of each group, given that the image belongs to one of them.

    Features, preprocessing, batch size and engine are those of the model; the fingerprint is made
    of the model's and the groups.

    Args:
        model: A model, as :func:`as_model` returns it.
        groups: Name -> columns of the model's logits; at least two groups, none empty, no column
            in two of them. Their order is that of the classes.

    Attributes:
        model: The model.
        groups: Name -> columns, sorted.

    Raises:
        InputError: If the groups are something else, or name columns that the model lacks.
    """

    def __init__(self, model: Model, groups: Mapping[str, Sequence[int]]) -> None:
        self.groups = check_groups(groups, k=len(model.classes) if model.classes else None)
        super().__init__(model, classes=list(self.groups))

    def _identity(self) -> Iterable[str] | None:
        inner = self.model.fingerprint
        if inner is None:
            return None
        groups = [part for name, columns in self.groups.items() for part in (name, str(columns))]
        return ("grouped", inner, *groups)

    def _forward(self, batch: NDArray[Any]) -> Any:
        k = len(self.model.classes) if self.model.classes else None
        z, features = self.model.joined([self.model.run(batch, k=k)], where="a batch")
        columns = [
            np.logaddexp.reduce(z[:, members].astype(np.float64), axis=1)
            for members in self.groups.values()
        ]
        grouped = np.column_stack(columns).astype(z.dtype)
        return grouped if features is None else (grouped, features)


def regular_file(path: str | Path, kind: str) -> Path:
    """The path, if a regular file that is not empty is there; it is not opened.

    Device files and ``/proc`` claim to be empty, and reading one may never end.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is empty.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingData(f"{path} must be {kind}; there is no file of that name.")
    if path.stat().st_size == 0:
        raise FileError(f"{path} must be {kind}; it is empty.")
    return path


class ModelFile:
    """A file that a model is loaded from, with the files it refers to.

    Args:
        path: Where it is; stored as an absolute path, so that another process can open it.
        kind: What it should be, such as ``"an ONNX file"``, for messages.
        others: The other files, from the bytes of this one; checked before any is opened.
        expected: The digest it had when it was opened before.

    Attributes:
        data: Its bytes.
        digest: SHA-256 of all files.

    Raises:
        FileError: If the digest is not the expected one.
    """

    def __init__(
        self,
        path: str | Path,
        kind: str,
        others: Callable[[bytes, Path], Sequence[Path]] | None = None,
        expected: str | None = None,
    ) -> None:
        self.path = regular_file(path, kind).absolute()
        self.data = self.path.read_bytes()
        state = hashlib.sha256(self.data)
        for other in others(self.data, self.path) if others else ():
            with other.open("rb") as stream:
                state.update(hashlib.file_digest(stream, "sha256").digest())
        self.digest = state.hexdigest()
        if expected not in (None, self.digest):
            raise FileError(
                f"{self.path} must stay as it was when the model was loaded from it; it has "
                "changed. Load the model again."
            )
