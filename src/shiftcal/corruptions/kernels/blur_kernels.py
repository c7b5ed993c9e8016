"""Compiled blurs. Importing this file imports numba: import it in functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from shiftcal.corruptions.kernels.blur_plans import RUN
from shiftcal.corruptions.kernels.fixed_point_kernels import (
    ADD,
    BAND,
    SUBTRACT,
    U16,
    fill_margins,
    frame,
    load,
    smooth,
    smooth_columns,
    sum_pairs,
    upper_half,
    weigh_neighbours,
    weighted_sum,
)
from shiftcal.corruptions.kernels.random_kernels import U, inner, word
from shiftcal.numerics.jit import compiled

# --------------------------------------------------------------------------------------
# Means over a disk around every pixel, from running sums down the columns.
#
# A disk is a set of columns, and the sum over a column is the difference of two running sums,
# exact modulo ``2**16``. Columns of the same height that lie side by side are taken from a line in
# which the difference was made once. All is done on some rows at a time, along the flat array and
# over the ends of its padded rows.
# --------------------------------------------------------------------------------------


@inner()
def add_rows(running: Any, known: Any, wanted: Any, image: Any, disk: Any) -> None:
    """Extend the running sums.

    Args:
        running: ``(h + 2 p + 1, s)`` uint16: line ``t + 1`` is the sum of the rows up to ``t`` of
            the padded image.
        known: The rows that are summed already.
        wanted: The rows to have.
        image: ``(h, 3 w)`` uint8.
        disk: A ``Disks``.
    """
    width = image.shape[1]
    margin = 3 * (disk.reach + 1)
    for t in range(known, wanted):
        line, x = running[t + 1], image[disk.rows[t]]
        middle, above = line[margin : margin + width], running[t, margin : margin + width]
        for i in range(width):
            middle[i] = U16(above[i] + x[i])
        fill_margins(line, disk.places, margin)


@inner()
def disk_means(means: Any, source: Any, padded: Any, disk: Any, work: Any) -> None:
    """The means over the disks around the pixels of some rows.

    Args:
        means: ``(b, 3 w)`` uint16, the result, in multiples of 1/128.
        source: Flat uint16, the running sums from the line above the first row's disks.
        padded: The length of a line.
        disk: A ``Disks``.
        work: ``(2 + g, n)`` uint16 to work in, with room for ``b`` lines in each.
    """
    rows, width = means.shape
    n = (rows - 1) * padded + width
    for g in range(len(disk.ends) - disk.single):
        k = disk.single + g
        line = work[2 + g, : rows * padded]
        sum_pairs(line, source, disk.ends[k : k + 1], disk.starts[k : k + 1], SUBTRACT)
    k = disk.single
    sums, others = work[0, :n], work[1, :n]
    sum_pairs(sums, source, disk.ends[:k], disk.starts[:k], SUBTRACT)
    if len(disk.left) > 0:
        sum_pairs(others, work.reshape(work.size), disk.left, disk.right, ADD)
    else:
        others[:] = U16(0)
    multiple, factor = U16(disk.scale[0]), U16(disk.scale[1])
    for y in range(rows):
        part = slice(y * padded, y * padded + width)
        if multiple > 0:
            _divide(means[y], sums[part], others[part], multiple, factor)
        else:
            _divide_large(means[y], sums[part], others[part], factor)


@inner()
def _divide(means: Any, sums: Any, others: Any, multiple: Any, factor: Any) -> None:
    for i in range(len(means)):
        means[i] = upper_half(U16(U16(sums[i] + others[i]) * multiple), factor)


@inner()
def _divide_large(means: Any, sums: Any, others: Any, factor: Any) -> None:
    for i in range(len(means)):
        means[i] = upper_half(U16(U16(sums[i] >> U16(1)) + U16(others[i] >> U16(1))), factor)


# --------------------------------------------------------------------------------------
# What a smoothed disk gains where it touches the edge of the grid it is drawn on.
#
# The smoothing reflects the kernel about its outermost rows and columns, so that each of the four
# has the row or column next to it added once more, at the weight of a neighbour in the smoothing;
# and what the smoothing would have put outside the grid, of the disk's four outermost pixels, is
# missing. Both are taken as they are, not smoothed along the edge: a difference of at most a
# quarter
# of a grey level on any image, and of a hundredth on photographs.
# --------------------------------------------------------------------------------------

_BELOW = 1020  # four pixels of 255: added to a sum that may be as far below 0


@inner()
def reflect(reflected: Any, source: Any, padded: Any, half: Any, work: Any) -> None:
    """Sum the pixels of some rows over the length of the disk's second row.

    Args:
        reflected: Flat uint16, the result, each sum where its middle is.
        source: Flat uint16, the running sums from the line above the first row.
        padded: The length of a line.
        half: Half the length of the disk's second row.
        work: Flat uint16 to work in, with room for ``reflected``.
    """
    n = len(reflected)
    pixels, below = work[:n], source[padded : padded + n]
    for i in range(n):
        pixels[i] = U16(below[i] - source[i])
    first, second = np.empty(half, np.int64), np.empty(half, np.int64)
    for k in range(half):
        first[k], second[k] = 3 * k, 3 * (2 * half - k)
    out, middle = reflected[3 * half : n - 3 * half], pixels[3 * half : n - 3 * half]
    sum_pairs(out, pixels, first, second, ADD)
    for i in range(len(out)):
        out[i] = U16(out[i] + middle[i])


@inner()
def spill(out: Any, source: Any, reflected: Any, padded: Any, disk: Any, work: Any) -> None:
    """What some rows gain, in multiples of 1/128, with that of ``_BELOW`` on top.

    Args:
        out: ``(b, 3 w)`` uint16, the result.
        source: Flat uint16, the running sums from the line above the first row's disks.
        reflected: Flat uint16, from :func:`reflect`, from the line above the first row's disks.
        padded: The length of a line.
        disk: A ``Disks``.
        work: Flat uint16 to work in, with room for ``b`` lines.
    """
    rows, width = out.shape
    n, reach, half = (rows - 1) * padded + width, disk.reach, disk.spill[0]
    centre = (reach + 1) * padded + 3 * (reach + 1)
    ends, starts = np.empty(6, np.int64), np.empty(6, np.int64)
    for side in range(2):
        sign = 2 * side - 1
        ends[3 * side] = centre + (half + 1) * padded + sign * 3 * reach
        starts[3 * side] = centre - half * padded + sign * 3 * reach
        # Subtracted: the pixels beyond the ends of the disk's middle row and column.
        ends[3 * side + 1] = centre + sign * (reach + 1) * padded
        starts[3 * side + 1] = ends[3 * side + 1] + padded
        ends[3 * side + 2] = centre + sign * 3 * (reach + 1)
        starts[3 * side + 2] = ends[3 * side + 2] + padded
    sums = work[:n]
    sum_pairs(sums, source, ends, starts, SUBTRACT)
    above, below = centre - reach * padded, centre + reach * padded
    for y in range(rows):
        at = y * padded
        upper = reflected[above + at : above + at + width]
        lower = reflected[below + at : below + at + width]
        _weigh(out[y], sums[at : at + width], upper, lower, U16(disk.spill[1]))


@inner()
def _weigh(out: Any, sums: Any, above: Any, below: Any, factor: Any) -> None:
    for i in range(len(out)):
        total = U16(sums[i] + above[i] + below[i] + U16(_BELOW))
        out[i] = upper_half(U16(total << U16(2)), factor)


@inner()
def smooth_and_add(
    image: Any, plane: Any, spilt: Any, factor: Any, plan: Any, middle: Any, sums: Any
) -> None:
    """Smooth a plane as ``smooth`` does, add what was spilt, and stop at 0 and 255.

    Args:
        image: ``(b, 3 w)`` uint8, the result.
        plane: Flat uint16, ``(b + 2 r) * 3 w`` values.
        spilt: ``(b, 3 w)`` uint16.
        factor: The weight that ``spilt`` was made with.
        plan: A ``Smoothing``.
        middle: ``(b, 3 (w + 2 r))`` uint16 to work in.
        sums: Flat uint16 to work in, room for ``max(3 (w + 2 r), RUN)``.
    """
    rows, width = image.shape
    edge, padded = 3 * (len(plan.weights) - 1), middle.shape[1]
    flat = middle.reshape(middle.size)
    below = U16((_BELOW * 4 * factor) >> 16)
    smooth_columns(middle[:rows], plane, plan.weights, plan.biases[0], plan.places, sums)
    for y in range(rows):
        line = sums[:width]
        weighted_sum(line, flat, y * padded + edge, 3, plan.weights, plan.biases[1])
        _add_and_cut(image[y], line, spilt[y], below)


@inner()
def _add_and_cut(out: Any, sums: Any, extra: Any, below: Any) -> None:
    for i in range(len(out)):
        total = max(U16(U16(sums[i] >> U16(1)) + extra[i]), below)
        out[i] = np.uint8(min(U16(U16(total - below) >> U16(7)), U16(255)))


# --------------------------------------------------------------------------------------
# Blurs with a small kernel, and with a disk.
# --------------------------------------------------------------------------------------


@compiled()
def weigh_images(images: Any, out: Any, plan: Any) -> None:
    """Apply a symmetric kernel of three by three pixels.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        plan: A ``Neighbours``.
    """
    plane = np.empty((images.shape[1] + 2, images.shape[2] + 6), np.uint8)
    work = np.empty((3, max(RUN, plane.shape[1])), np.int16)
    for j in range(len(images)):
        frame(plane, images[j], plan.rows, plan.columns)
        weigh_neighbours(out[j], plane, plan.weights[0], plan.weights[1], work)


@compiled()
def disk_images(images: Any, out: Any, disk: Any, smoothing: Any) -> None:
    """The means over a disk, smoothed.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        disk: A ``Disks``.
        smoothing: A ``Smoothing``; its rows are not used.
    """
    _, height, width = images.shape
    margin, padded = len(smoothing.weights) - 1, len(disk.places)
    band = min(BAND, height)
    running = np.empty((len(disk.rows) + 1, padded), np.uint16)
    running[0] = 0
    spills = disk.spill[0] > 0
    reflected = np.empty(running.size if spills else 0, np.uint16)
    work = np.empty((2 + len(disk.ends) - disk.single, disk.group * padded), np.uint16)
    means = np.empty((band + 2 * margin, width), np.uint16)
    spilt = np.empty((band if spills else 0, width), np.uint16)
    middle = np.empty((band, width + 6 * margin), np.uint16)
    sums = np.empty(max(width + 6 * margin, RUN), np.uint16)
    flat = means.reshape(means.size)
    for j in range(len(images)):
        for top in range(0, height, band):
            image = out[j, top : top + band]
            _means(means, running, reflected, images[j], top, disk, work)
            if margin == 0:
                _cut(image, means)
            elif not spills:
                smooth(image, flat, smoothing, middle, sums)
            else:
                _spill(spilt[: len(image)], running, reflected, top + margin, disk, work)
                smooth_and_add(image, flat, spilt, disk.spill[1], smoothing, middle, sums)


@inner()
def _means(
    means: Any, running: Any, reflected: Any, image: Any, top: Any, disk: Any, work: Any
) -> None:
    """Means for the rows from ``top`` on; those known from the last call are moved up."""
    padded = running.shape[1]
    more = len(running) - 1 - len(image) - 2 * (disk.reach + 1)
    known = more if top > 0 else 0
    for y in range(known):
        _copy(means[y], means[len(means) - known + y])
    rows = min(len(means), len(image) + more - top)
    below = 2 * (disk.reach + 1)
    flat = running.reshape(running.size)
    for q in range(known, rows, disk.group):
        some = min(disk.group, rows - q)
        seen = top + q + below if top + q > 0 else 0
        add_rows(running, seen, top + q + some + below, image, disk)
        if len(reflected) > 0:
            _reflect(reflected, flat, seen, top + q + some + below, disk, work)
        disk_means(means[q : q + some], flat[(top + q) * padded :], padded, disk, work)


@inner()
def _copy(out: Any, line: Any) -> None:
    for i in range(len(out)):
        out[i] = line[i]


@inner()
def _reflect(reflected: Any, running: Any, seen: Any, wanted: Any, disk: Any, work: Any) -> None:
    padded = len(disk.places)
    for t in range(seen, wanted, disk.group):
        end = min(t + disk.group, wanted)
        out = reflected[t * padded : end * padded]
        reflect(out, running[t * padded :], padded, disk.spill[0], work[0])


@inner()
def _spill(spilt: Any, running: Any, reflected: Any, top: Any, disk: Any, work: Any) -> None:
    padded = running.shape[1]
    flat = running.reshape(running.size)
    for y in range(0, len(spilt), disk.group):
        part, start = spilt[y : y + disk.group], (top + y) * padded
        spill(part, flat[start:], reflected[start:], padded, disk, work[0])


@inner()
def _cut(image: Any, means: Any) -> None:
    for y in range(len(image)):
        out, line = image[y], means[y]
        for i in range(len(out)):
            out[i] = np.uint8(line[i] >> np.uint16(7))


# --------------------------------------------------------------------------------------
# Separable blurs of whole images.
# --------------------------------------------------------------------------------------


@compiled()
def blur_images(images: Any, out: Any, plan: Any) -> None:
    """Smooth images by columns and rows.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        plan: A ``Smoothing``.
    """
    m, height, width = images.shape
    padded = len(plan.places)
    plane = np.empty(len(plan.rows) * width, np.uint16)
    middle = np.empty((min(BAND, height), padded), np.uint16)
    sums = np.empty(max(padded, RUN), np.uint16)
    for j in range(m):
        load(plane, images[j], plan.rows)
        smooth(out[j], plane, plan, middle, sums)


# --------------------------------------------------------------------------------------
# Pixels that trade places with their neighbours, between two blurs.
# --------------------------------------------------------------------------------------

_LOW = U(0xFFFF)
_BYTE = U(0xFF)


class Scratch(NamedTuple):
    """Memory to blur in."""

    plane: Any
    middle: Any
    sums: Any
    framed: Any
    differences: Any


@compiled()
def glass_images(
    images: Any, out: Any, smoothing: Any, neighbours: Any, moves: Any, keys: Any
) -> None:
    """Blur, displace pixels, blur again.

    Number ``(t h + y) w + x`` of an image's stream displaces the pixel ``(y, x)`` in pass ``t``:
    of its lower 16 bits, ``v``, comes ``dx = (2 d v >> 16) - d``, of the upper ones ``dy``.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        smoothing: A ``Smoothing``.
        neighbours: A ``Neighbours``, used in its place where its radius is 1.
        moves: ``(2,)`` int64, the distance ``d`` and the number of passes.
        keys: ``(m, 2)`` uint32.
    """
    m, height, width = images.shape
    padded = len(smoothing.places)
    scratch = Scratch(
        np.empty(len(smoothing.rows) * width, np.uint16),
        np.empty((min(BAND, height), padded), np.uint16),
        np.empty(max(padded, RUN), np.uint16),
        np.empty((height + 2, width + 6), np.uint8),
        np.empty((3, max(width + 6, RUN)), np.int16),
    )
    still = np.empty((height, width), np.uint8)
    pixels = np.empty((height, width // 3), np.uint32)
    steps = np.empty(width // 3, np.uint32)
    blurred = len(smoothing.weights) > 1
    for j in range(m):
        if blurred:
            _blur(still, images[j], smoothing, neighbours, scratch)
            _pack(pixels, still)
        else:
            _pack(pixels, images[j])
        for t in range(moves[1]):
            _displace(pixels, steps, moves[0], t, keys[j])
        if blurred:
            _unpack(still, pixels)
            _blur(out[j], still, smoothing, neighbours, scratch)
        else:
            _unpack(out[j], pixels)


@inner()
def _blur(out: Any, image: Any, smoothing: Any, neighbours: Any, scratch: Any) -> None:
    if len(smoothing.weights) == 2:
        frame(scratch.framed, image, neighbours.rows, neighbours.columns)
        weights = neighbours.weights
        weigh_neighbours(out, scratch.framed, weights[0], weights[1], scratch.differences)
    else:
        load(scratch.plane, image, smoothing.rows)
        smooth(out, scratch.plane, smoothing, scratch.middle, scratch.sums)


@inner()
def _displace(pixels: Any, steps: Any, distance: Any, t: Any, key: Any) -> None:
    """One pass from the last pixel to the first: each becomes a copy of one near it.

    What was copied stays where it is, and a pixel further on may copy a copy.
    """
    height, width = pixels.shape
    flat = pixels.reshape(pixels.size)
    span, across = U(2 * distance), U(width)
    for y in range(height - distance, distance, -1):
        first = U(U(U(t) * U(height) + U(y)) * across)
        for x in range(width):
            bits = word(U(first + U(x)), key[0], key[1])
            dx = U(U(U(bits & _LOW) * span) >> U(16))
            dy = U(U(U(bits >> U(16)) * span) >> U(16))
            steps[x] = U(U(dy * across) + dx)
        corner = np.uintp((y - distance) * width - distance)
        for x in range(width - distance, distance, -1):
            flat[np.uintp(y * width + x)] = flat[corner + np.uintp(x) + np.uintp(steps[x])]


@inner()
def _pack(pixels: Any, image: Any) -> None:
    height, width = pixels.shape
    for y in range(height):
        line, x = pixels[y], image[y]
        for i in range(width):
            line[i] = U(U(x[3 * i]) | U(U(x[3 * i + 1]) << U(8)) | U(U(x[3 * i + 2]) << U(16)))


@inner()
def _unpack(image: Any, pixels: Any) -> None:
    height, width = pixels.shape
    for y in range(height):
        line, x = pixels[y], image[y]
        for i in range(width):
            x[3 * i] = np.uint8(line[i] & _BYTE)
            x[3 * i + 1] = np.uint8(U(line[i] >> U(8)) & _BYTE)
            x[3 * i + 2] = np.uint8(U(line[i] >> U(16)) & _BYTE)


# --------------------------------------------------------------------------------------
# Weighted sums of shifted rows.
# --------------------------------------------------------------------------------------

# An unsigned index is used as it is; a signed one is asked at every step whether it is negative.
Index = np.uint64


@njit(nogil=True)
def line_row(total: Any, plane: Any, starts: Any, weights: Any) -> None:
    """Add ``sum over t of weights[t] * plane[starts[t] + j]`` to ``total[j]``, for every ``j``.

    Args:
        total: ``(n,)`` float32.
        plane: Flat float32.
        starts: ``(taps,)`` uint64.
        weights: ``(taps,)`` float32; taps is a multiple of four.
    """
    taps = weights.shape[0]
    done = 0
    while taps - done >= 8:
        _add_eight(total, plane, starts[done : done + 8], weights[done : done + 8])
        done += 8
    if done < taps:
        _add_four(total, plane, starts[done : done + 4], weights[done : done + 4])


@njit
def _add_eight(total: Any, plane: Any, s: Any, w: Any) -> None:
    s0, s1, s2, s3, s4, s5, s6, s7 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for k in range(total.shape[0]):
        j = Index(k)
        first = (w0 * plane[s0 + j] + w1 * plane[s1 + j]) + (
            w2 * plane[s2 + j] + w3 * plane[s3 + j]
        )
        second = (w4 * plane[s4 + j] + w5 * plane[s5 + j]) + (
            w6 * plane[s6 + j] + w7 * plane[s7 + j]
        )
        total[j] += first + second


@njit
def _add_four(total: Any, plane: Any, s: Any, w: Any) -> None:
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for k in range(total.shape[0]):
        j = Index(k)
        total[j] += (w0 * plane[s0 + j] + w1 * plane[s1 + j]) + (
            w2 * plane[s2 + j] + w3 * plane[s3 + j]
        )


@njit(nogil=True)
def line_starts(starts: Any, dx: Any, dy: Any, y: Any, shape: Any) -> None:
    """Where row ``y`` shifted by each tap begins in the flat plane; rows stop at the borders.

    Args:
        starts: ``(taps,)`` uint64, written.
        dx: ``(taps,)`` steps to the right, in pixels.
        dy: ``(taps,)`` steps downwards, in pixels.
        y: The row.
        shape: Height, values in a padded row, where the first row's first pixel is in the plane
            (which may begin further down: then it is before its start), values in a pixel.
    """
    height, stride, origin, values = shape
    for t in range(starts.shape[0]):
        row = min(max(y + dy[t], 0), height - 1)
        starts[t] = Index(row * stride + origin + dx[t] * values)


# --------------------------------------------------------------------------------------
# Blurring images along a line.
# --------------------------------------------------------------------------------------

_BAND = 1 << 18  # values in a band of rows, so that large images need no large buffer


@compiled()
def blur_along_lines(
    images: Any, out: Any, weights: Any, dx: Any, dy: Any, reach: Any, keys: Any
) -> None:
    """Each image along the line of an angle drawn with number 0 of its stream, rounded.

    Args:
        images: ``(m, height, width, 3)`` uint8.
        out: Of the same shape.
        weights: ``(taps,)`` float32.
        dx: ``(4096, taps)`` steps to the right, none negative.
        dy: ``(4096, taps)`` steps downwards.
        reach: The largest step of all.
        keys: ``(m, 2)`` uint32.
    """
    m, height, width = images.shape[:3]
    n = 3 * width
    stride = n + 3 * reach
    band = min(height, max(2 * reach, _BAND // stride))
    plane = np.empty(min(height, band + 2 * reach) * stride, np.float32)
    total = np.empty(n, np.float32)
    starts = np.empty(weights.shape[0], np.uint64)
    for k in range(m):
        angle = np.int64(word(U(0), keys[k, 0], keys[k, 1]) >> U(20))
        for top in range(0, height, band):
            first = max(top - reach, 0)
            bottom = min(top + band, height)
            _pad_right(images[k, first : min(bottom + reach, height)], plane, stride)
            for y in range(top, bottom):
                line_starts(starts, dx[angle], dy[angle], y, (height, stride, -first * stride, 3))
                total[:] = np.float32(0.5)
                line_row(total, plane, starts, weights)
                _write(total, out[k, y])


@njit
def _pad_right(rows: Any, plane: Any, stride: Any) -> None:
    height, width = rows.shape[:2]
    for y in range(height):
        flat = rows[y].reshape(3 * width)
        row = plane[y * stride : (y + 1) * stride]
        for j in range(3 * width):
            row[j] = flat[j]
        for j in range(3 * width, stride):
            row[Index(j)] = row[Index(j - 3)]


@njit
def _write(total: Any, row: Any) -> None:
    flat = row.reshape(total.shape[0])
    for j in range(total.shape[0]):
        flat[j] = np.uint8(np.int32(total[j]))


# --------------------------------------------------------------------------------------
# Means of enlarged copies.
# --------------------------------------------------------------------------------------

TOGETHER = 16  # small images whose values lie side by side, so that one weight serves them all
_ABOVE = np.float32(2.0**-12)  # lifts whole levels above rounding errors before the cut


@compiled()
def sum_pixel_taps(images: Any, out: Any, first: Any, source: Any, weight: Any) -> None:
    """Every pixel of every image as the same weighted sum over its image's pixels.

    Args:
        images: ``(m, pixels, 3)`` uint8.
        out: Of the same shape.
        first: As in ``PixelTaps``.
        source: As in ``PixelTaps``.
        weight: As in ``PixelTaps``.
    """
    m, pixels = images.shape[:2]
    together = min(m, TOGETHER)
    beside = np.zeros((pixels, 3 * together), np.float32)
    total = np.empty(3 * together, np.float32)
    for start in range(0, m, together):
        part = images[start : start + together]
        _put_beside(part, beside)
        for p in range(pixels):
            total[:] = _ABOVE
            for k in range(first[p], first[p + 1], 2):
                _add_two(total, beside, source[k : k + 2], weight[k : k + 2])
            _take_apart(total, out[start : start + together], p)


@njit
def _put_beside(images: Any, beside: Any) -> None:
    for k in range(images.shape[0]):
        for p in range(images.shape[1]):
            for c in range(3):
                beside[p, 3 * k + c] = images[k, p, c]


@njit
def _add_two(total: Any, beside: Any, source: Any, weight: Any) -> None:
    w0, w1 = weight[0], weight[1]
    v0, v1 = beside[source[0]], beside[source[1]]
    for j in range(total.shape[0]):
        total[j] += w0 * v0[j] + w1 * v1[j]


@njit
def _take_apart(total: Any, out: Any, p: Any) -> None:
    for k in range(out.shape[0]):
        for c in range(3):
            out[k, p, c] = np.uint8(np.int32(total[3 * k + c]))


@compiled()
def sum_copies(images: Any, out: Any, rows: Any, columns: Any, own_weight: Any) -> None:
    """The weighted sum of every image and its enlarged copies, row by row.

    Of every copy the last two enlarged source rows are kept, since the next row mostly needs them.

    Args:
        images: ``(m, height, width * 3)`` uint8.
        out: Of the same shape.
        rows: ``row`` and ``row_weight`` of ``CopyTaps``.
        columns: ``run``, ``run_source``, ``copy_runs`` and ``column_weight`` of ``CopyTaps``.
        own_weight: As in ``CopyTaps``.
    """
    row, row_weight = rows
    m, height, n = images.shape
    copies = row.shape[0]
    kept = np.empty((copies, 2, n), np.float32)
    holds = np.empty((copies, 2), np.int64)
    plain = np.empty(n, np.float32)
    total = np.empty(n, np.float32)
    for k in range(m):
        holds[:] = -1
        for y in range(height):
            _start(images[k, y], total, own_weight)
            for z in range(copies):
                i = row[z, y]
                for s in range(i, i + 2):
                    if holds[z, s % 2] != s:
                        holds[z, s % 2] = s
                        _plain(images[k, s], plain)
                        _enlarge_row(plain, kept[z, s % 2], columns, z)
                _add_rows(total, kept[z, i % 2], kept[z, (i + 1) % 2], row_weight[z, y])
            _cut_levels(total, out[k, y])


@njit
def _start(pixels: Any, total: Any, weight: Any) -> None:
    for j in range(total.shape[0]):
        total[j] = weight * np.float32(pixels[j]) + _ABOVE


@njit
def _plain(pixels: Any, plain: Any) -> None:
    for j in range(plain.shape[0]):
        plain[j] = pixels[j]


@njit
def _enlarge_row(plain: Any, enlarged: Any, columns: Any, z: Any) -> None:
    run, run_source, copy_runs, column_weight = columns
    here, after = column_weight[z, 0], column_weight[z, 1]
    last = copy_runs[z + 1] - 1
    for r in range(copy_runs[z], last + 1):
        begin = run[r]
        end = enlarged.shape[0] if r == last else run[r + 1]
        shift = Index(run_source[r] - begin)
        for k in range(begin, end):
            j = Index(k)
            enlarged[j] = here[j] * plain[j + shift] + after[j] * plain[j + shift + Index(3)]


@njit
def _add_rows(total: Any, upper: Any, lower: Any, weight: Any) -> None:
    w0, w1 = weight[0], weight[1]
    for j in range(total.shape[0]):
        total[j] += w0 * upper[j] + w1 * lower[j]


@njit
def _cut_levels(total: Any, row: Any) -> None:
    for j in range(total.shape[0]):
        row[j] = np.uint8(np.int32(total[j]))
