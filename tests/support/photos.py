"""Real photographs of any size, and images on which things go wrong."""

from __future__ import annotations

import functools

import numpy as np


@functools.cache
def _sample(name):
    from sklearn.datasets import load_sample_image

    return np.asarray(load_sample_image(name))


def photo(height, width, name="china.jpg"):
    """A real photograph (427 x 640 in full) reduced to the size asked for: (height, width, 3)."""
    from PIL import Image

    return np.array(Image.fromarray(_sample(name)).resize((width, height), Image.Resampling.BOX))


def photos(height, width):
    """Four different pictures (4, height, width, 3): two whole, two cut out at full resolution."""
    china, flower = _sample("china.jpg"), _sample("flower.jpg")
    return np.stack(
        [
            photo(height, width),
            photo(height, width, "flower.jpg"),
            china[100 : 100 + height, 200 : 200 + width],
            flower[150 : 150 + height, 250 : 250 + width],
        ]
    )


def odd_images(height, width):
    """Black, white, grey, one strong colour, a gradient, and a checkerboard: (6, h, w, 3)."""
    shape = (height, width, 3)
    flat = [np.full(shape, level, np.uint8) for level in (0, 255, 128)]
    colour = np.broadcast_to(np.array([200, 30, 90], np.uint8), shape).copy()
    ramp = np.linspace(0, 255, width).astype(np.uint8)
    gradient = np.broadcast_to(ramp[None, :, None], shape).copy()
    board = np.indices((height, width)).sum(axis=0) % 2 * 255
    checks = np.broadcast_to(board[..., None], shape).astype(np.uint8)
    return np.stack([*flat, colour, gradient, checks])


def place_of(image, figure, times):
    """Left and top of an image in a figure, all its pixels enlarged to squares."""
    pixels, large = np.asarray(figure), image.repeat(times, axis=0).repeat(times, axis=1)
    strips = np.lib.stride_tricks.sliding_window_view(pixels, 40, axis=1)
    found = (strips == large[0, :40].T).all(axis=(2, 3))
    height, width = large.shape[:2]
    places = [
        (x, y)
        for y, x in np.argwhere(found)
        if np.array_equal(pixels[y : y + height, x : x + width], large)
    ]
    assert len(places) == 1
    return places[0]
