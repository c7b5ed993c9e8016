"""Office-Home: 65 things of office and home in four domains (Venkateswara et al., 2017)."""

from __future__ import annotations

import os

from shiftcal.datasets.about import About, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._domain_folders import DomainFolders

_COUNTS = {"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357}
# fmt: off
# In the order of their bytes, as most loaders sort folders: TV comes before Table.
_CLASSES = (
    "Alarm_Clock", "Backpack", "Batteries", "Bed", "Bike", "Bottle", "Bucket", "Calculator",
    "Calendar", "Candles", "Chair", "Clipboards", "Computer", "Couch", "Curtains", "Desk_Lamp",
    "Drill", "Eraser", "Exit_Sign", "Fan", "File_Cabinet", "Flipflops", "Flowers", "Folder",
    "Fork", "Glasses", "Hammer", "Helmet", "Kettle", "Keyboard", "Knives", "Lamp_Shade", "Laptop",
    "Marker", "Monitor", "Mop", "Mouse", "Mug", "Notebook", "Oven", "Pan", "Paper_Clip", "Pen",
    "Pencil", "Postit_Notes", "Printer", "Push_Pin", "Radio", "Refrigerator", "Ruler", "Scissors",
    "Screwdriver", "Shelf", "Sink", "Sneakers", "Soda", "Speaker", "Spoon", "TV", "Table",
    "Telephone", "ToothBrush", "Toys", "Trash_Can", "Webcam",
)
# fmt: on
_LAYOUT = DomainFolders(
    "Office-Home", tuple(_COUNTS), _CLASSES, inside=("OfficeHomeDataset_10072016",)
)

ABOUT = About(
    title="Office-Home",
    n_classes=65,
    homepage="https://www.hemanthdv.org/officeHomeDataset.html",
    licence="research use under the makers' fair use notice",
    parts=tuple(Part(name, {"domain": name}, n) for name, n in _COUNTS.items()),
    by_hand=(
        "Download OfficeHomeDataset_10072016.zip from the Google Drive link at "
        "https://www.hemanthdv.org/officeHomeDataset.html, unpack it, and name the folder that "
        "holds Art, Clipart, Product and Real World."
    ),
)


def office_home(root: str | os.PathLike[str], *, domain: str | None = None) -> ImageSet:
    """Office-Home, ``<domain>/<class>/<file>``.

    Classes are sorted by the bytes of their names, as most loaders do it, so that ``TV`` comes
    before ``Table``; images by path. ``fields["domain"]`` is the domain of each.

    Args:
        root: The folder of the domains, or the one that ``OfficeHomeDataset_10072016`` is in.
            ``Real World`` may also be spelled ``Real_World`` or ``RealWorld``.
        domain: ``"Art"``, ``"Clipart"``, ``"Product"`` or ``"Real World"``; all of them in this
            order by default.

    Raises:
        MissingData: If no domain that is asked for is there.
        FileError: If one of them is not, or a folder is not that of a class.
    """
    return _LAYOUT.load(root, domain)
