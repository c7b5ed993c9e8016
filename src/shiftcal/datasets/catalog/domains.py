"""Office-Home, Office-Caltech10, PACS and VisDA-2017: images as ``<domain>/<class>/<file>``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shiftcal.checks import check_choice
from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.datasets.image_files import FileImages, find_images
from shiftcal.errors import FileError, MissingData


def _loose(name: str) -> str:
    """A name without what copies spell in different ways."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


@dataclass(frozen=True)
class _Domains:
    """A data set of several domains.

    Capitals, spaces, ``_`` and ``-`` in the names of folders do not matter. A copy need not have
    every class: indices are those of the whole data set.

    Attributes:
        title: Its name in print.
        counts: Number of images of every domain, in their order.
        classes: Names of the classes, in the order of their indices.
        inside: Folders below the root that the domains may be in.
        also: Other names of class folders, as :func:`_loose` spells them, and what they mean.
    """

    title: str
    counts: Mapping[str, int]
    classes: tuple[str, ...]
    inside: tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)

    def about(self, **facts: Any) -> About:
        """What is known of it; the domains are its parts."""
        parts = tuple(Part(name, {"domain": name}, n) for name, n in self.counts.items())
        return About(self.load, self.title, len(self.classes), parts=parts, **facts)

    def load(self, root: str | os.PathLike[str], *, domain: str | None = None) -> FileImages:
        """One domain, or all of them in order; images by path, their domain as a field.

        Args:
            root: The folder of the domains, or the one it is in.
            domain: Its name; default: all.

        Raises:
            MissingData: If no domain that is asked for is there.
            FileError: If one of them is not, or a folder is not that of a class.
        """
        folders = self._find(Path(root), domain)
        indices = {_loose(name): index for index, name in enumerate(self.classes)}
        indices |= {name: self.classes.index(means) for name, means in self.also.items()}
        files: list[Path] = []
        labels: list[int] = []
        domains: list[str] = []
        for name, folder in folders.items():
            for file in find_images(folder):
                label = indices.get(_loose(file.parts[0])) if len(file.parts) > 1 else None
                if label is None:
                    raise FileError(
                        f"{folder / file} is not in the folder of a class of {self.title}, which "
                        f"are {', '.join(self.classes)}. Move it away."
                    )
                files.append(Path(folder.name, file))
                labels.append(label)
                domains.append(name)
        return FileImages(
            next(iter(folders.values())).parent,
            files,
            name=f"{self.title} {next(iter(folders))}" if len(folders) == 1 else self.title,
            labels=labels,
            classes=self.classes,
            fields={"domain": domains},
        )

    def _find(self, base: Path, domain: str | None) -> dict[str, Path]:
        """The folders of the domains that are asked for."""
        known = {_loose(name): name for name in self.counts}
        wanted = list(self.counts)
        if domain is not None:
            name = known.get(_loose(str(domain)), domain)
            wanted = [check_choice(name, wanted, name="domain")]
        found: dict[str, Path] = {}
        for place in (base, *(base / name for name in self.inside)):
            for folder in sorted(place.iterdir()) if place.is_dir() and not found else ():
                name = known.get(_loose(folder.name), "")
                if name and folder.is_dir() and found.setdefault(name, folder) != folder:
                    raise FileError(
                        f"{place} must hold one folder for {name}; it holds {found[name].name!r} "
                        f"and {folder.name!r}. Move one of them away."
                    )
        if missing := [name for name in wanted if name not in found]:
            kind = MissingData if len(missing) == len(wanted) else FileError
            raise kind(
                f"{base} has no folder {', '.join(map(repr, missing))} of {self.title}; it has "
                f"{', '.join(map(repr, found)) or 'no domain of it'}. Name the folder of the "
                "domains, or set domain= to one that is there."
            )
        return {name: found[name] for name in wanted}


