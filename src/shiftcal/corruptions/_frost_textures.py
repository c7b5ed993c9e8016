"""Five textures of frost that nobody photographed.

They have the statistics of the five photographs of the published generator: mean, deviation and
skewness of the grey level, mean colour, and the mean square difference of pixels at distances of
1 to 240 pixels (which decides how rough a crop is at any scale). They share no pixel with them.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions._frost_layers import SIDE, clouds, crystals, needles, standardised
from shiftcal.corruptions._frost_pictures import Pictures, packed
from shiftcal.corruptions._shrink import shrink

_CLOUDS = 3  # the first layers
_CRYSTALS = 16  # facets along a side: 40 pixels wide
_DRIFT = (1.0, -0.35, -0.84)  # from blue to grey at the same brightness


class _Look(NamedTuple):
    """How one texture looks, in grey levels.

    Attributes:
        colour: Mean red, green and blue.
        contrast: What a channel changes by when the grey level changes by 1.
        deviation: The standard deviation of the grey level.
        skew: The share of the square in the tone curve; dark marks on light where negative.
        unevenness: How much the density of crystals varies: rough places beside bare ones.
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
def _full_size() -> tuple[NDArray[np.uint8], ...]:
    facets, rims = crystals(_CRYSTALS, stream=(0, 0))
    return tuple(_texture(k, look, facets, rims) for k, look in enumerate(_LOOKS, 1))


def _texture(
    k: int, look: _Look, facets: NDArray[np.int64], rims: NDArray[np.float32]
) -> NDArray[np.uint8]:
    # The facets are the same in all five, but turned, so that they lie in different places.
    facets, rims = np.rot90(facets, k), np.rot90(rims, k)
    planes = (
        clouds(5, stream=(k, 0)),
        clouds(10, stream=(k, 1)),
        clouds(40, stream=(k, 2)),
        rims,
        needles(32, 4, facets, stream=(k, 3)),
        needles(8, 1, facets, stream=(k, 4)),
        clouds(SIDE, stream=(k, 5)),
    )
    smooth, rough = np.zeros((2, SIDE, SIDE), np.float32)
    for i, (part, plane) in enumerate(zip(look.layers, planes, strict=True)):
        sums = smooth if i < _CLOUDS else rough
        sums += np.float32(part) * plane
    spread = clouds(10, stream=(k, 7)) + clouds(40, stream=(k, 8)) + clouds(80, stream=(k, 9))
    density = np.maximum(1 + np.float32(look.unevenness) * spread, np.float32(0.1))
    tone = standardised(smooth + density * rough)
    tone = standardised(tone + np.float32(look.skew) * tone * tone)
    tone = tone * np.float32(look.deviation)
    drift = clouds(5, stream=(k, 6)) * np.float32(look.drift)
    channels = [
        np.float32(mean) + np.float32(gain) * tone + np.float32(shift) * drift
        for mean, gain, shift in zip(look.colour, look.contrast, _DRIFT, strict=True)
    ]
    return np.rint(np.clip(np.stack(channels, axis=-1), 0, 255)).astype(np.uint8)
