"""Scores of whole networks on corrupted images, for ``beyond.py``: made once, kept in ``runs/``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import shiftcal as sc

sys.path.insert(0, str(Path(__file__).parent))
from studies import Network, lite0, resnet20, to_onnx

FAMILIES = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "gaussian_blur", "glass_blur", "zoom_blur", "motion_blur"),
    "weather": ("fog", "frost", "snow", "brightness", "spatter"),
    "digital": ("elastic_transform", "pixelate", "jpeg_compression", "contrast", "saturate"),
}
FAMILY = {name: family for family, names in FAMILIES.items() for name in names}
# The corruptions of the synthetic study, and those that were not looked at until the end.
TWELVE = (
    "defocus_blur", "elastic_transform", "fog", "frost", "gaussian_blur", "gaussian_noise",
    "glass_blur", "impulse_noise", "shot_noise", "spatter", "speckle_noise", "zoom_blur",
)  # fmt: skip
FEWER = 3000
UNSEEN = ("jpeg_compression", "motion_blur", "snow")
ON_IMAGENET = (*TWELVE, "pixelate")
CIFAR = "mosaic:{data}/cifar10/test.webp?tile=32&labels={data}/cifar10/labels.npz:test"
NATURAL = (
    "mosaic:{data}/cifar10-natural-shift/tinyimagenet_cifar10classes.webp?tile=32"
    "&labels={data}/cifar10-natural-shift/meta.npz:labels"
)
IMAGENET = "imagenet:{data}/imagenet-val-2000"


def resnet32(data: Path, folder: Path) -> Network:
    """ResNet-32 for CIFAR-10."""
    weights = data / "cifar10-resnet-weights" / "resnet32-d509ac18.th"
    model = sc.models.as_model(f"cifar-resnet:32?weights={weights}")
    file = folder / "resnet32.onnx"
    to_onnx(model.module, file, side=32)
    options = "mean=0.485,0.456,0.406&std=0.229,0.224,0.225&batch_size=256"
    return Network(weights, file, "torch.onnx.export of cifar-resnet:32", options)


def banks(names: tuple[str, ...], data: Path, runs: Path) -> dict[str, sc.SurrogateBank]:
    """The bank of each network, made where it is not there yet."""
    made = {}
    for name in names:
        folder = runs / "beyond" / name
        if (folder / "bank.json").exists():
            made[name] = sc.SurrogateBank.load(folder)
            continue
        if name == "efficientnet-lite0":
            network, images, corruptions = lite0(runs), IMAGENET, ON_IMAGENET
        else:
            build = resnet20 if name == "resnet20" else resnet32
            network, images, corruptions = build(data, runs), CIFAR, tuple(FAMILY)
        opened = sc.datasets.as_image_set(images.format(data=data))
        if name == "resnet32":
            opened = opened.subset(np.arange(FEWER))
        made[name] = sc.SurrogateBank.synthesize(
            network.spec,
            opened,
            corruption=list(corruptions),
            out=folder,
            cache=runs / "cache",
            features="none",
        )
    return made


def natural(data: Path, runs: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """ResNet-20 on the natural shift of CIFAR-10: all images, and those of plain classes."""
    scores = sc.score(resnet20(data, runs).spec, NATURAL.format(data=data))
    with np.load(data / "cifar10-natural-shift" / "meta.npz", allow_pickle=False) as meta:
        strict = meta["strict"].astype(bool)
    logits, labels = scores.logits(), scores.labels
    return {
        "tiny-imagenet": (logits, labels),
        "tiny-imagenet-strict": (logits[strict], labels[strict]),
    }
