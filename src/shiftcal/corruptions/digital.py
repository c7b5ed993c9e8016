"""Contrast, elastic transform, pixelate, JPEG compression and saturate."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions.corruption import Published, SeverityTable
from shiftcal.corruptions.filters import gaussian_weights


@final
class Contrast(Published):
    """Every channel drawn towards its mean over the image: ``m + c (x - m)``.

    A setting is the factor ``c``, so that small ones are severe. The mean is one of the image and
    the channel, not of the grey image: a picture of one colour stays what it is. Values are cut
    to whole grey levels, as published; a ten-thousandth of a level is added before, so that what
    is a whole number is not taken for the number below.
    """

    name = "contrast"
    group = "digital"
    random = False
    settings = SeverityTable(
        cifar=((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
        tiny_imagenet=((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
        imagenet=((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "draw_to_mean", setting[0]


# What the cosines that are left out may contribute to a displacement, root mean square, in pixels.
_LEFT_OUT = 1e-4


@final
class ElasticTransform(Published):
    """A random affine map, then every pixel moved by smooth random displacements.

    Three points around the centre, a third of the shorter side away from it along both axes, move
    by uniform numbers in ``(-a, a)``, and the image with them; it is mirrored on its outermost
    pixels. Of the result, pixel ``(x, y)`` takes what is at ``(x + u, y + v)``, where ``u`` and
    ``v`` are uniform noise in (-1, 1), smoothed by a Gaussian of width ``s`` that ends at three
    widths, times ``t``; there the image is mirrored on its outer edges. Both steps interpolate
    linearly.

    A setting is ``t, s, a`` and the side of the table's images, all in pixels. At another size
    they grow in proportion to the shorter side.

    Kept as published: the ImageNet table is made of 244 where 224 was meant; ``s`` of its first
    severity is 170.8 pixels, so that the displacement is nearly one shift of the whole image;
    the first severity of the other two has the affine map alone; the points are
    ``(height // 2, width // 2)`` in the order x, y, and so off the centre of an image that is
    not square; large moves can turn the image over; the distortion does not grow with the
    severity, only its detail does. Unlike the OpenCV of the time, which rounded them to 1/32
    pixel, points between pixels are taken where they are, to 1/1024.
    """

    name = "elastic_transform"
    group = "digital"
    monotone = False
    settings = SeverityTable(
        cifar=(
            (0, 0, 32 * 0.08, 32),
            (32 * 0.05, 32 * 0.2, 32 * 0.07, 32),
            (32 * 0.08, 32 * 0.06, 32 * 0.06, 32),
            (32 * 0.1, 32 * 0.04, 32 * 0.05, 32),
            (32 * 0.1, 32 * 0.03, 32 * 0.03, 32),
        ),
        tiny_imagenet=(
            (0, 0, 64 * 0.08, 64),
            (64 * 0.05, 64 * 0.3, 64 * 0.06, 64),
            (64 * 0.1, 64 * 0.08, 64 * 0.06, 64),
            (64 * 0.1, 64 * 0.03, 64 * 0.03, 64),
            (64 * 0.16, 64 * 0.03, 64 * 0.02, 64),
        ),
        imagenet=(
            (244 * 2, 244 * 0.7, 244 * 0.1, 224),
            (244 * 2, 244 * 0.08, 244 * 0.2, 224),
            (244 * 0.05, 244 * 0.01, 244 * 0.02, 224),
            (244 * 0.07, 244 * 0.01, 244 * 0.02, 224),
            (244 * 0.12, 244 * 0.01, 244 * 0.02, 224),
        ),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        times = min(height, width) / setting[3]
        strength, sigma, jitter = (times * value for value in setting[:3])
        if strength == 0:
            return "warp", jitter
        weights = gaussian_weights(sigma, 3)
        taps = (jitter, strength)
        few = _few_cosines(weights, height, width, strength)
        if few is None:
            return "warp_and_displace", *taps, weights
        return "warp_and_displace_smoothly", *taps, *few


def _few_cosines(weights: Any, height: int, width: int, strength: float) -> Any:
    """The axes' plans with few cosines if that is less work than adding up all taps, or None."""
    radius = len(weights) // 2
    rest = _LEFT_OUT * 3**0.5 / strength
    needed = [cosines_needed(weights, n, rest=rest) for n in (height, width)]
    if 2 * sum(needed) + 16 >= 3 * radius:
        return None
    down, across = (axis_of(weights, n, k=k) for n, k in zip((height, width), needed, strict=True))
    return *down, *across


@final
class Pixelate(Published):
    """Reduced to the means of boxes, and enlarged again so that each shows as one large pixel.

    A setting is the fraction ``c`` of the side that is left: height and width are reduced to
    ``int(c * height)`` and ``int(c * width)``, each at least 1. Equal in every bit to Pillow's
    ``resize(..., BOX)`` down and up, whose ways are kept: the means of rows are rounded to whole
    levels before those of columns are taken (Pillow 13 takes those of columns first where an
    image is much higher than wide; the versions before it, of which the published sets were made,
    never do), boxes have whole pixels only, so their sizes differ, and rounding decides whether a
    pixel on the border of two boxes counts in one, in both, or in none.
    """

    name = "pixelate"
    group = "digital"
    random = False
    settings = SeverityTable(
        cifar=((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
        tiny_imagenet=((0.9,), (0.8,), (0.7,), (0.6,), (0.5,)),
        imagenet=((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        small_height, small_width = (max(1, int(side * setting[0])) for side in (height, width))
        rows, columns = _boxes(small_height, height)[:, 0], _boxes(small_width, width)[:, 0]
        return (
            "enlarge_pixels",
            _boxes(height, small_height),
            _boxes(width, small_width),
            np.searchsorted(rows, np.arange(small_height + 1)),
            3 * columns,
        )


def _boxes(side: int, boxes: int) -> NDArray[np.int64]:
    """First value of every box and their number, ``(boxes, 2)``, in Pillow's arithmetic.

    Boxes are ``side / boxes`` wide, but not below 1; a value is in a box if its centre is, the
    right border being part of the box. Rounding decides for a centre on a border: it can be in
    both boxes or in none, and so it is in Pillow.
    """
    step = side / boxes
    width = max(step, 1.0)
    centres = (np.arange(boxes) + 0.5) * step
    first = np.maximum((centres - 0.5 * width + 0.5).astype(np.int64), 0)
    end = np.minimum((centres + 0.5 * width + 0.5).astype(np.int64), side)
    left = (first - centres + 0.5) * (1.0 / width)
    right = (end - 1 - centres + 0.5) * (1.0 / width)
    first, end = first + (left <= -0.5), end - (right > 0.5)
    return np.stack([first, end - first], axis=1)


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


@final
class JpegCompression(Published):
    """Saved as JPEG and read again, at any height and width.

    A setting is the quality. Equal in every bit to what Pillow's ``save(quality=q)`` and ``open``
    give with libjpeg-turbo: steps of the standard's tables scaled by the quality, colour at half
    the resolution, the accurate integer transform, smooth up-sampling. No file is written and no
    codec is needed: a codec's last stage, packing the numbers, loses nothing and is left out.
    """

    name = "jpeg_compression"
    group = "digital"
    random = False
    settings = SeverityTable(
        cifar=((80,), (65,), (58,), (50,), (40,)),
        tiny_imagenet=((65,), (58,), (50,), (40,), (25,)),
        imagenet=((25,), (18,), (15,), (10,), (7,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        tables = [_quantisation(base, setting[0]) for base in (_BRIGHTNESS, _COLOUR)]
        return "jpeg_round_trip", np.stack(tables)


def _quantisation(base: str, quality: float) -> NDArray[np.int32]:
    """Step, multiplier, summand and shift of every coefficient, ``(4, 64)``.

    With ``d`` of 8 steps, ``(v * multiplier + summand) >> shift`` is the floor of ``v / d + 1/2``
    for ``-2**14 <= v + d / 2 < 2**14``: it exceeds the exact quotient by less than ``1 / d``, and
    is never below it. Coefficients stay below 2**13 + 2**4, products below 2**31.
    """
    scale = 5000 // int(quality) if quality < 50 else 200 - 2 * int(quality)
    steps = np.array(base.split(), np.int64)
    steps = np.clip((steps * scale + 50) // 100, 1, 255)
    divisors = 8 * steps
    shifts = 15 + np.ceil(np.log2(divisors)).astype(np.int64)
    multipliers = (1 << shifts) // divisors + 1
    summands = divisors // 2 * multipliers + (1 << 14)
    return np.stack([steps, multipliers, summands, shifts]).astype(np.int32)


@final
class Saturate(Published):
    """The saturation of HSV made ``min(m S + a, 1)``; hue and value stay.

    A setting is the factor ``m`` and what is added, ``a``. The value ``V`` is the largest channel,
    and the distance of the others from it grows or shrinks: ``V - (V - x) S' / S``.

    Two odd things are kept as published. Severity is not an order: the first two take colour
    away, the other three add it. And where something is added, grey turns reddish, because a
    pixel without a hue counts as red.

    Values are cut to whole grey levels, as published; a ten-thousandth of a level is added before,
    so that what is a whole number is not taken for the number below. The published arithmetic,
    which goes through HSV in float64, loses such a level here and there.
    """

    name = "saturate"
    group = "digital"
    random = False
    monotone = False
    settings = SeverityTable(
        cifar=((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),
        tiny_imagenet=((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (30.0, 0.2)),
        imagenet=((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "change_saturation", *setting


# --------------------------------------------------------------------------------------
# Few cosines for what a wide Gaussian leaves of a field.
#
# Smoothing with symmetric weights along an axis of ``n`` points mirrored at its ends is diagonal in
# the cosines ``c_f(j) = cos(pi f (j + 1/2) / n)``, and if the weights are wide the factors of all
# but the first few are small.
# --------------------------------------------------------------------------------------


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


def axis_of(
    weights: NDArray[np.float32], n: int, *, k: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """The smoothing of ``n`` points, exact and by ``k`` cosines.

    Returns:
        ``(2 r + 1,)`` weights, folded so that ``r <= n``; ``(rows, k)`` cosines as orthonormal
        columns, with zero rows up to a multiple of 8; ``(n, k)`` the same columns times their
        factors.
    """
    folded = fold_weights(weights, n)
    angles = np.pi / n * (np.arange(n) + 0.5)[:, None] * np.arange(k)
    cosines = np.sqrt(2 / n) * np.cos(angles)
    cosines[:, 0] = np.sqrt(1 / n)
    padded = np.zeros((-(-n // 8) * 8, k), np.float32)
    padded[:n] = cosines
    return folded, padded, (cosines * _factors(folded, n)[:k]).astype(np.float32)


def _factors(folded: NDArray[np.float32], n: int) -> NDArray[np.float64]:
    """What the smoothing multiplies each of the ``n`` cosines by."""
    right = folded[len(folded) // 2 :].astype(np.float64)
    right[1:] *= 2
    factors: NDArray[np.float64] = (
        np.cos(np.pi / n * np.arange(n)[:, None] * np.arange(len(right))) @ right
    )
    return factors
