"""The settings are the published ones: nineteen corruptions, three tables, five severities."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal import corruptions

# By corruption what CIFAR-10-C, Tiny-ImageNet-C and ImageNet-C have at severity 1 to 5.
PUBLISHED = {
    "gaussian_noise": (
        (0.04, 0.06, 0.08, 0.09, 0.10),
        (0.04, 0.08, 0.12, 0.15, 0.18),
        (0.08, 0.12, 0.18, 0.26, 0.38),
    ),
    "shot_noise": (
        (500, 250, 100, 75, 50),
        (250, 100, 50, 30, 15),
        (60, 25, 12, 5, 3),
    ),
    "impulse_noise": (
        (0.01, 0.02, 0.03, 0.05, 0.07),
        (0.01, 0.02, 0.05, 0.08, 0.14),
        (0.03, 0.06, 0.09, 0.17, 0.27),
    ),
    "speckle_noise": (
        (0.06, 0.10, 0.12, 0.16, 0.20),
        (0.15, 0.20, 0.25, 0.30, 0.35),
        (0.15, 0.20, 0.35, 0.45, 0.60),
    ),
    "gaussian_blur": (
        (0.4, 0.6, 0.7, 0.8, 1),
        (0.5, 0.75, 1, 1.25, 1.5),
        (1, 2, 3, 4, 6),
    ),
    "defocus_blur": (
        ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    ),
    "glass_blur": (
        ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    ),
    "motion_blur": (
        ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    ),
    # Where the factors end and their step; they start at 1.
    "zoom_blur": (
        ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    ),
    "snow": (
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    ),
    "frost": (
        ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
        ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
        ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    ),
    "fog": (
        ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    ),
    "spatter": (
        (
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
        (
            (0.62, 0.1, 0.7, 0.7, 0.6, 0),
            (0.65, 0.1, 0.8, 0.7, 0.6, 0),
            (0.65, 0.3, 1, 0.69, 0.6, 0),
            (0.65, 0.1, 0.7, 0.68, 0.6, 1),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ),
        (
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
    ),
    "brightness": (
        (0.05, 0.10, 0.15, 0.20, 0.30),
        (0.1, 0.2, 0.3, 0.4, 0.5),
        (0.1, 0.2, 0.3, 0.4, 0.5),
    ),
    "contrast": (
        (0.75, 0.5, 0.4, 0.3, 0.15),
        (0.4, 0.3, 0.2, 0.1, 0.05),
        (0.4, 0.3, 0.2, 0.1, 0.05),
    ),
    "saturate": (
        ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
        ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
        ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    ),
    "jpeg_compression": (
        (80, 65, 58, 50, 40),
        (65, 58, 50, 40, 25),
        (25, 18, 15, 10, 7),
    ),
    "pixelate": (
        (0.95, 0.9, 0.85, 0.75, 0.65),
        (0.9, 0.8, 0.7, 0.6, 0.5),
        (0.6, 0.5, 0.4, 0.3, 0.25),
    ),
    # In sides: of 32, of 64, and of 244, which is a published slip.
    "elastic_transform": (
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
        ((0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)),
        ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
    ),
}
TABLES = ("cifar", "tiny-imagenet", "imagenet")
# What our settings have behind the published numbers.
BEHIND = {
    "fog": (32, 64, 256),  # the side of the map
    "frost": (0.2, 0.3, 1),  # what the photographs are scaled by
    "elastic_transform": (32, 64, 224),  # the side of the images
}
ELASTIC_SIDES = (32, 64, 244)
ZOOMED_COPIES = ((7, 12, 16, 21, 26), (7, 12, 16, 21, 26), (12, 16, 11, 13, 11))


def expected(name, column):
    """The five settings as ours have to be."""
    found = [v if isinstance(v, tuple) else (v,) for v in PUBLISHED[name][column]]
    if name == "elastic_transform":
        found = [tuple(ELASTIC_SIDES[column] * value for value in setting) for setting in found]
    if name == "zoom_blur":
        counts = ZOOMED_COPIES[column]
        found = [(n, step) for n, (_, step) in zip(counts, found, strict=True)]
    behind = (BEHIND[name][column],) if name in BEHIND else ()
    return tuple((*setting, *behind) for setting in found)


def test_every_corruption_is_compared():
    assert sorted(PUBLISHED) == corruptions.names()
    assert len(PUBLISHED) == 19


@pytest.mark.parametrize(("column", "table"), list(enumerate(TABLES)))
@pytest.mark.parametrize("name", PUBLISHED)
def test_settings_are_the_published_ones(name, column, table):
    settings = corruptions.get(name).settings[table]
    assert len(settings) == 5
    assert settings == expected(name, column)


@pytest.mark.parametrize("column", range(3))
def test_zoomed_copies_are_as_many_as_the_published_range_has(column):
    """It includes its end where rounding has it so."""
    ranges = [np.arange(1, end, step) for end, step in PUBLISHED["zoom_blur"][column]]
    assert tuple(len(factors) for factors in ranges) == ZOOMED_COPIES[column]
