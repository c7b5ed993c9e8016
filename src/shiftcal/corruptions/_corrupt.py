"""The function people call: images in, corrupted images out."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_choice, check_count, check_images
from shiftcal.corruptions._engine import TABLES, run, table_for
from shiftcal.corruptions._progress import bar
from shiftcal.corruptions._resolve import as_corruption
from shiftcal.corruptions._stream import PIECE_BYTES, check_out, open_images, write_pieces
from shiftcal.errors import InputError
from shiftcal.numerics._threads import thread_count

# A mapped file larger than this is not silently turned into an array in memory.
LARGE = 1 << 30


def corrupt(  # noqa: PLR0913 (all but the first two are options)
    images: object,
    corruption: object,
    *,
    severity: int,
    seed: int = 0,
    table: str = "auto",
    first_index: int = 0,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> NDArray[np.uint8]:
    """Corrupted copies of images: ``corrupt(images, "pixelate", severity=3)``.

    Every image has a random stream of its own, made of seed, corruption, severity and its index,
    so that the batch it is in, the order, the number of threads and the machine never change a
    pixel. Image ``i`` of a batch equals ``corrupt(images[i], ..., first_index=i)``.

    A grey image is given the same red, green and blue, corrupted as a colour image, and its green
    channel is returned: so noise keeps its strength, which a mean of channels would lessen.

    Args:
        images: uint8, ``(height, width, 3)`` or ``(n, height, width, 3)`` with colours last, the
            same without the last axis or with one channel if they are grey; at least 8 pixels
            high and wide. A Pillow image, or the path of an ``.npy`` file, will do as well.
        corruption: A name (``shiftcal.corruptions.names()``), a corruption such as
            ``corruptions.Frost(photos="folder")``, or a function of your own
            (:class:`shiftcal.corruptions.Custom` says what it is given), or a list of functions,
            one for each severity.
        severity: 0 for the images as they are, 1 to 5 for the published strengths.
        seed: Fixes the random numbers.
        table: Whose strengths: ``"cifar"`` (published for 32 pixels), ``"tiny-imagenet"`` (64),
            ``"imagenet"`` (224), or ``"auto"``, the one whose size is nearest to the shorter
            side, in ratio.
        first_index: Index of the first image, for images that come in several batches.
        threads: How many threads; by default one for every processor.
        out: Path of an ``.npy`` file to write the result to, whole or not at all. Memory is then
            bounded: images mapped from a file of any size are read a piece at a time.
        progress: Whether to show a bar while writing to ``out``; by default on a terminal.

    Returns:
        uint8 of the same shape; of the file ``out``, mapped read-only, if that is given.

    Raises:
        InputError: If something given cannot be used; the message says what to do.
        FileError: If a file cannot be read or written.
    """
    if isinstance(images, (str, os.PathLike)):
        images = open_images(images)
    batch, layout = check_images(images)
    made_by = as_corruption(corruption)
    options: dict[str, Any] = {
        "severity": check_count(severity, name="severity", least=0, most=made_by.severities),
        "seed": check_count(seed, name="seed", least=0, most=2**128),
        "table": check_table(table, *batch.shape[1:3]),
        "threads": thread_count() if threads is None else check_count(threads, name="threads"),
    }
    first = check_count(first_index, name="first_index", least=0, most=2**62)

    def piece(part: NDArray[np.uint8], start: int) -> NDArray[np.uint8]:
        colour = layout.to_colour(part)
        made = np.empty(colour.shape, np.uint8)
        run(made_by, colour, made, first_index=first + start, **options)
        return layout.from_colour(made)

    if out is not None:
        file = check_out(out, batch)
        with bar(f"{made_by.name} {severity}", shown=progress) as step:
            write_pieces(batch, file, layout.shape, corrupt=piece, step=step)
        return open_images(file)
    if isinstance(batch, np.memmap) and batch.nbytes > LARGE:
        raise InputError(
            f"images is a file of {batch.nbytes / 2**30:.1f} GiB mapped into memory, and the "
            "result would be held in memory. Pass out='corrupted.npy', or np.asarray(images)."
        )
    return _in_memory(batch, piece).reshape(layout.shape)


def check_table(table: object, height: int, width: int) -> str:
    """The name of a table; ``"auto"`` is the one for the size."""
    found: str = check_choice(table, ("auto", *TABLES), name="table")
    return table_for(height, width) if found == "auto" else found


def _in_memory(batch: NDArray[np.uint8], piece: Any) -> NDArray[np.uint8]:
    if batch.ndim == 4 or not len(batch):
        made: NDArray[np.uint8] = piece(batch, 0)
        return made
    made = np.empty(batch.shape, np.uint8)
    count = max(1, PIECE_BYTES // (3 * batch[0].nbytes))  # three channels while at work
    for start in range(0, len(batch), count):
        made[start : start + count] = piece(batch[start : start + count], start)
    return made
