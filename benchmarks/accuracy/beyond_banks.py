"""Scores of whole networks on corrupted images, for ``beyond.py``: made once, kept in ``runs/``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.ndimage import affine_transform

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
# Banks of the first test images only.
FEWER = {"resnet32": 3000, "resnet20-half": 5120}
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
            build = resnet32 if name == "resnet32" else resnet20
            network, images, corruptions = build(data, runs), CIFAR, tuple(FAMILY)
        opened = sc.datasets.as_image_set(images.format(data=data))
        if name in FEWER:
            opened = opened.subset(np.arange(FEWER[name]))
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


# --------------------------------------------------------------------------------------
# Shifts unlike any corruption, made of CIFAR-10's test images, to develop on.
# --------------------------------------------------------------------------------------


def moved(matrix: object) -> Callable[[np.ndarray], np.ndarray]:
    """Images under a linear map around their centre, edges mirrored."""
    matrix = np.asarray(matrix, dtype=float)
    offset = 15.5 - matrix @ np.array([15.5, 15.5])

    def view(images: np.ndarray) -> np.ndarray:
        found = np.empty_like(images)
        for i, channel in np.ndindex(len(images), 3):
            pixels = images[i, :, :, channel].astype(np.float32)
            new = affine_transform(pixels, matrix, offset, order=1, mode="mirror")
            found[i, :, :, channel] = new.round().clip(0, 255)
        return found

    return view


def turned(degrees: float) -> Callable[[np.ndarray], np.ndarray]:
    a = np.deg2rad(degrees)
    return moved([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def cut(side: int) -> Callable[[np.ndarray], np.ndarray]:
    """A grey square somewhere."""

    def view(images: np.ndarray) -> np.ndarray:
        rng, found = np.random.default_rng(side), images.copy()
        for one in found:
            top, left = rng.integers(0, 32 - side, 2)
            one[top : top + side, left : left + side] = 127
        return found

    return view


def both(*steps: tuple[str, int]) -> Callable[[np.ndarray], np.ndarray]:
    """One corruption after another."""

    def view(images: np.ndarray) -> np.ndarray:
        for name, severity in steps:
            images = np.asarray(sc.corruptions.corrupt(images, name, severity=severity, seed=5))
        return images

    return view


VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{f"rotate {angle}": turned(angle) for angle in (15, 30, 60)},
    **{f"crop {side}": moved(np.eye(2) * side / 32) for side in (26, 20, 16)},
    **{f"shrink {factor}": moved(np.eye(2) * factor) for factor in (1.5, 2)},
    "squeeze": moved([[1, 0], [0, 1.6]]),
    "stretch": moved([[1, 0], [0, 0.55]]),
    "shear": moved([[1, 0.6], [0, 1]]),
    "flip": lambda images: images[:, ::-1],
    "transpose": lambda images: images.transpose(0, 2, 1, 3),
    "channels": lambda images: images[..., [2, 0, 1]],
    "invert": lambda images: 255 - images,
    "posterize": lambda images: (images // 86) * 127,
    "cut 12": cut(12),
    "cut 18": cut(18),
    "fog and speckle": both(("fog", 3), ("speckle_noise", 1)),
    "elastic and frost": both(("elastic_transform", 2), ("frost", 2)),
}
# Every row under one of these views, drawn at random: easy and hard rows in one target.
MIXED = {
    "all views": ("clean",) * 6 + tuple(VIEWS),
    "hard views": ("clean", "clean", "rotate 60", "crop 16", "crop 20", "flip", "transpose"),
    "flipped or not": ("clean", "flip", "transpose"),
    "small or not": ("clean", "shrink 2"),
    "cropped or not": ("clean", "crop 16"),
    "a few views": ("clean", "rotate 30", "crop 20", "shrink 2", "flip", "shear", "stretch"),
}


def unlike(data: Path, runs: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    """ResNet-20 on the first 5,000 test images: kind, name, logits."""
    file = runs / "beyond" / "unlike.npz"
    if not file.exists():
        spec = resnet20(data, runs).spec
        opened = sc.datasets.as_image_set(CIFAR.format(data=data)).subset(np.arange(5000))
        images = np.stack(opened.read(np.arange(5000)).images)
        made = {"clean": images} | {name: view(images) for name, view in VIEWS.items()}
        scored = {
            name: sc.score(spec, np.ascontiguousarray(each)).logits() for name, each in made.items()
        }
        np.savez(file, **scored)
    with np.load(file) as found:
        logits = {name: found[name] for name in ("clean", *VIEWS)}
    for name in VIEWS:
        yield "unlike", name, logits[name]
    rng = np.random.default_rng(3)
    for name, views in MIXED.items():
        which = rng.integers(0, len(views), 5000)
        stacked = np.stack([logits[view] for view in views])
        yield "mixed", name, stacked[which, np.arange(5000)]
