"""The parts of a CIFAR ResNet. Importing this file imports PyTorch."""

from __future__ import annotations

from typing import Any

from shiftcal._optional import require

nn = require("torch.nn", extra="torch", needed_by="a CIFAR ResNet")
functional = require("torch.nn.functional", extra="torch", needed_by="a CIFAR ResNet")


class Block(nn.Module):  # type: ignore[name-defined]
    """Two 3 x 3 convolutions beside a shortcut without parameters (option A).

    Where the width grows, the shortcut takes every second pixel and fills the new channels, half
    of them before the old ones and half after, with zeros.
    """

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        stride = 1 if width == width_in else 2
        self.conv1 = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.added = (width - width_in) // 2

    def forward(self, x: Any) -> Any:
        """``relu(residual(x) + shortcut(x))``."""
        residual = functional.relu(self.bn1(self.conv1(x)))
        residual = self.bn2(self.conv2(residual))
        if self.added:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added, self.added))
        return functional.relu(residual + x)


class CifarResNet(nn.Module):  # type: ignore[name-defined]
    """Three stages of 16, 32 and 64 channels, ``blocks`` blocks each, then a linear layer."""

    def __init__(self, blocks: int, n_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, blocks)
        self.layer2 = _stage(16, 32, blocks)
        self.layer3 = _stage(32, 64, blocks)
        self.linear = nn.Linear(64, n_classes)

    def forward(self, x: Any) -> Any:
        """Logits ``(n, n_classes)`` of ``(n, 3, 32, 32)``."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean(dim=(2, 3)))


def _stage(width_in: int, width: int, blocks: int) -> Any:
    return nn.Sequential(Block(width_in, width), *(Block(width, width) for _ in range(blocks - 1)))
