"""What blurs prepare for one image size: weights, disks, lines, zooms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse

# --------------------------------------------------------------------------------------
# The weights of a sampled and truncated Gaussian.
# --------------------------------------------------------------------------------------


def gaussian_weights(sigma: float, truncate: float) -> NDArray[np.float32]:
    """Weights ``exp(-k**2 / (2 sigma**2))`` for ``|k| <= r``, with sum 1; ``(2 r + 1,)``.

    The radius is ``r = int(truncate * sigma + 1/2)``, as in ``scipy.ndimage``; they are normalised
    in double precision. With ``sigma`` 0 there is one weight, 1.
    """
    if sigma <= 0:
        return np.ones(1, np.float32)
    radius = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    return (weights / weights.sum()).astype(np.float32)


# --------------------------------------------------------------------------------------
# Symmetric smoothing kernels in 16-bit fixed point, and where an image goes on beyond its edges.
#
# Grey levels are held as multiples of 1/128, sums of the kernel as multiples of 1/256: the sum of
# two values, and the result, then just fit 16 bits.
# --------------------------------------------------------------------------------------

ONE = 1 << 16
RUN = 2048  # sums that are kept in the first-level cache while terms are added to them


class Smoothing(NamedTuple):
    """What a separable smoothing of images of one size needs.

    Attributes:
        weights: ``(r + 1,)`` uint16, from the centre outwards, with sum ``2**16``; that of the
            centre is in units of ``2**-16``, those of the pairs in units of ``2**-17``.
        biases: ``(2,)`` uint16: what is added to the sums of the columns and of the rows.
        rows: ``(h + 2 r,)`` int64, the image's row that stands at each row of the padded one.
        places: ``(3 (w + 2 r),)`` int64, the place in a padded row that its values come from.
    """

    weights: NDArray[np.uint16]
    biases: NDArray[np.uint16]
    rows: NDArray[np.int64]
    places: NDArray[np.int64]


def smoothing(
    half: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> Smoothing:
    """The plan for a kernel given from its centre outwards, ``(r + 1,)``, of sum 1.

    Every product is cut to a whole number, half a unit in the mean, which the biases give back.
    They are set so that an image of one colour keeps it.
    """
    weights = np.rint(half * np.where(np.arange(len(half)) == 0, ONE, 2 * ONE)).astype(np.int64)
    weights[0] = min(weights[0] + ONE - weights.sum(), ONE - 1)
    lost = (len(weights) + 1) // 2
    flat = 128 * np.arange(256)
    middle = (_flat_sum(flat, weights) + lost) >> 1
    sums = _flat_sum(middle, weights)
    needed = int((2 * flat - sums).max())
    biases = np.array([lost, max(lost, needed)], np.uint16)
    places = places_in_row(columns, len(half) - 1)
    return Smoothing(weights.astype(np.uint16), biases, rows, places)


def _flat_sum(values: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return ((2 * values[:, None] * weights) >> 16).sum(axis=1)


def nearest(length: int, radius: int) -> NDArray[np.int64]:
    """Indices of a padded side: beyond an edge, its last pixel goes on."""
    return np.clip(np.arange(-radius, length + radius), 0, length - 1)


def mirrored(length: int, radius: int) -> NDArray[np.int64]:
    """Indices of a padded side: beyond an edge, the image is reflected about its last pixel."""
    period = 2 * length - 2
    folded = np.abs(np.arange(-radius, length + radius)) % period
    return np.minimum(folded, period - folded)


def places_in_row(columns: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Where in a padded row the values of its pixels are found, for the margins to be filled.

    Args:
        columns: ``(w + 2 radius,)``, the image's column for each column of the padded one.
        radius: The width of a margin in pixels.
    """
    return (3 * (columns + radius)[:, None] + np.arange(3)).ravel()


