"""A network of a moment, by the text ``torch:tiny_backbone:tiny``."""

from __future__ import annotations

from shiftcal.models import Preprocessing


def tiny(width=8):
    """One convolution, the mean over positions, and a linear layer; takes images of 16 pixels."""
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(width, 4),
        )
    network.preprocessing = Preprocessing(resize=(18, 18), crop=16, mean=(0.5,) * 3, std=(0.5,) * 3)
    return network
