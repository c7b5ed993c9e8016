"""The paper's ways to cut a set in two, each decided by the labels and a seed alone.

Every image is given a number, and those with the smallest go into the first part. The number of
image ``i`` is word ``i`` of the generator Philox4x64-10 with the key ``(seed, purpose)``, whose
stream is fixed by its definition (Salmon and others, 2011): the same parts on every machine and
with every version of numpy. The purpose, a constant of each function, keeps its choice independent
of the others' under the same seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, check_fraction, plain, to_array
from shiftcal.errors import InputError

_CALIBRATION, _SOURCE, _TARGET = 1, 2, 3


def calibration_split(
    labels: object, *, n: int = 5000, seed: int = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices for calibration and for the test, both sorted.

    Every class has its share of the ``n``, rounded by largest remainders, where the lower class
    comes first among equals. All corrupted versions of a set have its labels, so one choice of
    images serves them all: no image is calibrated on in one version and tested on in another.

    Args:
        labels: ``(m,)``, class indices or names.
        n: Images for calibration, exactly.
        seed: Decides which.

    Raises:
        InputError: If there are not more than ``n`` images.
    """
    return _cut(_classes(labels), check_count(n, name="n"), (seed, _CALIBRATION))


def source_split(
    n_or_labels: object, *, train: float = 0.8, seed: int = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices to train on and to validate with, both sorted.

    Args:
        n_or_labels: How many images there are; or their labels ``(n,)``, by which every class has
            its share in both parts.
        train: Fraction to train on; the number is rounded to the nearest, a half up.
        seed: Decides which.

    Raises:
        InputError: If a part would be empty.
    """
    if isinstance(n_or_labels, (int, np.integer)):
        classes = np.zeros(check_count(n_or_labels, name="n", least=2), np.intp)
    else:
        classes = _classes(n_or_labels)
    return _cut(classes, check_fraction(train, name="train"), (seed, _SOURCE))


def target_split(
    n: int, *, first: float = 0.5, seed: int = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of the images to adapt to and of those to test on, both sorted.

    No labels are asked for, since a target has none.

    Args:
        n: How many images there are.
        first: Fraction to adapt to; the number is rounded to the nearest, a half up.
        seed: Decides which.

    Raises:
        InputError: If a part would be empty.
    """
    classes = np.zeros(check_count(n, name="n", least=2), np.intp)
    return _cut(classes, check_fraction(first, name="first"), (seed, _TARGET))


def _cut(
    classes: NDArray[np.intp], first: float, key: tuple[int, int]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first part, of a number or fraction of the images, and the rest."""
    n = first if isinstance(first, int) else int(np.floor(first * len(classes) + 0.5))
    if not 0 < n < len(classes):
        raise InputError(
            f"a split of {len(classes):,} images must leave some for both parts; "
            f"{n:,} were asked for in the first."
        )
    seed = check_count(key[0], name="seed", least=0, most=2**64 - 1)
    words = np.random.Philox(key=np.array([seed, key[1]], np.uint64)).random_raw(len(classes))
    chosen = np.zeros(len(classes), bool)
    # By class, then by number; equal numbers keep the order of the images.
    order = np.lexsort((words, classes))
    counts = np.bincount(classes)
    starts = np.cumsum(counts) - counts
    for start, share in zip(starts, _shares(counts, n), strict=True):
        chosen[order[start : start + share]] = True
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def _shares(counts: NDArray[np.intp], n: int) -> list[int]:
    """Of every class ``n * count / total``, rounded by largest remainders to the sum ``n``."""
    exact = [divmod(n * int(count), int(counts.sum())) for count in counts]
    shares = [whole for whole, _ in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (-exact[i][1], i))
    for i in by_remainder[: n - sum(shares)]:
        shares[i] += 1
    return shares


def _classes(labels: object) -> NDArray[np.intp]:
    given: NDArray[Any] = plain(to_array(labels, name="labels"), "labels")
    if given.ndim != 1 or given.dtype.kind not in "iuUS" or not given.size:
        raise InputError(
            "labels must be class indices or names, one an image, shape (n,); got shape "
            f"{given.shape} of dtype {given.dtype}."
        )
    return np.unique(given, return_inverse=True)[1].astype(np.intp)
