"""Scores of mixed images, for PseudoCal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets import ImageSet, as_image_set, mix_images
from shiftcal.errors import InputError
from shiftcal.models import as_model
from shiftcal.scores import Scores
from shiftcal.scoring._score import score


def score_mixed(
    model: object,
    images: object,
    scores: Scores | None = None,
    *,
    ratio: float = 0.65,
    seed: int = 0,
    **options: Any,
) -> Scores:
    """Scores of mixtures of unlabelled images, labelled by the model's own predictions.

    What :class:`~shiftcal.methods.pseudocal.PseudoCal` adapts to:
    ``method.adapt(scores, mixed=score_mixed(model, images, scores))``. The model runs over the
    images as they are, unless their scores are given, and then over those mixtures of two of them
    that :func:`shiftcal.datasets.mix_images` makes. Labels of the images are not looked at.

    Args:
        model: A model, or what :func:`shiftcal.models.as_model` makes one of.
        images: The target: a set of images, or what :func:`shiftcal.datasets.as_image_set` makes
            one of.
        scores: What the model gave for them, to save that pass. If some could not be read and are
            not in it, the others are known by their ids.
        ratio: How much of the first image there is in a mixture, above 0.5 and below 1.
        seed: Of the permutation that says who is mixed with whom.
        **options: ``dtype``, ``engine``, ``shard_size``, ``cache`` and ``progress``, as for
            :func:`score`.

    Returns:
        The scores of the mixtures, a row for every pair that is predicted to be of two classes;
        ``labels`` are the predictions for the first image of each.

    Raises:
        InputError: As for :func:`score`; and if scores and images do not fit, or all images are
            predicted to be of one class.
    """
    made = as_model(model)
    target = as_image_set(images).relabelled(None)
    known = score(made, target, **options) if scores is None else _checked(scores)
    if known.n != len(target):
        target = target.subset(_rows(known, target), name=target.name)
    mixtures = mix_images(target, known.values, ratio=ratio, seed=seed)
    return score(made, mixtures, **options)


def _checked(scores: object) -> Scores:
    if isinstance(scores, Scores):
        return scores
    raise InputError(
        f"scores must be Scores of the images, as shiftcal.score gives them; got "
        f"{type(scores).__name__}. Leave them out to have the images scored."
    )


def _rows(scores: Scores, images: ImageSet) -> NDArray[np.intp]:
    """Which images scores are of that are not of all of them."""
    if scores.ids is not None:
        where = {name: row for row, name in enumerate(images.ids(np.arange(len(images))))}
        rows = [where.get(str(name), -1) for name in scores.ids]
        if len(where) == len(images) and min(rows) >= 0:
            return np.array(rows, np.intp)
    raise InputError(
        f"scores must be of the images of {images.name}, in their order: {len(images):,} images, "
        f"{scores.n:,} rows{'' if scores.ids is None else ' of other ids'}. Leave images that "
        "cannot be read out of the set (images.subset), and score it again."
    )
