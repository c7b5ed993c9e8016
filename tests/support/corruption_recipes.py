"""Published corruptions in numpy, scipy, OpenCV and scikit-image: zoom, motion blur, spatter."""

from __future__ import annotations

import cv2
import numpy as np
from random_fields import words
from scipy.ndimage import zoom
from skimage.filters import gaussian


def clipped_zoom(image, factor):
    """The middle of an image ``(h, w, c)``, enlarged and trimmed to the image's size."""
    sides = image.shape[:2]
    cut = [int(np.ceil(side / factor)) for side in sides]
    top, left = ((side - part) // 2 for side, part in zip(sides, cut, strict=True))
    middle = image[top : top + cut[0], left : left + cut[1]]
    large = zoom(middle, (factor, factor, 1), order=1)
    top, left = ((much - side) // 2 for much, side in zip(large.shape[:2], sides, strict=True))
    return large[top : top + sides[0], left : left + sides[1]]


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
    bits = int(words(key, number, 1)[0])
    return start + 90 * ((bits >> 20) + 0.5) / 4096


def liquid_of(field, mean, deviation, sigma, least):
    layer = gaussian(mean + deviation * field, sigma=sigma)
    layer[layer < least] = 0
    return layer


def water_light(levels):
    """What OpenCV makes of a liquid layer in whole levels, before it is scaled."""
    distance = cv2.distanceTransform(255 - cv2.Canny(levels, 50, 150), cv2.DIST_L2, 5)
    _, distance = cv2.threshold(distance, 20, 20, cv2.THRESH_TRUNC)
    relief = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    kernel = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
    return levels * cv2.blur(cv2.filter2D(relief, cv2.CV_8U, kernel), (3, 3)).astype(np.float32)


def recipe(image, field, values):
    """The published recipe in the published arithmetic (float32), on a given normal field."""
    mean, deviation, sigma, least, strength, mud = values
    x = image.astype(np.float32) / np.float32(255)
    layer = liquid_of(field, mean, deviation, sigma, least)
    if mud:
        m = gaussian((layer > least).astype(np.float32), sigma=strength)
        m[m < 0.8] = 0
        x = x * (1 - m[..., None]) + np.float32([63 / 255, 42 / 255, 20 / 255]) * m[..., None]
    else:
        light = water_light((layer * 255).astype(np.int64).astype(np.uint8))
        if light.max() == 0:
            return image
        m = light / light.max() * np.float32(strength)
        x = x + m[..., None] * np.float32([175 / 255, 238 / 255, 238 / 255])
    return (np.clip(x, 0, 1) * np.float32(255)).astype(np.uint8)
