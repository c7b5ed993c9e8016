"""JPEG compression."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.corruptions.base import Corruption, Keys, Settings

# The tables of the standard's annex K, for brightness and for colour, in rows of the block.
_BRIGHTNESS = """
16 11 10 16 24 40 51 61
12 12 14 19 26 58 60 55
14 13 16 24 40 57 69 56
14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77
24 35 55 64 81 104 113 92
49 64 78 87 103 121 120 101
72 92 95 98 112 100 103 99
"""
_COLOUR = """
17 18 24 47 99 99 99 99
18 21 26 66 99 99 99 99
24 26 56 99 99 99 99 99
47 66 99 99 99 99 99 99
99 99 99 99 99 99 99 99
99 99 99 99 99 99 99 99
99 99 99 99 99 99 99 99
99 99 99 99 99 99 99 99
"""


class _Plan(NamedTuple):
    shape: tuple[int, ...]
    blocks: NDArray[np.int64]
    half_blocks: NDArray[np.int64]
    tables: NDArray[np.int32]


@final
class JpegCompression(Corruption):
    """Saved as JPEG and read again, at any height and width.

    A setting is the quality. Equal in every bit to what Pillow's ``save(quality=q)`` and ``open``
    give with libjpeg-turbo: steps of the standard's tables scaled by the quality, colour at half
    the resolution, the accurate integer transform, smooth up-sampling. No file is written and no
    codec is needed: a codec's last stage, packing the numbers, loses nothing and is left out.
    """

    group = "digital"
    random = False
    settings = Settings(
        cifar=((80,), (65,), (58,), (50,), (40,)),
        tiny_imagenet=((65,), (58,), (50,), (40,), (25,)),
        imagenet=((25,), (18,), (15,), (10,), (7,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        rows, columns = -(-height // 8), -(-width // 8)
        half_rows, half_columns = -(-height // 16), -(-width // 16)
        first = 64 * rows * columns
        return _Plan(
            (height, width, 8 * columns, 8 * half_columns, first),
            _starts(rows, columns),
            first + _starts(half_rows, 2 * half_columns),
            np.stack([_quantisation(base, setting[0]) for base in (_BRIGHTNESS, _COLOUR)]),
        )

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.jpeg_compression_kernels import round_trip

        rows = (*images.shape[:2], -1)
        round_trip(images.reshape(rows), out.reshape(rows), *plan)


def _starts(rows: int, columns: int) -> NDArray[np.int64]:
    """Where the 8 x 8 blocks of a plane of so many blocks begin, in its flat array."""
    starts = 64 * columns * np.arange(rows)[:, None] + 8 * np.arange(columns)
    return starts.ravel()


def _quantisation(base: str, quality: float) -> NDArray[np.int32]:
    """Step, multiplier, summand and shift of every coefficient, for eight blocks side by side.

    With ``d`` of 8 steps, ``(v * multiplier + summand) >> shift`` is the floor of ``v / d + 1/2``
    for ``-2**14 <= v + d / 2 < 2**14``: it exceeds the exact quotient by less than ``1 / d``, and
    is never below it. Coefficients stay below 2**13 + 2**4, products below 2**31.
    """
    scale = 5000 // int(quality) if quality < 50 else 200 - 2 * int(quality)
    steps = np.array(base.split(), np.int64).reshape(8, 8)
    steps = np.clip((steps * scale + 50) // 100, 1, 255)
    divisors = 8 * steps
    shifts = 15 + np.ceil(np.log2(divisors)).astype(np.int64)
    multipliers = (1 << shifts) // divisors + 1
    summands = divisors // 2 * multipliers + (1 << 14)
    tables = np.stack([steps, multipliers, summands, shifts])
    return np.tile(tables, (1, 1, 8)).reshape(4, -1).astype(np.int32)
