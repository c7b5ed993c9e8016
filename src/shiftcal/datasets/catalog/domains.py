"""Office-Home, Office-Caltech10, PACS and VisDA-2017: images as ``<domain>/<class>/<file>``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shiftcal.checks import check_choice
from shiftcal.datasets.catalog import About, Download, Root, inside
from shiftcal.datasets.image_files import FileImages, find_images
from shiftcal.errors import FileError, MissingData


def _about(
    title: str, n_classes: int, counts: Mapping[str, int], folder: str, **facts: Any
) -> About:
    """What is known of a data set of several domains, and its loader.

    Args:
        title: Its name in print.
        n_classes: Number of classes, each with a folder in every domain.
        counts: Number of images of every domain, in their order.
        folder: The folder that its archive unpacks to.
        **facts: More of its record.
    """

    def load(root: Root, *, domain: str | None = None) -> FileImages:
        """One domain, or all of them in order; images by path, their domain as a field.

        Args:
            root: The folder of the domains, or the one it is in. Capitals, spaces, ``_`` and ``-``
                in their names do not matter. The classes are their folders, sorted.
            domain: Its name; default: all.

        Raises:
            MissingData: If a domain is not there.
            FileError: If its folders are not those of the classes.
        """
        known = {_loose(name): name for name in counts}
        wanted = list(counts)
        if domain is not None:
            wanted = [check_choice(known.get(_loose(domain), domain), wanted, name="domain")]
        base = inside(root, folder)
        found = {
            known[_loose(entry.name)]: entry
            for entry in (sorted(base.iterdir()) if base.is_dir() else ())
            if entry.is_dir() and _loose(entry.name) in known
        }
        if missing := [name for name in wanted if name not in found]:
            raise MissingData(
                f"{base} has no folder {', '.join(missing)} of {title}; it has "
                f"{', '.join(found) or 'no domain of it'}."
            )
        pairs = [
            (name, found[name].name / path) for name in wanted for path in find_images(found[name])
        ]
        classes = sorted({path.parts[1] for _, path in pairs})
        if len(classes) != n_classes or any(len(path.parts) < 3 for _, path in pairs):
            raise FileError(
                f"{base} must have images in the folders of {n_classes} classes of {title} in "
                f"every domain; it has {', '.join(classes)}."
            )
        return FileImages(
            base,
            [path for _, path in pairs],
            name=f"{title} {wanted[0]}" if len(wanted) == 1 else title,
            labels=[classes.index(path.parts[1]) for _, path in pairs],
            classes=classes,
            fields={"domain": [name for name, _ in pairs]},
        )

    return About(load, title, n_classes, counts=counts, option="domain", **facts)


def _loose(name: str) -> str:
    """A name without what copies spell in different ways."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


# 65 things of office and home (Venkateswara et al., 2017).
OFFICE_HOME = _about(
    "Office-Home",
    65,
    {"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357},
    "OfficeHomeDataset_10072016",
    homepage="https://www.hemanthdv.org/officeHomeDataset.html",
    licence="research use under the makers' fair use notice",
    by_hand=(
        "Download OfficeHomeDataset_10072016.zip from the Google Drive link at "
        "https://www.hemanthdv.org/officeHomeDataset.html, unpack it, and name the folder that "
        "holds Art, Clipart, Product and Real World."
    ),
)
# The ten classes that Office-31 and Caltech-256 share (Gong et al., 2012).
OFFICE_CALTECH10 = _about(
    "Office-Caltech10",
    10,
    {"amazon": 958, "Caltech": 1123, "dslr": 157, "webcam": 295},
    "office_caltech_10",
    homepage="https://doi.org/10.1109/CVPR.2012.6247911",
    licence="none stated; research use",
    by_hand=(
        "No official archive of the images exists: take the ten shared classes of Office-31 "
        "(amazon, dslr, webcam) and of Caltech-256, and put them into folders "
        "<domain>/<class>/ with the domains amazon, Caltech, dslr and webcam."
    ),
)
# Seven classes as photos, paintings, cartoons and sketches (Li et al., 2017).
PACS = _about(
    "PACS",
    7,
    {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929},
    "kfold",
    homepage="https://dali-dl.github.io/project_iccv2017.html",
    licence="none stated; research use",
    by_hand=(
        "Download the images from the Google Drive link at "
        "https://dali-dl.github.io/project_iccv2017.html, unpack them, and name the folder that "
        "holds art_painting, cartoon, photo and sketch."
    ),
)
# Synthetic images to train on, real ones to adapt to (Peng et al., 2017).
VISDA2017 = _about(
    "VisDA-2017",
    12,
    {"train": 152397, "validation": 55388},
    "visda2017",
    homepage="http://ai.bu.edu/visda-2017/",
    licence="non-commercial research and education, no redistribution",
    downloads=tuple(
        Download(f"https://csr.bu.edu/ftp/visda17/clf/{name}.tar")
        for name in ("train", "validation")
    ),
)
