"""Snow, frost, fog, brightness and spatter."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions.corruption import Published, SeverityTable, stream_start
from shiftcal.corruptions.filters import (
    crop_length,
    gaussian_weights,
    line_steps,
    line_weights,
    normal_medians,
    zoom_axis,
)
from shiftcal.errors import FileError, InputError, require
from shiftcal.numerics.blocks import kernels


@final
class Snow(Published):
    """Falling flakes over a whitened image.

    A setting is ``(mean, deviation, zoom, threshold, radius, sigma, mix)``. A field with one
    normal deviate a pixel is enlarged by ``zoom`` as in zoom blur, set to 0 below the threshold,
    clipped to [0, 1], cut to 256 levels, and blurred as by motion blur (radius, sigma) at an angle
    uniform between -135 and -45 degrees. The image becomes
    ``mix x + (1 - mix) max(x, 1.5 grey(x) + 0.5)``, the layer and the layer turned by 180 degrees
    are added, and the sum is clipped and cut to whole levels.

    What is odd in the published sets is kept: every flake is there twice, on opposite sides of the
    middle, since the turned layer is that of the same image; and ImageMagick, which blurred the
    layer, rounds it to whole levels where everything else is cut. Severity 3 of ImageNet changes
    images no more than severity 2.

    Only the middle of the field that is enlarged is drawn. The angle is one of 4,096 equally
    likely ones, as in motion blur, and levels that are whole but for rounding errors are not cut
    to the one below: 2**-12 is added first. Heights and widths that differ are treated each by the
    rule of the published squares; lengths stay in pixels.
    """

    name = "snow"
    group = "weather"
    monotone = False
    settings = SeverityTable(
        cifar=(
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        tiny_imagenet=(
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        imagenet=(
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        mean, deviation, zoom, threshold, radius, sigma, mix = setting
        table = (255 * (mean + deviation * normal_quantiles())).astype(np.float32)
        weights = line_weights(radius, sigma)
        dx, dy = line_steps(len(weights), -135)
        flakes = (table, *_axis(height, zoom), *_axis(width, zoom), 255 * threshold)
        line = (weights, dx, dy, int(-dx.min()), int(dx.max()))
        return "snow_on", *flakes, *line, mix


def _axis(length: int, zoom: float) -> tuple[NDArray[np.int64], NDArray[np.float32], int]:
    index, weight = zoom_axis(length, zoom)
    return index, weight.astype(np.float32), crop_length(length, zoom)


@functools.cache
def normal_quantiles() -> NDArray[np.float64]:
    """The standard normal quantiles of ``(i + 1/2) / 65536``, read-only.

    The largest is 4.32 and the variance 1 - 2.4e-5; what lies beyond has a probability of 1.5e-5.
    """
    half = normal_medians(0.5, 1 << 15)
    table = np.concatenate([-half[::-1], half])
    table.flags.writeable = False
    return table


class Pictures(NamedTuple):
    """Pictures of different sizes in one flat array, where each starts, and their sizes."""

    texels: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


def packed(pictures: Sequence[NDArray[np.uint8]]) -> Pictures:
    """Copies of pictures ``(height, width, 3)``."""
    sizes = np.array([picture.shape[:2] for picture in pictures], np.int64)
    ends = np.cumsum(3 * sizes.prod(axis=1))
    texels = np.concatenate([picture.reshape(-1) for picture in pictures])
    texels.flags.writeable = False
    return Pictures(texels, np.concatenate([[0], ends[:-1]]), sizes)


@final
class Frost(Published):
    """Ice crystals on the lens: ``a x + b t``, with a crop ``t`` of a picture of frost.

    A setting is ``(a, b, scale)``. One of five pictures of frost is drawn, a place in the picture
    at ``scale`` times its size, and what the image's height and width cut out there is added to
    it, in grey levels, stopped at 255 and cut to whole levels.

    The published pictures are photographs that may not be passed on. By default they are
    replaced by textures made for the purpose, with the same mean, colour, deviation and roughness;
    results are close to those with the photographs but not comparable with them to the last point.
    These textures join at their edges, so that a crop can lie anywhere and be of any size. As the
    image is also made darker, an image may change more at one severity than at the next.

    With ``photos`` it is the published recipe with its odd sides: of six photographs the last is
    never drawn; pictures are made smaller without smoothing, so that at a scale of 0.2 every
    fifth pixel is taken; the last row and the last column of places are never drawn; and images
    must be smaller than every photograph at that scale.

    Args:
        photos: A folder with photographs of frost, taken in the order of their names, which must
            not change while it is used. Needs Pillow, from ``pip install 'shiftcal[images]'``.
    """

    name = "frost"
    group = "weather"
    monotone = False
    settings = SeverityTable(
        cifar=((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
        tiny_imagenet=(
            (1, 0.3, 0.3),
            (0.9, 0.4, 0.3),
            (0.8, 0.45, 0.3),
            (0.75, 0.5, 0.3),
            (0.7, 0.55, 0.3),
        ),
        imagenet=((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
    )

    photos: Path | None = None

    def __init__(self, *, photos: str | os.PathLike[str] | None = None) -> None:
        if photos is not None:
            from shiftcal.files import parsing

            self.photos = Path(photos).absolute()
            content = hashlib.sha256()
            for file in photo_files(self.photos):
                with parsing(file, "a photograph"):
                    content.update(file.read_bytes())
            self._digest = content.hexdigest()

    @property
    def kind(self) -> Literal["procedural", "photos"]:
        """Where its pictures of frost come from."""
        return "procedural" if self.photos is None else "photos"

    @property
    def description(self) -> str:
        """The name with the kind, so that results of the two are not mixed."""
        return f"{self.name} ({self.kind})"

    @property
    def identity(self) -> str | None:
        """The description, with a digest of the photographs if there are any."""
        if self.photos is None or vars(self).keys() != {"photos", "_digest"}:
            return super().identity
        return f"{self.name} (photos, sha256 {self._digest[:16]})"

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        own, other, scale = setting
        if self.photos is None:
            texels, starts, sizes = frost_textures(scale)
            places = sizes
        else:
            texels, starts, sizes = frost_photos(self.photos, scale)
            places = sizes - (height, width)
        if places.min() < 1:
            raise InputError(
                f"photos: images of {height} x {width} pixels do not fit into photos of frost of "
                f"{sizes.min(axis=0)} pixels at a scale of {scale}. Use larger photos."
            )
        textures = np.column_stack([starts, sizes, places])
        return "blend_textures", texels, textures, own, other


_WIBBLE = 100.0
# A map of this side takes 80 MB while it is made, and one of 16384 would take 1.3 GB an image.
_LARGEST = 4096


@final
class Fog(Published):
    """A cloudy brightness laid over the image: ``(x + c p) m / (m + c)``, ``x`` in [0, 1].

    ``m`` is the largest value of the image before the fog, and ``p`` in [0, 1] a plasma made by
    the diamond-square algorithm: a grid of one point is refined again and again, each new point
    being the mean of its four neighbours plus noise, until it has the side of the map. The noise
    is uniform in ``(-v**2, v**2)`` with ``v`` 100 at first and divided by ``d`` at every
    refinement. The result is cut to whole grey levels.

    A setting is ``c``, ``d`` and the side of the map. An image gets the top left corner of a map
    of the table's side (32, 64, and 256 for 224 pixels), or, if it does not fit, of the next
    power of two that covers its longer side, up to 4096. A longer image has its fog repeated
    every 4096 pixels, without a seam, since the map is a torus.

    Kept as published: the map is a torus, so that the left of a full one continues its right; its
    ``v`` enters squared; its range is 0 to 1 over the whole of it, so a cut-out may have less;
    and the gain ``m / (m + c)`` leaves the brightest possible value where the brightest value
    was, so that a black image stays black and everything else loses contrast.
    """

    name = "fog"
    group = "weather"
    settings = SeverityTable(
        cifar=((0.2, 3, 32), (0.5, 3, 32), (0.75, 2.5, 32), (1, 2, 32), (1.5, 1.75, 32)),
        tiny_imagenet=((0.4, 3, 64), (0.7, 3, 64), (1, 2.5, 64), (1.5, 2, 64), (2, 1.75, 64)),
        imagenet=((1.5, 2, 256), (2, 2, 256), (2.5, 1.7, 256), (2.5, 1.5, 256), (3, 1.4, 256)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        strength, decay, side = setting
        while side < min(max(height, width), _LARGEST):
            side *= 2
        levels = int(side).bit_length() - 1
        amplitudes = (_WIBBLE / float(decay) ** np.arange(levels)) ** 2
        return "lay_fog", amplitudes.astype(np.float32), 255 * strength


@final
class Brightness(Published):
    """The value of HSV raised by ``c`` and clipped at 1; hue and saturation stay.

    A setting is ``c``. The value is the largest channel, and with it the others grow in
    proportion: ``x min(V + c, 1) / V``. Black becomes grey. Nothing is clipped but the value, so
    a saturated colour stays saturated.

    Values are cut to whole grey levels, as published; a ten-thousandth of a level is added before,
    so that what is a whole number is not taken for the number below. The published arithmetic,
    which goes through HSV in float64, loses such a level here and there.
    """

    name = "brightness"
    group = "weather"
    random = False
    settings = SeverityTable(
        cifar=((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
        tiny_imagenet=((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
        imagenet=((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "raise_value", 255 * setting[0]


_TRUNCATE = 4  # radius of the smoothing in standard deviations, as in scikit-image


@final
class Spatter(Published):
    """Drops of water (severity 1 to 3) or mud (4 and 5) on the lens.

    A setting is ``(mean, deviation, sigma, least, strength, mud)``. A field of independent normal
    values with that mean and deviation is smoothed by a Gaussian of standard deviation ``sigma``
    in pixels, its border repeated; the image is wet where the field reaches ``least``.

    Water: the field in whole grey levels, 0 where dry; its edges (Canny, thresholds 50 and 150);
    the distance to them, at most 20, averaged over 3 x 3 pixels and cut to whole numbers; equalised
    to 0 .. 255; embossed with ``[[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]``; averaged once more; times
    the field, divided by its maximum: ``x + strength m (175, 238, 238) / 255``.

    Mud: where the field exceeds ``least``, smoothed by a Gaussian of standard deviation
    ``strength``, and 0 where that is below 0.8: ``x (1 - m) + m (63, 42, 20) / 255``.

    As published: a field above 1 wraps around to 0 when it becomes a grey level, which opens a
    hole in the drop (at severity 3 of the smaller tables, in one image of 32 pixels out of six
    and in one of 64 out of three); the brightest drop has the same light in every image, whatever
    its size. Where nothing is wet the published generator divides by zero; here the image stays
    as it is. All lengths are in pixels, so images of other sizes and shapes than the table's have
    drops of the same size.
    """

    name = "spatter"
    group = "weather"
    monotone = False
    settings = SeverityTable(
        cifar=(
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
        tiny_imagenet=(
            (0.62, 0.1, 0.7, 0.7, 0.6, 0),
            (0.65, 0.1, 0.8, 0.7, 0.6, 0),
            (0.65, 0.3, 1, 0.69, 0.6, 0),
            (0.65, 0.1, 0.7, 0.68, 0.6, 1),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ),
        imagenet=(
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        mean, deviation, sigma, least, strength, mud = setting
        table = (255 * deviation * normal_quantiles()).astype(np.float32)
        liquid = (table, gaussian_weights(sigma, _TRUNCATE), 255 * mean, 255 * least)
        if mud:
            return "muddy", *liquid, _summing_to_one(strength)
        return "splash", *liquid, strength


@functools.cache
def _summing_to_one(sigma: float) -> NDArray[np.float32]:
    """Gaussian weights which the kernel, adding in float32, makes exactly 1 of ones.

    Otherwise all of a mud blot would be a level too dark when values are cut.
    """
    weights = gaussian_weights(sigma, _TRUNCATE)
    middle = len(weights) // 2
    while (total := _added(weights)) != 1:
        weights[middle] = np.nextafter(weights[middle], np.float32(2 if total < 1 else 0))
    return weights


def _added(weights: NDArray[np.float32]) -> np.float32:
    middle = len(weights) // 2
    total = weights[middle]
    for weight in weights[middle + 1 :]:
        total = total + np.float32(2) * weight
    return total


# --------------------------------------------------------------------------------------
# Pictures of frost, made smaller.
# --------------------------------------------------------------------------------------

_ONE = 1 << 11


def shrink(image: NDArray[np.uint8], scale: float) -> NDArray[np.uint8]:
    """The image ``(h, w, 3)`` at ``scale`` times its size, in OpenCV's fixed-point arithmetic.

    Pixel ``i`` is read at ``(i + 1/2) / scale - 1/2`` between its two neighbours. As they are not
    averaged over the pixels left out, fine structure stays as rough as it was: at a scale of 0.2
    every fifth pixel is taken as it is.
    """
    if scale == 1:
        return image
    top, bottom, down = _taps(image.shape[0], scale)
    left, right, across = _taps(image.shape[1], scale)
    top, bottom, down, across = top[:, None], bottom[:, None], down[:, None, None], across[:, None]
    upper, lower = (
        image[rows, left] * (_ONE - across) + image[rows, right] * across >> 4
        for rows in (top, bottom)
    )
    upper, lower = upper * (_ONE - down) >> 16, lower * down >> 16
    out: NDArray[np.uint8] = ((upper + lower + 2) >> 2).astype(np.uint8)
    return out


def _taps(size: int, scale: float) -> tuple[NDArray[Any], ...]:
    """For each pixel: the two it is read between, and the share of the second in 2048ths."""
    at = (np.arange(round(size * scale)) + 0.5) * (1 / scale) - 0.5
    at = np.clip(at.astype(np.float32), 0, size - 1)
    first = np.floor(at).astype(np.int64)
    share = np.rint((at - first.astype(np.float32)) * np.float32(_ONE)).astype(np.int32)
    return first, np.minimum(first + 1, size - 1), share


SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"})


def photo_files(folder: Path) -> list[Path]:
    """The photographs that are used: all, in the order of their names, but five of six.

    The published generator comes with six and draws among the first five.

    Raises:
        FileError: If there is no such folder, or no photograph in it.
    """
    files = sorted(file for file in folder.glob("*") if file.suffix.lower() in SUFFIXES)
    if not files:
        raise FileError(
            f"photos: {str(folder)!r} must be a folder with photos of frost, whose names end in "
            f"one of {', '.join(sorted(SUFFIXES))}."
        )
    return files[:5] if len(files) == 6 else files


def frost_photos(folder: Path, scale: float) -> Pictures:
    """The photographs at ``scale`` times their size."""
    from shiftcal.files import parsing

    image = require("PIL.Image", extra="images", needed_by="frost with photos")
    operations = require("PIL.ImageOps", extra="images", needed_by="frost with photos")
    photos = []
    for file in photo_files(folder):
        with parsing(file, "a photograph", fix="Remove or replace it."), image.open(file) as opened:
            photos.append(np.asarray(operations.exif_transpose(opened).convert("RGB")))
    return packed([shrink(photo, scale) for photo in photos])


# --------------------------------------------------------------------------------------
# Five textures of frost that nobody photographed.
#
# They have the statistics of the five photographs of the published generator: mean, deviation and
# skewness of the grey level, mean colour, and the mean square difference of pixels at distances of
# 1 to 240 pixels (which decides how rough a crop is at any scale). They share no pixel with them.
# --------------------------------------------------------------------------------------


class _Look(NamedTuple):
    """How one texture looks, in grey levels.

    Attributes:
        colour: Mean red, green and blue.
        contrast: What a channel changes by when the grey level changes by 1.
        deviation: The standard deviation of the grey level.
        skew: The share of the square in the tone curve; dark marks on light where negative.
        unevenness: How much the density of crystals varies: rough places next to bare ones.
        drift: How much the colour wanders from place to place.
        layers: The parts of clouds 128, 64 and 16 pixels wide, crystal rims, needles of 32 x 4
            and of 8 x 1 pixels, and grain.
    """

    colour: tuple[float, float, float]
    contrast: tuple[float, float, float]
    deviation: float
    skew: float
    unevenness: float
    drift: float
    layers: tuple[float, ...]


_WHITE = _Look(
    (201, 205, 214), (0.97, 1.01, 1.03), 20, -0.15, 0.25, 1.5, (12, 0, 0, 8.8, 3.5, 7.1, 9.9)
)
_LOOKS = (
    _Look((78, 149, 166), (1.36, 0.88, 0.7), 17.7, 0.08, 0.25, 10, (9.2, 8.6, 6.2, 0, 0, 4, 9.5)),
    _WHITE,
    _WHITE,
    _Look((138, 153, 165), (0.99, 1, 1.04), 28, 0, 0.3, 1.5, (11, 7.8, 0, 0, 11.2, 6, 17.8)),
    _Look((112, 123, 135), (1.02, 1, 0.96), 39.3, 0.08, 0.25, 1.5, (26, 0, 9.2, 16.9, 14, 6, 22)),
)


@functools.lru_cache(maxsize=8)
def frost_textures(scale: float) -> Pictures:
    """The five textures, of ``640 scale`` pixels square; left joins right, and top bottom."""
    return packed([shrink(texture, scale) for texture in _full_size()])


@functools.cache
def _full_size() -> NDArray[np.uint8]:
    textures = np.empty((len(_LOOKS), 640, 640, 3), np.uint8)
    looks = [(*look.colour, *look.contrast, *look[2:-1], *look.layers) for look in _LOOKS]
    # The random streams of crystals, which all textures share, and of each texture.
    starts = [
        [stream_start("frost texture", texture, layer) for layer in range(10)]
        for texture in range(1 + len(_LOOKS))
    ]
    kernels.frost_textures(textures, np.array(looks, np.float32), np.array(starts))
    return textures
