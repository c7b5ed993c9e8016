"""Means over a disk around every pixel, from running sums down the columns.

A disk is a set of columns, and the sum over a column is the difference of two running sums,
exact modulo ``2**16``. Columns of the same height that lie side by side are taken from a line in
which the difference was made once. All is done on some rows at a time, along the flat array and
over the ends of its padded rows.
"""

from __future__ import annotations

from typing import Any

from shiftcal.corruptions._kernels.fixed_point_kernels import U16, upper_half
from shiftcal.corruptions._kernels.inner_kernels import inner
from shiftcal.corruptions._kernels.line_kernels import ADD, SUBTRACT, fill_margins, sum_pairs


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