class Neighbours(NamedTuple):
    """What a symmetric kernel of three by three pixels needs.

    Attributes:
        weights: ``(2,)`` int32, of a nearest and of a diagonal neighbour, in units of ``2**-22``.
        rows: ``(h + 2,)`` int64, the image's row that stands at each row of the padded one.
        columns: ``(w + 2,)`` int64, likewise.
    """

    weights: NDArray[np.int32]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


def neighbours(
    edge: float, corner: float, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> Neighbours:
    """The plan for a kernel of sum 1 by its weights off the centre."""
    return Neighbours(np.rint(np.array([edge, corner]) * 2.0**22).astype(np.int32), rows, columns)


# --------------------------------------------------------------------------------------
# The published defocus kernel, and a disk as runs of pixels at its rim.
# --------------------------------------------------------------------------------------


def softening(radius: float, sigma: float) -> NDArray[np.float64]:
    """The Gaussian that smooths the disk: 3 weights, 5 where the radius is above 8."""
    reach = 1 if radius <= 8 else 2
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return weights / weights.sum()


def half_heights(radius: float) -> NDArray[np.int64]:
    """How far the disk reaches up and down in each of its columns, ``(2 int(radius) + 1,)``."""
    reach = int(radius)
    return np.floor(np.sqrt(radius**2 - np.arange(-reach, reach + 1.0) ** 2)).astype(np.int64)


def defocus_kernel(radius: float, sigma: float) -> NDArray[np.float64]:
    """The disk of ones within the radius, divided by their number and smoothed.

    It is drawn on a grid of 17 pixels, or of ``2 radius + 1`` above a radius of 8, and reflected
    about the grid's outermost pixels for the smoothing. Where the disk touches them, at 8 and at
    10, the sum is above 1.
    """
    reach = 8 if radius <= 8 else int(radius)
    square = np.arange(-reach, reach + 1) ** 2
    disk = (square[:, None] + square <= radius**2).astype(np.float64)
    weights = softening(radius, sigma)
    side = len(weights) // 2
    kernel = np.pad(disk / disk.sum(), side, mode="reflect")
    for axis in (0, 1):
        view = np.lib.stride_tricks.sliding_window_view(kernel, len(weights), axis=axis)
        kernel = view @ weights
    return kernel


class Disks(NamedTuple):
    """What the means over a disk around every pixel of images of one size need.

    Running sums down the columns are kept for the image padded by ``reach + 1`` pixels (by
    ``margin`` more above and below, for the smoothing), a line of 0 first. Places are counted
    from the line above a row's disks.

    Attributes:
        reach: The disk's radius in whole pixels.
        rows: ``(h + 2 (reach + 1 + margin),)`` int64, the image's row for each row of the padded
            one.
        places: ``(3 (w + 2 (reach + 1)),)`` int64, the place in a padded row that its values come
            from.
        single: The number of columns of the disk that are taken one by one.
        ends: ``(single + g,)`` int64, where the running sums are to the lower ends of these
            columns, and then, for whole lines, to those of the other heights.
        starts: ``(single + g,)`` int64, where they are to above the upper ends.
        group: The rows that are worked on at a time.
        left: ``(c,)`` int64, where the other columns are that lie left of the centre, among the
            lines to work in.
        right: ``(c,)`` int64, likewise for those right of the centre.
        scale: ``(2,)`` int64: a mean is ``sum * scale[0] * scale[1] >> 16``, and where
            ``scale[0]`` is 0, as the sum may be too large, ``(sum >> 1) * scale[1] >> 16``.
        spill: ``(2,)`` int64, half the length of the disk's second row, and the weight at which
            it is reflected at the edge of the kernel's grid; 0 where the disk stays inside it.
    """

    reach: int
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    single: int
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    group: int
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    scale: NDArray[np.int64]
    spill: NDArray[np.int64]


def disks(radius: float, sigma: float, *, margin: int, height: int, width: int) -> Disks:
    """The plan for the disk of a defocus kernel, with ``margin`` pixels for its smoothing."""
    reach = int(radius)
    columns = np.arange(-reach, reach + 1)
    tall = half_heights(radius)
    # A line of its own saves reading from four columns of the same height.
    shared = (np.array([(tall == t).sum() for t in tall]) >= 4) & (columns != 0)
    heights, which = np.unique(tall[shared & (columns < 0)], return_inverse=True)
    padded, middle = 3 * (width + 2 * (reach + 1)), 3 * (reach + 1)
    group = max(1, RUN // padded)
    depth = np.concatenate([tall[~shared], heights])
    across = np.concatenate([middle + 3 * columns[~shared], np.zeros(len(heights), np.int64)])
    lines, aside = (2 + which) * group * padded + middle, 3 * columns[shared & (columns < 0)]
    return Disks(
        reach=reach,
        rows=mirrored(height, reach + 1 + margin),
        places=places_in_row(mirrored(width, reach + 1), reach + 1),
        single=int((~shared).sum()),
        ends=(reach + 2 + depth) * padded + across,
        starts=(reach + 1 - depth) * padded + across,
        group=group,
        left=lines + aside,
        right=lines - aside,
        scale=_scale(int((2 * tall + 1).sum())),
        spill=_spill(radius, sigma, tall) if reach >= 8 else np.zeros(2, np.int64),
    )


def _scale(count: int) -> NDArray[np.int64]:
    # The sum is to fill 16 bits; the factor is rounded up, so that the mean of equal values is
    # that value.
    multiple = 1 << int(np.log2((ONE - 1) / (255 * count))) if 255 * count < ONE else 0
    filled = count * multiple if multiple else count / 2
    return np.array([multiple, int(np.ceil(128 * ONE / filled))], np.int64)


def _spill(radius: float, sigma: float, tall: NDArray[np.int64]) -> NDArray[np.int64]:
    # All that the kernel has above 1 is in the four reflected runs, less four pixels.
    half = int(tall[1])
    weight = (defocus_kernel(radius, sigma).sum() - 1) / (8 * half)
    return np.array([half, np.rint(weight * 128 * ONE / 4)], np.int64)


# --------------------------------------------------------------------------------------
# The line along which motion blurs: its weights, and its pixels at every angle.
# --------------------------------------------------------------------------------------

ANGLES = 4096  # equally likely steps of the quarter turn; the longest line ends 0.02 pixels apart
GROUP = 4  # taps are summed four at a time
_TAIL = 1e-5  # of the weight may be cut off: 0.003 grey levels at the most


def line_weights(radius: int, sigma: float) -> NDArray[np.float32]:
    """Half a Gaussian ``exp(-i**2 / (2 sigma**2))``, ``i = 0 ... 2 radius``, of sum 1.

    The end of which less than 1e-5 of the sum is left is cut off, and zeros fill up a group.
    """
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    left = np.cumsum(weights[::-1])[::-1] / weights.sum()
    kept = weights[left >= _TAIL]
    filled = np.zeros(-(-len(kept) // GROUP) * GROUP, np.float32)
    filled[: len(kept)] = kept / kept.sum()
    return filled


def line_steps(taps: int, start: float) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pixel steps ``dx, dy`` ``(ANGLES, taps)`` of lines at angles between ``start`` and 90 more.

    Tap ``i`` at angle ``a`` is the pixel at ``ceil(i cos a - 1/2), ceil(i sin a - 1/2)``. The
    angles are the middles of the steps, in degrees, downwards from the right. No coordinate comes
    near enough to a half for another library's sine to round it otherwise.
    """
    angles = np.deg2rad(start + 90 * (np.arange(ANGLES) + 0.5) / ANGLES)[:, None]
    steps = np.arange(taps)
    dx = np.ceil(steps * np.cos(angles) - 0.5).astype(np.int32)
    dy = np.ceil(steps * np.sin(angles) - 0.5).astype(np.int32)
    return dx, dy


# --------------------------------------------------------------------------------------
# Enlarging the middle of an axis: which source positions its pixels read.
# --------------------------------------------------------------------------------------


def crop_length(length: int, factor: float) -> int:
    """How many pixels in the middle of ``length`` fill it when enlarged by ``factor``."""
    return math.ceil(length / factor)


def zoom_axis(length: int, factor: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where each of ``length`` pixels reads in the cut-out middle: ``(1 - t) v[i] + t v[i + 1]``.

    The middle ``c = ceil(length / factor)`` pixels become ``round(c factor)``, first pixel on first
    and last on last (position ``k (c - 1) / (round(c factor) - 1)``, as scipy's ``zoom`` has it),
    of which the middle ``length`` stay.

    Returns:
        The indices ``i`` and the weights ``t``, each ``(length,)``; ``i`` counts from the start of
        the cut-out, which begins at pixel ``(length - c) // 2``.
    """
    cut = crop_length(length, factor)
    enlarged = round(cut * factor)
    trim = (enlarged - length) // 2
    position = (np.arange(length) + trim) * ((cut - 1) / (enlarged - 1))
    index = np.minimum(np.floor(position).astype(np.int64), cut - 2)
    return index, np.minimum(position - index, 1.0)


# --------------------------------------------------------------------------------------
# The mean of an image and its enlarged copies, prepared for one image size.
# --------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------
# Few cosines for what a wide Gaussian leaves of a field.
# --------------------------------------------------------------------------------------

BLOCK = 8


@dataclass(frozen=True)
class Axis:
    """Smoothing along an axis of ``n`` points mirrored at its ends, exact and by ``k`` cosines.

    With symmetric weights it is diagonal in the cosines ``c_f(j) = cos(pi f (j + 1/2) / n)``, and
    if the weights are wide the factors of all but the first few are small.

    Attributes:
        weights: ``(2 r + 1,)``, the exact smoothing; folded so that ``r <= n``.
        cosines: ``(rows, k)`` orthonormal columns, with zero rows up to a multiple of 8.
        scaled: ``(n, k)`` the same columns times their factors.
    """

    weights: NDArray[np.float32]
    cosines: NDArray[np.float32]
    scaled: NDArray[np.float32]


def fold_weights(weights: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """Weights with a radius of ``n`` at most that do the same to ``n`` points mirrored.

    The mirrored points repeat after ``2 n``, so weights that far apart meet the same point.
    """
    radius = len(weights) // 2
    if radius <= n:
        return weights
    offsets = np.arange(-radius, radius + 1) % (2 * n)
    whole = np.bincount(offsets, weights.astype(np.float64), minlength=2 * n)
    half = np.append(whole[:n], whole[n] / 2)
    return np.concatenate([half[:0:-1], half]).astype(np.float32)


def cosines_needed(weights: NDArray[np.float32], n: int, *, rest: float) -> int:
    """So many cosines that the share of the others is ``rest`` at most; one at least.

    The share is the mean square that they have in smoothed white noise of variance 1.
    """
    left_out = np.cumsum((_factors(fold_weights(weights, n), n) ** 2)[::-1])[::-1] / n
    return max(1, int(np.count_nonzero(left_out > rest)))


def axis_of(weights: NDArray[np.float32], n: int, *, k: int) -> Axis:
    """The smoothing of ``n`` points, with ``k`` cosines. Takes memory for ``n k`` numbers."""
    folded = fold_weights(weights, n)
    factors = _factors(folded, n)
    cosines = fft.idct(np.eye(k, n), type=2, norm="ortho", axis=1).T
    padded = np.zeros((-(-n // BLOCK) * BLOCK, k), np.float32)
    padded[:n] = cosines
    return Axis(folded, padded, np.ascontiguousarray(cosines * factors[:k], np.float32))


def _factors(folded: NDArray[np.float32], n: int) -> NDArray[np.float64]:
    """What the smoothing multiplies each of the ``n`` cosines by."""
    half = np.zeros(n + 1)
    right = folded[len(folded) // 2 :]
    half[: len(right)] = right
    half[n] *= 2
    factors: NDArray[np.float64] = fft.dct(half, type=1)[:n]
    return factors