# fmt: off
# 65 things of office and home (Venkateswara et al., 2017). The classes are in the order of their
# bytes, as most loaders sort folders: TV comes before Table.
_OFFICE_HOME = _Domains(
    "Office-Home",
    {"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357},
    (
        "Alarm_Clock", "Backpack", "Batteries", "Bed", "Bike", "Bottle", "Bucket", "Calculator",
        "Calendar", "Candles", "Chair", "Clipboards", "Computer", "Couch", "Curtains", "Desk_Lamp",
        "Drill", "Eraser", "Exit_Sign", "Fan", "File_Cabinet", "Flipflops", "Flowers", "Folder",
        "Fork", "Glasses", "Hammer", "Helmet", "Kettle", "Keyboard", "Knives", "Lamp_Shade",
        "Laptop", "Marker", "Monitor", "Mop", "Mouse", "Mug", "Notebook", "Oven", "Pan",
        "Paper_Clip", "Pen", "Pencil", "Postit_Notes", "Printer", "Push_Pin", "Radio",
        "Refrigerator", "Ruler", "Scissors", "Screwdriver", "Shelf", "Sink", "Sneakers", "Soda",
        "Speaker", "Spoon", "TV", "Table", "Telephone", "ToothBrush", "Toys", "Trash_Can",
        "Webcam",
    ),
    inside=("OfficeHomeDataset_10072016",),
)
# The ten classes that Office-31 and Caltech-256 share (Gong et al., 2012).
_OFFICE_CALTECH10 = _Domains(
    "Office-Caltech10",
    {"amazon": 958, "Caltech": 1123, "dslr": 157, "webcam": 295},
    (
        "backpack", "bike", "calculator", "headphones", "keyboard", "laptop_computer", "monitor",
        "mouse", "mug", "projector",
    ),
    inside=("office_caltech_10", "office-caltech10", "Original_images"),
    also={"laptop": "laptop_computer"},
)
# Seven classes as photos, paintings, cartoons and sketches (Li et al., 2017).
_PACS = _Domains(
    "PACS",
    {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929},
    ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
    inside=("kfold", "PACS", "PACS/kfold", "images", "raw_images", "pacs_data"),
)
# Synthetic images to train on, real ones to adapt to (Peng et al., 2017).
_VISDA2017 = _Domains(
    "VisDA-2017",
    {"train": 152397, "validation": 55388},
    (
        "aeroplane", "bicycle", "bus", "car", "horse", "knife", "motorcycle", "person", "plant",
        "skateboard", "train", "truck",
    ),
    inside=("visda2017", "visda-2017", "VisDA-2017"),
)
# fmt: on

OFFICE_HOME = _OFFICE_HOME.about(
    homepage="https://www.hemanthdv.org/officeHomeDataset.html",
    licence="research use under the makers' fair use notice",
    by_hand=(
        "Download OfficeHomeDataset_10072016.zip from the Google Drive link at "
        "https://www.hemanthdv.org/officeHomeDataset.html, unpack it, and name the folder that "
        "holds Art, Clipart, Product and Real World."
    ),
)
OFFICE_CALTECH10 = _OFFICE_CALTECH10.about(
    homepage="https://doi.org/10.1109/CVPR.2012.6247911",
    licence="none stated; research use",
    by_hand=(
        "No official archive of the images exists: take the ten shared classes of Office-31 "
        "(amazon, dslr, webcam) and of Caltech-256, and put them into folders "
        "<domain>/<class>/ with the domains amazon, Caltech, dslr and webcam."
    ),
)
PACS = _PACS.about(
    homepage="https://dali-dl.github.io/project_iccv2017.html",
    licence="none stated; research use",
    by_hand=(
        "Download the images from the Google Drive link at "
        "https://dali-dl.github.io/project_iccv2017.html, unpack them, and name the folder that "
        "holds art_painting, cartoon, photo and sketch."
    ),
)
VISDA2017 = _VISDA2017.about(
    homepage="http://ai.bu.edu/visda-2017/",
    licence="non-commercial research and education, no redistribution",
    downloads=tuple(
        Download(f"https://csr.bu.edu/ftp/visda17/clf/{name}.tar", f"{name}.tar")
        for name in _VISDA2017.counts
    ),
)
