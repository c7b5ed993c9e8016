"""Pairs of images that a model tells apart, mixed: hard examples with labels for free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, plain, to_array
from shiftcal.datasets.image_set import ImageSet
from shiftcal.datasets.open import as_image_set
from shiftcal.errors import InputError
from shiftcal.files import Framing
from shiftcal.types import Images, Labels


class MixedImages(ImageSet):
    """Mixtures ``round(ratio a + (1 - ratio) b)`` of two images of another set, in uint8.

    Images are mixed when they are read, after they were brought to the size of the model. The name
    of a mixture is made of both names: ``"cat.png+dog.png"``.

    Args:
        whole: The set they are from.
        first: ``(m,)``, which images are ``a``.
        second: ``(m,)``, which are ``b``.
        ratio: Share of ``a``, between 0 and 1.
        labels: ``(m,)``, columns of a model.
        name: As for every set.
    """

    def __init__(
        self,
        whole: ImageSet,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        *,
        ratio: float,
        labels: Labels,
        name: str,
    ) -> None:
        self.whole = whole
        self.first = first
        self.second = second
        self.ratio = ratio
        super().__init__(len(first), name=name, labels=labels)
        self.ready_made = whole.ready_made

    def _image(self, index: int) -> Images:
        return self._mix(self.whole[self.first[index]], self.whole[self.second[index]])

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        a, b = (self.whole._images(part[indices]) for part in (self.first, self.second))
        return None if a is None or b is None else self._mix(a, b)

    def _framed(self, index: int, framing: Framing) -> Images:
        return self._mix(
            self.whole._framed(int(self.first[index]), framing),
            self.whole._framed(int(self.second[index]), framing),
        )

    def _stored(self, index: int) -> bytes | memoryview:
        a, b = (self.whole._stored(int(part[index])) for part in (self.first, self.second))
        return b"".join([repr((self.ratio, len(a))).encode(), a, b])

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """Names of these mixtures: those of both images with a ``+`` between."""
        wanted = np.asarray(indices, np.intp)
        both = (self.whole.ids(part[wanted]) for part in (self.first, self.second))
        return [f"{a}+{b}" for a, b in zip(*both, strict=True)]

    def _mix(self, a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if a.shape != b.shape:
            raise InputError(
                f"images must have one size to be mixed; got {a.shape[0]} x {a.shape[1]} and "
                f"{b.shape[0]} x {b.shape[1]}. Set resize and crop in the preprocessing of the "
                "model."
            )
        mixed = np.multiply(a, np.float32(self.ratio), dtype=np.float32)
        mixed += np.multiply(b, np.float32(1 - self.ratio), dtype=np.float32)
        return np.rint(mixed, out=mixed).astype(np.uint8)


def mix_images(
    images: object, predictions: object, *, ratio: float = 0.65, seed: int = 0
) -> MixedImages:
    """Mixtures of the images of a set, two by two, labelled by what the model predicts for them.

    Image ``a`` gets the partner ``b = π(a)`` of one random permutation of the whole set, and
    ``x = ratio a + (1 - ratio) b``, rounded to uint8. Pairs predicted to be of the same class are
    left out. The label is the prediction for ``a``, which has the larger share. (PseudoCal, Hu et
    al., 2024, whose code permutes inside batches; here partners come from the whole set, so that
    neither batch size nor the order of the images decides who can meet.)

    The attributes ``first`` and ``second`` say which images are in each mixture.

    Args:
        images: A set of images, or what :func:`as_image_set` makes one of. Its labels are not used.
        predictions: Of all of them, in order: class indices ``(n,)``, or logits or probabilities
            ``(n, k)``, whose largest column counts.
        ratio: Share of ``a``, above 0.5 and below 1.
        seed: Of the permutation.

    Raises:
        InputError: If predictions and images do not fit, or no pair is left.
    """
    whole = as_image_set(images)
    if not isinstance(ratio, (int, float, np.number)) or not 0.5 < float(ratio) < 1:
        raise InputError(
            "ratio must be above 0.5, so that the first image decides the label, and below 1; got "
            f"{ratio!r}."
        )
    check_count(seed, name="seed", least=0)
    array = plain(to_array(predictions, name="predictions"), "predictions")
    rows = array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind in "iuf"
    if len(array) != len(whole) or not (rows or (array.ndim == 1 and array.dtype.kind in "iu")):
        raise InputError(
            f"predictions must be class indices ({len(whole)},) or logits ({len(whole)}, k), one "
            f"per image of {whole.name}; got shape {array.shape} of dtype {array.dtype}."
        )
    predicted = array.argmax(axis=1) if rows else array.astype(np.intp)
    if predicted.min() < 0 or (rows and not np.isfinite(array).all()):
        raise InputError("predictions must be finite, and class indices must not be negative.")
    partner = np.random.default_rng(seed).permutation(len(whole))
    first = np.flatnonzero(predicted != predicted[partner])
    if not len(first):
        raise InputError(
            f"images must be predicted to be of different classes to be mixed; of {whole.name} "
            f"({len(whole):,} images, predicted classes: {len(np.unique(predicted)):,}) no pair "
            "is. Give more images, or use a method that needs no mixed ones, such as SAC."
        )
    return MixedImages(
        whole,
        first,
        partner[first],
        ratio=float(ratio),
        labels=predicted[first],
        name=f"mixtures of {whole.name}",
    )
