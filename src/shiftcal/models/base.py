"""What every model is: checked images in, checked logits out, batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import (
    GUARD_FROM,
    check_choice,
    check_classes,
    check_count,
    check_images,
    check_scores,
    to_array,
)
from shiftcal._types import Floats, Images, InputKind, Logits
from shiftcal.errors import InputError, MissingExtra
from shiftcal.models._fingerprint import digest
from shiftcal.models._in_short import in_short
from shiftcal.models._output_checks import check_rows, check_same_features, check_width
from shiftcal.models.preprocessing import Preprocessing

# Bytes a batch may take unless something else is said.
MEMORY_BUDGET = 512 << 20
_LESS_MEMORY = (
    " Say a smaller batch_size, on the command line --batch-size, or a smaller memory_budget."
)
_PROBABILITIES = (
    ' For a model, say output="probabilities", on the command line ?output=probabilities.'
)


class Outputs(NamedTuple):
    """What a model gives for images.

    Attributes:
        logits: ``(n, k)``, finite.
        features: ``(n, d)``, what a layer gave, for models that were asked for it.
    """

    logits: Logits
    features: Floats | None = None


class Model(ABC):
    """Anything that turns images into logits. An adapter fills in :meth:`_forward`.

    Args:
        preprocessing: What happens to images first; by default pixels between 0 and 1, channels
            first.
        classes: Names of the classes, in the order of the logits. Their number is checked.
        output: What the model gives, ``"logits"`` or ``"probabilities"``, which become their
            logarithm.
        batch_size: Images given to the model at once; ``None`` finds a number that stays within
            the memory budget when the first images of a size come.
        memory_budget: Bytes that a batch may take on its way through the model.
        key: A name that says which model this is, such as ``"my-model-v3"``; change it when the
            model changes. The fingerprint is then made of it, and of the options that decide the
            outputs, without a look at the model.

    Attributes:
        spec: The text the model was made from, if it was made from one.
    """

    spec: str | None = None

    def __init__(
        self,
        *,
        preprocessing: Preprocessing | None = None,
        classes: Sequence[str] | None = None,
        output: InputKind = "logits",
        batch_size: int | None = 256,
        memory_budget: int = MEMORY_BUDGET,
        key: str | None = None,
    ) -> None:
        if not isinstance(preprocessing, Preprocessing | None):
            raise InputError(
                f"preprocessing must be a Preprocessing; got {type(preprocessing).__name__}. "
                "Of a dict, make one with Preprocessing.from_dict."
            )
        self.preprocessing: Preprocessing = preprocessing or Preprocessing()
        self.classes: tuple[str, ...] | None = _names(classes)
        self.output: InputKind = check_choice(output, ("logits", "probabilities"), name="output")
        self.batch_size = None if batch_size is None else check_count(batch_size, name="batch_size")
        self.memory_budget = check_count(memory_budget, name="memory_budget")
        if key is not None and not (isinstance(key, str) and key):
            raise InputError(f"key must be a name; got {key!r}. Leave it out if there is none.")
        self.key = key
        # Images' (height, width) -> how many are given to the model at once.
        self._batch_sizes: dict[tuple[int, ...], int] = {}

    def __repr__(self) -> str:
        return in_short(type(self).__name__, self.spec, self.classes, self.preprocessing)

    @abstractmethod
    def _forward(self, batch: NDArray[Any]) -> Any:
        """Logits ``(n, k)`` of a preprocessed batch; trusts its input, its output is checked.

        ``(logits, features)`` if the model was asked for features.
        """

    @property
    def fingerprint(self) -> str | None:
        """A digest of whatever decides the outputs; ``None`` if that cannot be known.

        Preprocessing is not part of it, nor is what changes no more than the rounding, which
        :attr:`engine` tells. Work with a model without one cannot be gone on with.
        """
        parts = self._identity() if self.key is None else ("key", self.key)
        if parts is None:
            return None
        chosen = [f"{name}={value!r}" for name, value in sorted(self._choices().items())]
        return digest([self.output, *parts, *chosen])

    def _identity(self) -> Iterable[str | bytes | memoryview] | None:
        """What :attr:`fingerprint` is made of, beside :attr:`output` and :meth:`_choices`."""
        return None

    def _choices(self) -> Mapping[str, str | bool | None]:
        """Options of the adapter that decide the outputs, with a key or without."""
        return {}

    @property
    def measured_memory(self) -> str | None:
        """Whose memory a batch takes, for models that may be run to find their batch size.

        ``"process"``, or a GPU's name in torch.
        """
        return None

    def rehearse(self, batch: NDArray[Any]) -> None:
        """Run a preprocessed batch for the memory it takes; what comes out does not matter."""
        self._forward(batch)

    @property
    def engine(self) -> str:
        """What computes the outputs, with its version and what else decides their last digits.

        Such as ``"onnxruntime 1.20.1 CPUExecutionProvider"``.
        """
        return type(self).__name__

    def use_threads(self, threads: int) -> None:
        """Use at most so many threads from now on, where the adapter decides that."""
        del threads

    @contextmanager
    def sharing(self, processors: int) -> Iterator[None]:
        """While other threads prepare images, leave them room, where the adapter decides that.

        What the model gives is the same, and a number of threads that was said is kept.

        Args:
            processors: How many there are for the model and the others together.
        """
        del processors
        yield

    @final
    def logits(self, images: object) -> Logits:
        """Logits of images, one row an image.

        Args:
            images: uint8, ``(n, height, width, 3)``, or without the last axis if they are grey;
                one image is a batch of one. Not changed.

        Returns:
            Finite logits ``(n, k)``.

        Raises:
            InputError: If the images cannot be used, or the model raises or gives something else
                than finite logits; the message names the images of the batch.
        """
        return self.outputs(images).logits

    @final
    def outputs(self, images: object) -> Outputs:
        """Logits of images, and features if the model was asked for them; see :meth:`logits`."""
        given, layout = check_images(images)
        if len(given) == 0:
            raise InputError("images must hold at least one image; this batch is empty.")
        size = self.size_of_batches(layout.to_colour(np.asarray(given[:1])))
        k = len(self.classes) if self.classes else None
        parts: list[Outputs] = []
        for start in range(0, len(given), size):
            colour = layout.to_colour(np.asarray(given[start : start + size]))
            batch = self.preprocessing.apply(colour)
            made = self.run(batch, first=start, k=k, named=not parts)
            k = made.logits.shape[1]
            parts.append(made)
        return self.joined(parts, where=f"images 0 to {len(given) - 1}")

    @final
    def size_of_batches(self, images: Images) -> int:
        """How many images like these, ``(n, height, width, 3)``, are given to the model at once."""
        if self.batch_size is None:
            from shiftcal.models.batch_size import find_batch_size

            size = images.shape[1:3]
            if size not in self._batch_sizes:
                self._batch_sizes[size] = find_batch_size(self, images)
            return self._batch_sizes[size]
        return self.batch_size

    @final
    def run(
        self, batch: NDArray[Any], *, first: int = 0, k: int | None = None, named: bool = False
    ) -> Outputs:
        """Checked outputs of one preprocessed batch.

        Args:
            batch: What :meth:`Preprocessing.apply` gave for some images.
            first: Index of the first of them, for messages.
            k: Columns the logits must have, if that is known.
            named: Whether it is known from :attr:`classes` and not from images before.

        Raises:
            InputError: As for :meth:`logits`.
        """
        where = f"images {first} to {first + len(batch) - 1}"
        logits, features = _pair(self._attempt(batch, where), where)
        z = check_rows(logits, n=len(batch), start=first, where=where)
        check_width(z, k, where=where, names=named)
        if features is not None:
            f = check_rows(features, n=len(batch), start=first, where=where, noun="features")
            features = f.astype(np.promote_types(f.dtype, np.float32), copy=False)
        return Outputs(self._as_logits(z, where), features)

    @final
    def joined(self, parts: Sequence[Outputs], *, where: str, first: int = 0) -> Outputs:
        """Outputs of consecutive batches as one; what is said of few rows is judged here.

        Args:
            parts: What :meth:`run` gave, in order.
            where: Which images these are, for messages.
            first: Index of the first of them, for messages.
        """
        check_same_features(parts, first=first)
        logits = np.concatenate([part.logits for part in parts])
        if self.output == "logits" and min(len(part.logits) for part in parts) < GUARD_FROM:
            logits = self._guarded(logits, where)
        features = [part.features for part in parts if part.features is not None]
        return Outputs(logits, np.concatenate(features) if features else None)

    def _attempt(self, batch: NDArray[Any], where: str) -> Any:
        try:
            return self._forward(batch)
        except MissingExtra:
            raise
        except (Exception, SystemExit) as error:  # a model raises what it likes
            raise InputError(
                f"the model failed on {where}, given {batch.dtype} of shape {batch.shape}: "
                f"{type(error).__name__}: {error}{_advice(error)}"
            ) from error

    def _as_logits(self, z: NDArray[Any], where: str) -> Logits:
        # So few rows can look like probabilities by chance: they are judged with all the others.
        if self.output == "logits" and len(z) < GUARD_FROM:
            return z.astype(np.promote_types(z.dtype, np.float32))
        return self._guarded(z, where)

    def _guarded(self, z: NDArray[Any], where: str) -> Logits:
        try:
            return check_scores(z, input=self.output, guard_from=GUARD_FROM)
        except InputError as error:
            unsaid = self.output == "logits" and "probabilities" in str(error)
            hint = _PROBABILITIES if unsaid else ""
            raise InputError(f"the model's output for {where}: {error}{hint}") from error


def _names(classes: Sequence[str] | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    k = len(to_array(classes, name="classes"))
    if k < 2:
        raise InputError(f"classes must be two or more; got {k}.")
    return check_classes(classes, k=k)


def _pair(output: Any, where: str) -> tuple[Any, Any]:
    if not isinstance(output, tuple):
        return output, None
    if len(output) != 2:
        raise InputError(
            f"the model's output for {where} must be logits, or a pair of logits and features; got "
            f"a tuple of {len(output)}."
        )
    return output


def _advice(error: BaseException) -> str:
    short = isinstance(error, MemoryError) or "out of memory" in str(error)
    return _LESS_MEMORY if short else ""
