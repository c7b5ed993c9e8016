"""ImageMagick's motion blur in plain numpy, in float64 and with every tap."""

from __future__ import annotations

import numpy as np


def unrounded_blur(image, radius, sigma, degrees):
    """The mean along a line that starts at each pixel; the image goes on with its last pixels."""
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    angle = np.deg2rad(degrees)
    height, width = image.shape[:2]
    total = np.zeros(image.shape)
    for step, weight in zip(steps, weights, strict=True):
        y = np.clip(np.arange(height) + int(np.ceil(step * np.sin(angle) - 0.5)), 0, height - 1)
        x = np.clip(np.arange(width) + int(np.ceil(step * np.cos(angle) - 0.5)), 0, width - 1)
        total += weight * image[y][:, x]
    return total


def magick_blur(image, radius, sigma, degrees):
    """The same in whole levels; rounding to 16 bits and then to 8, as it does, is rounding once."""
    return np.floor(unrounded_blur(image, radius, sigma, degrees) + 0.5).astype(np.uint8)


def drawn_angle(key, number, start):
    """The angle that number ``number`` of a stream gives, in degrees between start and 90 more."""
    from shiftcal.corruptions.kernels.random_kernels import word

    bits = int(word(np.uint32(number), key[0], key[1]))
    return start + 90 * ((bits >> 20) + 0.5) / 4096
