"""A small network for digits."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import nn
from shiftcal.models.preprocessing import Preprocessing

# Digits are taken whole: MNIST is 28 pixels high and wide, USPS 16.
PREPROCESSING = Preprocessing(
    resize=(28, 28), interpolation="bicubic", mean=(0.5,) * 3, std=(0.5,) * 3
)


def digits_cnn() -> Any:
    """Three convolutions, for colour images of 28 to 32 pixels; 64,000 parameters, 512 features.

    Each is followed by batch normalisation, ReLU and the largest of every 2 x 2. A stride in the
    place of the pooling is three times as fast, and source-only loses a third of its accuracy on
    digits in colour. The last maps are pooled to 2 x 2, so that where a stroke is still counts.
    Weights are drawn from torch's generator.
    """
    return nn.Sequential(
        *_layer(3, 16, 5),
        nn.MaxPool2d(2),
        *_layer(16, 48, 3),
        nn.MaxPool2d(2),
        *_layer(48, 128, 3),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
    )


def _layer(n_in: int, n_out: int, width: int) -> tuple[Any, ...]:
    convolution = nn.Conv2d(n_in, n_out, width, padding=width // 2, bias=False)
    return convolution, nn.BatchNorm2d(n_out), nn.ReLU()
