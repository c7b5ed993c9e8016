"""The mean of an image and its enlarged copies, prepared for one image size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shiftcal.corruptions._kernels.zoom_axis import crop_length, zoom_axis


class PixelTaps(NamedTuple):
    """Small images: every pixel as one weighted sum over source pixels, all copies together.

    Attributes:
        first: ``(pixels + 1,)``, where each pixel's taps begin; every pixel has an even number.
        source: ``(taps,)`` source pixels.
        weight: ``(taps,)`` float32.
    """

    first: NDArray[np.int64]
    source: NDArray[np.int64]
    weight: NDArray[np.float32]


class CopyTaps(NamedTuple):
    """Large images: copy by copy, rows and columns one after the other.

    Columns are cut into runs, in which the source column grows by one from pixel to pixel.

    Attributes:
        row: ``(copies, height)`` source rows.
        row_weight: ``(copies, height, 2)`` float32, of that row and the next, with 1 / (n + 1).
        run: ``(runs + 1,)`` first value of each run in a row of ``3 width`` values.
        run_source: ``(runs,)`` the value it begins to read at.
        copy_runs: ``(copies + 1,)`` first run of each copy.
        column_weight: ``(copies, 2, 3 width)`` float32, of the source value and that of the next
            pixel.
        own_weight: Of the image itself, which enters twice.
    """

    row: NDArray[np.int64]
    row_weight: NDArray[np.float32]
    run: NDArray[np.int64]
    run_source: NDArray[np.int64]
    copy_runs: NDArray[np.int64]
    column_weight: NDArray[np.float32]
    own_weight: np.float32


def _axis(length: int, factor: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    index, weight = zoom_axis(length, factor)
    return index + (length - crop_length(length, factor)) // 2, weight


def pixel_taps(factors: NDArray[np.float64], height: int, width: int) -> PixelTaps:
    """The operator ``(1 + sum over z of R_z kron C_z) / (n + 1)`` by rows."""
    operator = sparse.identity(height * width, format="csr")
    for factor in factors:
        operator = operator + sparse.kron(_matrix(height, factor), _matrix(width, factor), "csr")
    operator = (operator / (len(factors) + 1)).tocsr()
    counts = np.diff(operator.indptr)
    even = counts + counts % 2
    first = np.concatenate([[0], np.cumsum(even)]).astype(np.int64)
    place = np.repeat(first[:-1] - operator.indptr[:-1], counts) + np.arange(operator.nnz)
    source = np.repeat(np.arange(height * width), even)
    weight = np.zeros(first[-1], np.float32)
    source[place], weight[place] = operator.indices, operator.data
    return PixelTaps(first, source, weight)


def _matrix(length: int, factor: float) -> sparse.csr_matrix:
    index, weight = _axis(length, factor)
    rows = np.arange(length)
    entries = np.concatenate([1 - weight, weight])
    places = (np.concatenate([rows, rows]), np.concatenate([index, index + 1]))
    matrix = sparse.csr_matrix((entries, places), (length, length))
    matrix.eliminate_zeros()
    return matrix


def copy_taps(factors: NDArray[np.float64], height: int, width: int) -> CopyTaps:
    """The tables of :class:`CopyTaps`; factor 1 is left out and counted with the image itself."""
    share = 1 / (len(factors) + 1)
    rows, row_weights, columns, runs, sources, copy_runs = [], [], [], [], [], [0]
    for factor in factors[1:]:
        index, weight = _axis(height, factor)
        rows.append(index)
        row_weights.append(np.stack([share * (1 - weight), share * weight], axis=1))
        index, weight = _axis(width, factor)
        columns.append(np.repeat(np.stack([1 - weight, weight]), 3, axis=1))
        begins = np.concatenate([[0], 1 + np.flatnonzero(np.diff(index) != 1)])
        runs.append(3 * begins)
        sources.append(3 * index[begins])
        copy_runs.append(copy_runs[-1] + len(begins))
    return CopyTaps(
        np.array(rows),
        np.array(row_weights, np.float32),
        np.concatenate([*runs, [0]]),
        np.concatenate(sources),
        np.array(copy_runs),
        np.array(columns, np.float32),
        np.float32(2 * share),
    )
