"""The classes of CIFAR-10, in the order of their indices."""

from __future__ import annotations

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
