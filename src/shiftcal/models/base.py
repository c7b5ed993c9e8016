"""What every model is: checked images in, checked logits out, batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

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
from shiftcal._types import InputKind, Logits
from shiftcal.errors import InputError, MissingExtra
from shiftcal.models.preprocessing import Preprocessing


class Model(ABC):
    """Anything that turns images into logits. An adapter fills in :meth:`_forward`.

    Args:
        preprocessing: What happens to images first; by default pixels between 0 and 1, channels
            first.
        classes: Names of the classes, in the order of the logits. Their number is checked.
        output: What the model gives, ``"logits"`` or ``"probabilities"``, which become their
            logarithm.
        batch_size: Images given to the model at once.
    """

    def __init__(
        self,
        *,
        preprocessing: Preprocessing | None = None,
        classes: Sequence[str] | None = None,
        output: InputKind = "logits",
        batch_size: int = 256,
    ) -> None:
        if not isinstance(preprocessing, Preprocessing | None):
            raise InputError(
                f"preprocessing must be a Preprocessing; got {type(preprocessing).__name__}. "
                "Of a dict, make one with Preprocessing.from_dict."
            )
        self.preprocessing: Preprocessing = preprocessing or Preprocessing()
        self.classes: tuple[str, ...] | None = _names(classes)
        self.output: InputKind = check_choice(output, ("logits", "probabilities"), name="output")
        self.batch_size = check_count(batch_size, name="batch_size")

    @abstractmethod
    def _forward(self, batch: NDArray[Any]) -> Any:
        """Logits ``(n, k)`` of a preprocessed batch; trusts its input, its output is checked."""

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
        given, layout = check_images(images)
        if len(given) == 0:
            raise InputError("images must hold at least one image; this batch is empty.")
        k = len(self.classes) if self.classes else None
        parts: list[Logits] = []
        for start in range(0, len(given), self.batch_size):
            colour = layout.to_colour(np.asarray(given[start : start + self.batch_size]))
            where = f"images {start} to {start + len(colour) - 1}"
            batch = self.preprocessing.apply(colour)
            z = _as_rows(self._run(batch, where), n=len(colour), start=start, where=where)
            _check_width(z, k, where=where, names=parts == [])
            k = z.shape[1]
            parts.append(self._as_logits(z, where))
        whole = np.concatenate(parts)
        if self.output == "logits" and min(self.batch_size, len(whole)) < GUARD_FROM:
            return self._guarded(whole, f"images 0 to {len(whole) - 1}")
        return whole

    def _run(self, batch: NDArray[Any], where: str) -> Any:
        try:
            return self._forward(batch)
        except MissingExtra:
            raise
        except Exception as error:  # a model raises what it likes
            raise InputError(
                f"the model failed on {where}, given {batch.dtype} of shape {batch.shape}: "
                f"{type(error).__name__}: {error}"
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
            hint = ' For a model, say output="probabilities".' if self.output == "logits" else ""
            hint = hint if "probabilities" in str(error) else ""
            raise InputError(f"the model's output for {where}: {error}{hint}") from error


def _names(classes: Sequence[str] | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    k = len(to_array(classes, name="classes"))
    if k < 2:
        raise InputError(f"classes must be two or more; got {k}.")
    return check_classes(classes, k=k)


def _as_rows(output: Any, *, n: int, start: int, where: str) -> NDArray[Any]:
    z = to_array(output, name=f"the model's output for {where}")
    if z.ndim != 2 or len(z) != n:
        raise InputError(
            f"the model's output for {where} must have shape ({n}, k), a row an image and a column "
            f"a class; got shape {z.shape}. Pass a function that returns that."
        )
    if z.dtype.kind not in "fiu":
        raise InputError(f"the model's output for {where} must be numbers; got dtype {z.dtype}.")
    bad = ~np.isfinite(z).all(axis=1)
    if bad.any():
        raise InputError(
            f"the model's output for {where} must be finite; {int(bad.sum())} of {n} rows hold NaN "
            f"or infinity, the first that of image {start + int(bad.argmax())}. Look at the "
            "weights, and at mean and std of the preprocessing."
        )
    return z


def _check_width(z: NDArray[Any], k: int | None, *, where: str, names: bool) -> None:
    if z.shape[1] < 2:
        raise InputError(
            f"the model's output for {where} must have a column per class and at least two; got "
            f"shape {z.shape}. For a binary score s, return np.column_stack([np.zeros_like(s), s])."
        )
    if k is not None and z.shape[1] != k:
        wanted = f"the {k} classes named" if names else f"the {k} columns of the images before"
        raise InputError(
            f"the model's output for {where} must have a column for each of {wanted}; got "
            f"{z.shape[1]} columns."
        )
