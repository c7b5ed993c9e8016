"""Blurs with a small kernel, and with a disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.disk_kernels import add_rows, disk_means
from shiftcal.corruptions._kernels.inner_kernels import inner
from shiftcal.corruptions._kernels.neighbourhood_kernels import frame, weigh_neighbours
from shiftcal.corruptions._kernels.separable_kernels import BAND, smooth
from shiftcal.corruptions._kernels.smoothing_plan import RUN
from shiftcal.corruptions._kernels.spill_kernels import reflect, smooth_and_add, spill
from shiftcal.numerics._jit import compiled


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
