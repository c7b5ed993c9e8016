"""Pairs of images that a model tells apart, mixed: hard examples with labels nobody had to give."""

from __future__ import annotations

import numpy as np

from shiftcal._checks import check_count, plain, to_array
from shiftcal._types import Labels
from shiftcal.datasets.containers.mixed import MixedImages
from shiftcal.datasets.open import as_image_set
from shiftcal.errors import InputError


def mix_images(
    images: object, predictions: object, *, ratio: float = 0.65, seed: int = 0
) -> MixedImages:
    """Mixtures of the images of a set, two by two, labelled by what the model says of them.

    Image ``a`` gets the partner ``b = π(a)`` of one random permutation of the whole set, and
    ``x = ratio a + (1 - ratio) b``, rounded to uint8. Pairs predicted to be of the same class are
    left out. The label is the prediction for ``a``, of which there is more. (PseudoCal, Hu et al.,
    2024, whose code permutes inside batches; here partners come from the whole set, so that
    neither batch size nor the order of the images decides who can meet.)

    The mixtures are a set of images that mixes what is read, so that a large set takes no more
    memory than it does by itself. Its attributes ``first`` and ``second`` say which images are in
    each.

    Args:
        images: A set of images, or what :func:`as_image_set` makes one of. Its labels are not used.
        predictions: Of all of them, in order: class indices ``(n,)``, or logits or probabilities
            ``(n, k)``, whose largest column counts.
        ratio: How much of ``a`` there is, above 0.5 and below 1.
        seed: Of the permutation.

    Raises:
        InputError: If predictions and images do not fit, or no pair is left.
    """
    whole = as_image_set(images)
    share = _ratio(ratio)
    number = check_count(seed, name="seed", least=0)
    predicted = _classes(predictions, whole.name, len(whole))
    partner = np.random.default_rng(number).permutation(len(whole))
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
        ratio=share,
        labels=predicted[first],
        name=f"mixtures of {whole.name}",
    )


def _ratio(ratio: object) -> float:
    if isinstance(ratio, (int, float, np.number)) and 0.5 < float(ratio) < 1:
        return float(ratio)
    raise InputError(
        f"ratio must lie above 0.5, so that the first image decides the label, and below 1; got "
        f"{ratio!r}."
    )


def _classes(predictions: object, name: str, n: int) -> Labels:
    given = plain(to_array(predictions, name="predictions"), "predictions")
    indices = given.ndim == 1 and given.dtype.kind in "iu"
    rows = given.ndim == 2 and given.shape[1] > 1 and given.dtype.kind in "iuf"
    if len(given) != n or not (indices or rows):
        raise InputError(
            f"predictions must be class indices ({n},) or logits ({n}, k), in the order of the "
            f"{n:,} images of {name}; got shape {given.shape} of dtype {given.dtype}."
        )
    if rows and not np.isfinite(given).all():
        raise InputError("predictions must be finite; there is a NaN or infinity among them.")
    classes: Labels = given.argmax(axis=1) if rows else given.astype(np.intp)
    if classes.min() < 0:
        raise InputError(f"predictions must be class indices from 0 on; got {classes.min()}.")
    return classes
