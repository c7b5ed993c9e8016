"""Office-Caltech10: the ten classes that Office-31 and Caltech-256 share (Gong et al., 2012)."""

from __future__ import annotations

import os

from shiftcal.datasets.about import About, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._domain_folders import DomainFolders

_COUNTS = {"amazon": 958, "Caltech": 1123, "dslr": 157, "webcam": 295}
# fmt: off
_CLASSES = (
    "backpack", "bike", "calculator", "headphones", "keyboard", "laptop_computer", "monitor",
    "mouse", "mug", "projector",
)
# fmt: on
_LAYOUT = DomainFolders(
    "Office-Caltech10",
    tuple(_COUNTS),
    _CLASSES,
    inside=("office_caltech_10", "office-caltech10", "Original_images"),
    also={"laptop": "laptop_computer"},
)

ABOUT = About(
    title="Office-Caltech10",
    n_classes=10,
    homepage="https://doi.org/10.1109/CVPR.2012.6247911",
    licence="none stated; research use",
    parts=tuple(Part(name, {"domain": name}, n) for name, n in _COUNTS.items()),
    by_hand=(
        "No official archive of the images exists: take the ten shared classes of Office-31 "
        "(amazon, dslr, webcam) and of Caltech-256, and put them into folders "
        "<domain>/<class>/ with the domains amazon, Caltech, dslr and webcam."
    ),
)


def office_caltech10(root: str | os.PathLike[str], *, domain: str | None = None) -> ImageSet:
    """Office-Caltech10, ``<domain>/<class>/<file>``.

    Classes are sorted: backpack, bike, calculator, headphones, keyboard, laptop_computer, monitor,
    mouse, mug, projector; images by path. ``fields["domain"]`` is the domain of each.

    Args:
        root: The folder of the domains, or the one that ``office_caltech_10`` is in. Capitals and
            ``_`` in names do not matter: ``caltech`` and ``back_pack`` are found too.
        domain: ``"amazon"``, ``"Caltech"``, ``"dslr"`` or ``"webcam"``; all of them in this order
            by default.

    Raises:
        MissingData: If no domain that is asked for is there.
        FileError: If one of them is not, or a folder is not that of a class.
    """
    return _LAYOUT.load(root, domain)
