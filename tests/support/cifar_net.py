"""CIFAR-10 test images and the ResNet-20 that goes with them, from the folder of real data."""

from __future__ import annotations

import numpy as np

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
SD = np.array([0.229, 0.224, 0.225], np.float32)


def cifar_images(folder, n):
    """The first ``n`` test images ``(n, 32, 32, 3)`` and their labels."""
    from PIL import Image

    mosaic = np.asarray(Image.open(folder / "cifar10" / "test.webp").convert("RGB"))
    rows, columns = mosaic.shape[0] // 32, mosaic.shape[1] // 32
    tiles = mosaic.reshape(rows, 32, columns, 32, 3).transpose(0, 2, 1, 3, 4)
    labels = np.load(folder / "cifar10" / "labels.npz")["test"]
    return np.ascontiguousarray(tiles.reshape(-1, 32, 32, 3)[:n]), labels[:n]


def resnet20_module(folder):
    """The network."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        """Two convolutions beside a shortcut; where it narrows, the shortcut skips and pads."""

        def __init__(self, width_in, width):
            super().__init__()
            step = 1 if width_in == width else 2
            self.conv1 = nn.Conv2d(width_in, width, 3, step, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.pad = (width - width_in) // 2

        def forward(self, x):
            out = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
            if self.pad:
                x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
            return functional.relu(out + x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(16)
            widths = [16, 16, 32, 64]
            for stage in (1, 2, 3):
                first = Block(widths[stage - 1], widths[stage])
                rest = [Block(widths[stage], widths[stage]) for _ in range(2)]
                setattr(self, f"layer{stage}", nn.Sequential(first, *rest))
            self.linear = nn.Linear(64, 10)

        def forward(self, x):
            x = functional.relu(self.bn1(self.conv1(x)))
            x = self.layer3(self.layer2(self.layer1(x)))
            return self.linear(x.mean(dim=(2, 3)))

    file = folder / "cifar10-resnet-weights" / "resnet20-12fca82f.th"
    state = torch.load(file, map_location="cpu", weights_only=True)["state_dict"]
    net = Net().eval()
    net.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    return net


def resnet20(folder):
    """The network as a function from images to predicted classes."""
    import torch

    net = resnet20_module(folder)

    def predict(images):
        pixels = (images.astype(np.float32) / 255 - MEAN) / SD
        with torch.inference_mode():
            parts = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()).split(250)
            return torch.cat([net(part).argmax(dim=1) for part in parts]).numpy()

    return predict
