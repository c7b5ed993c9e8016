"""What corruptions do to a real network: the accuracies measured with the original generator.

The reference is one random draw on the same 1,000 images, so its own standard error between draws
is about a point where the corruption is random.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from cifar_net import cifar_images, resnet20

import shiftcal as sc

# Percent correct of ResNet-20 on the first 1,000 test images of CIFAR-10, severity 1, 3, 5.
REFERENCE = {
    "gaussian_noise": (73.5, 35.1, 24.6),
    "shot_noise": (80.0, 48.7, 30.6),
    "impulse_noise": (79.9, 54.6, 21.8),
    "speckle_noise": (81.6, 58.3, 36.7),
    "defocus_blur": (91.8, 83.2, 58.1),
    "gaussian_blur": (91.6, 74.1, 40.1),
    "glass_blur": (45.8, 51.4, 43.4),
    "zoom_blur": (82.8, 74.4, 60.7),
    "fog": (92.4, 87.9, 65.6),
    "frost": (84.5, 67.2, 56.0),
    "brightness": (91.8, 90.7, 86.7),
    "contrast": (91.7, 79.6, 27.0),
    "saturate": (89.8, 90.9, 85.7),
    "spatter": (89.7, 73.9, 69.7),
    "elastic_transform": (86.6, 81.3, 69.0),
    "pixelate": (87.2, 73.6, 38.4),
    "jpeg_compression": (82.3, 76.0, 69.1),
}
SEVERITIES = (1, 3, 5)
# The textures of procedural frost are not the photographs of the original. The reference for
# spatter 3 is 3 to 4 points below what its steps give with OpenCV itself.
WITHIN = {"frost": (6.0, 6.0, 6.0), "spatter": (3.0, 4.5, 3.0)}


@functools.cache
def network(folder):
    return resnet20(folder)


@functools.cache
def accuracies(folder, name):
    """Percent correct at each severity; random ones are averaged over three draws."""
    images, labels = cifar_images(folder, 1000)
    seeds = (0, 1, 2) if sc.corruptions.get(name).random else (0,)
    return [
        100
        * np.mean(
            [
                network(folder)(sc.corrupt(images, name, severity=severity, seed=seed)) == labels
                for seed in seeds
            ]
        )
        for severity in SEVERITIES
    ]


@pytest.mark.slow
def test_the_network_is_the_one_the_reference_was_measured_with(shared_data):
    images, labels = cifar_images(shared_data, 10_000)
    assert round(100 * np.mean(network(shared_data)(images) == labels), 2) == 91.73


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_the_accuracy_is_that_of_the_original_generator(shared_data, name):
    found = accuracies(shared_data, name)
    off = np.abs(np.subtract(found, REFERENCE[name]))
    assert (off < WITHIN.get(name, (3.0, 3.0, 3.0))).all(), found
