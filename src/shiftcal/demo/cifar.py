"""CIFAR-10 and a ResNet-20, for those who have them."""

from __future__ import annotations

from pathlib import Path

from shiftcal import datasets
from shiftcal.datasets import ImageSet
from shiftcal.datasets.catalog._cifar_names import CLASSES
from shiftcal.datasets.containers.mosaic import mosaic
from shiftcal.datasets.splits import calibration_split
from shiftcal.demo.subject import Subject, Target
from shiftcal.errors import FileError, MissingData
from shiftcal.models import as_model
from shiftcal.models.spec import Spec

# Images of the test set that are calibrated on, and as many others that are new.
CALIBRATED_ON = 1000
_CORRUPTIONS = ("brightness", "contrast", "gaussian_noise", "pixelate")
_TARGETS = (
    Target("frost", "new images under frost, which the bank does not have", "frost", 5),
    Target("mixture", "a mixture: every second of them under frost", "frost", 5, mixture=True),
    Target("warped", "new images, slightly warped: a mild shift", "elastic_transform", 1),
)
# Where things may be below the folder that is named.
_IMAGES, _WEIGHTS = ("cifar10", "."), ("cifar10-resnet-weights", ".")
_KINDS = ("th", "pt", "pth", "safetensors")
_TO_GET = {
    "images": "CIFAR-10: shiftcal data get cifar10 --to {folder}",
    "weights": "weights: resnet20-12fca82f.th from "
    "https://github.com/akamaster/pytorch_resnet_cifar10 (pretrained_models), into {folder}",
}


def cifar_subject(folder: Path) -> Subject:
    """The subject: a published ResNet-20, and test images of CIFAR-10.

    Args:
        folder: Holds CIFAR-10, as ``cifar-10-batches-py`` or as a mosaic ``test.webp`` with
            ``labels.npz``, itself or in ``cifar10``; and a file ``resnet20*`` of weights, itself or
            in ``cifar10-resnet-weights``. Training images are taken if they are there.

    Raises:
        MissingData: If something is not there; the message says what to get.
        MissingExtra: If torch is not installed, or Pillow for a mosaic.
        FileError: If what is there cannot be used.
    """
    if not folder.is_dir():
        raise MissingData(f"--data must name a folder; {folder} is none. {_needed(folder)}")
    images, weights = _images(folder, "test"), _weights(folder)
    if images is None or weights is None:
        lacking = [
            what for what, found in {"images": images, "weights": weights}.items() if found is None
        ]
        raise MissingData(f"{folder} lacks {' and '.join(lacking)}. {_needed(folder, *lacking)}")
    options = {"weights": str(weights), "features_from": "layer3"}
    model = as_model(str(Spec("cifar-resnet", "20", options)))
    model.classes = CLASSES
    assert images.labels is not None
    calibration, rest = calibration_split(images.labels, n=CALIBRATED_ON)
    some, _ = calibration_split(images.labels[rest], n=CALIBRATED_ON, seed=1)
    new = rest[some]
    return Subject(
        data="cifar10",
        things="images",
        model=model,
        made=f"ResNet-20 of {weights.name}",
        calibration=images.subset(calibration, name="CIFAR-10 to calibrate on"),
        new=images.read(new).images,
        new_labels=images.labels[new],
        train=_train(folder),
        corruptions=_CORRUPTIONS,
        table="cifar",
        targets=_TARGETS,
        remark=(
            "An example, not a measurement: bank and targets were picked from several that were "
            "tried, with labels in sight. shiftcal reproduce synthetic measures all corruptions."
        ),
    )


def _needed(folder: Path, *what: str) -> str:
    told = (_TO_GET[one].format(folder=folder) for one in what or _TO_GET)
    return f"To get what is needed: {'; '.join(told)}."


def _images(folder: Path, split: str) -> ImageSet | None:
    """The images of a split, wherever they are; ``None`` if they are nowhere.

    Raises:
        FileError: If some are there and cannot be used.
    """
    member = {"test": "test", "train": "train_batch_1"}[split]
    for name in _IMAGES:
        place = folder / name
        picture, labels = place / f"{member}.webp", place / "labels.npz"
        try:
            return datasets.load("cifar10", place, split=split)
        except MissingData:
            if picture.is_file() and labels.is_file():
                return mosaic(picture, tile=32, labels=f"{labels}:{member}", classes=CLASSES)
    return None


def _train(folder: Path) -> ImageSet | None:
    """As many images as are calibrated on, of those that the network was trained on."""
    try:
        found = _images(folder, "train")
    except FileError:  # nobody asked for them: whoever has test images only can go on
        return None
    if found is None or found.labels is None or len(found) <= CALIBRATED_ON:
        return found
    chosen, _ = calibration_split(found.labels, n=CALIBRATED_ON)
    return found.subset(chosen, name="CIFAR-10 trained on")


def _weights(folder: Path) -> Path | None:
    for name in _WEIGHTS:
        for kind in _KINDS:
            found = sorted((folder / name).glob(f"resnet20*.{kind}"))
            if found:
                return found[0]
    return None
