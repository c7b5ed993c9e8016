"""Ready-made corrupted images in the place of corruptions made on the fly."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import InputError
from shiftcal.models import Model
from shiftcal.studies.archive import Archive
from shiftcal.studies.stages.sources import Sources, same_choice
from shiftcal.studies.variant import CLEAN


def open_made(sources: Sources, specs: dict[str, str]) -> dict[str, ImageSet]:
    """Ready-made versions of the source images, row by row the same ones.

    Args:
        sources: What they are versions of.
        specs: Where they are, by name of the set.

    Raises:
        MissingData: If one is not there.
        InputError: If one has other images, as far as labels tell.
    """
    made = {name: same_choice(sources.plan, as_image_set(spec)) for name, spec in specs.items()}
    _check_rows(sources, made, specs)
    return made


def taking_as_stored(model: Model, images: ImageSet) -> Model:
    """The model for images that were resized and cut when they were made: it resizes no more.

    ImageNet-C is such a set, and the photographs it was made of are not: one model serves both.
    """
    if images.ready_made is None or model.preprocessing.resize is None:
        return model
    taken = copy.copy(model)
    taken.preprocessing = replace(model.preprocessing, resize=None)
    return taken


def check_read(archive: Archive, specs: dict[str, str]) -> None:
    """Refuse ready-made images of which others could be read than of the clean ones.

    Args:
        archive: Scores of all of them.
        specs: Where they are, by name of the set.

    Raises:
        InputError: Naming the set.
    """
    clean = archive.scores(CLEAN)
    for name, spec in specs.items():
        found = archive.scores(name)
        if not np.array_equal(found.labels, clean.labels):  # type: ignore[arg-type]
            raise InputError(
                f"{len(found.logits):,} images of {name} ({spec}) could be read, and "
                f"{len(clean.logits):,} of the clean set: they must be the same ones. Mend the "
                "files, or get them again."
            )


def _check_rows(sources: Sources, made: dict[str, ImageSet], specs: dict[str, str]) -> None:
    """Ready-made images must be the clean ones, row by row: the split is one for all."""
    for name, images in made.items():
        if not _same_labels(images, sources.images):
            raise InputError(
                f"the images of {name} ({specs[name]}) must be those of the clean set, in "
                f"its order, with their labels; they are {len(images):,}, "
                f"{'without labels' if images.labels is None else 'with other labels'}, and it has "
                f"{len(sources.images):,}. Name the clean images they were made of."
            )


def _same_labels(images: ImageSet, clean: ImageSet) -> bool:
    if images.labels is None or clean.labels is None or len(images) != len(clean):
        return False
    if images.classes is None or clean.classes is None:
        return np.array_equal(images.labels, clean.labels)
    place = {name: index for index, name in enumerate(clean.classes)}
    known = np.array([place.get(name, -1) for name in images.classes])
    return np.array_equal(known[images.labels], clean.labels)
