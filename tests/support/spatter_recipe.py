"""Spatter by its published steps, with OpenCV and scikit-image."""

from __future__ import annotations

import cv2
import numpy as np
from skimage.filters import gaussian


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
