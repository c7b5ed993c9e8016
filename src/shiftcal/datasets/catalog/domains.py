"""Office-Home, Office-Caltech10, PACS and VisDA-2017."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath

from shiftcal.checks import check_choice
from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.datasets.catalog.formats import keep_existing, read_list
from shiftcal.datasets.image_files import FileImages, find_images
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import FileError, MissingData

# Files relative to the folder of a domain, and the class of each.
Entries = tuple[Sequence[str | os.PathLike[str]], Sequence[int]]


def _loose(name: str) -> str:
    """A name without what copies spell in different ways."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


@dataclass(frozen=True)
class _Domains:
    """A data set of several domains, ``<domain>/<class>/<file>``.

    Capitals, spaces, ``_`` and ``-`` in the names of folders do not matter. A copy need not have
    every class: indices are those of the whole data set.

    Attributes:
        title: Its name in print.
        domains: Names of the domains, in their order.
        classes: Names of the classes, in the order of their indices.
        inside: Folders below the root that the domains may be in.
        also: Other names of class folders, as :func:`_loose` spells them, and what they mean.
    """

    title: str
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    inside: tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)

    def load(
        self,
        root: str | os.PathLike[str],
        domain: str | None,
        *,
        entries: Callable[[str, Path], Entries] | None = None,
        split: str = "",
    ) -> FileImages:
        """One domain, or all of them one after the other.

        Args:
            root: The folder of the domains.
            domain: Its name; ``None`` is all.
            entries: Gives the files and classes of a domain and its folder; default: every image
                in the folders of the classes, sorted.
            split: What to add to the name of the set.
        """
        files: list[Path] = []
        labels: list[int] = []
        fields: list[str] = []
        folders = self._find(Path(root), domain)
        for name, folder in folders.items():
            names, classes = entries(name, folder) if entries else self.by_folder(folder)
            files += [Path(folder.name, file) for file in names]
            labels += classes
            fields += [name] * len(classes)
        words = (self.title, next(iter(folders)) if len(folders) == 1 else "", split)
        return FileImages(
            next(iter(folders.values())).parent,
            files,
            name=" ".join(filter(None, words)),
            labels=labels,
            classes=self.classes,
            fields={"domain": fields},
        )

    def _find(self, base: Path, domain: str | None) -> dict[str, Path]:
        """The folders of the domains that are asked for."""
        known = {_loose(name): name for name in self.domains}
        wanted: Sequence[str] = self.domains
        if domain is not None:
            name = known.get(_loose(domain), domain) if isinstance(domain, str) else domain
            wanted = [check_choice(name, self.domains, name="domain")]
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
                "domains, or say domain= for one that is there."
            )
        return {name: found[name] for name in wanted}

    def by_folder(self, folder: Path) -> Entries:
        """Every image of a domain, sorted, with the class by the folder it is in."""
        files = find_images(folder)
        return files, [self.index_of(folder, file) for file in files]

    def index_of(self, folder: Path, file: PurePath) -> int:
        """The class of an image by the first folder of its path."""
        index = self._indices.get(_loose(file.parts[0])) if len(file.parts) > 1 else None
        if index is None:
            raise FileError(
                f"{folder / file} is not in the folder of a class of {self.title}, which are "
                f"{', '.join(self.classes)}. Move it away."
            )
        return index

    @cached_property
    def _indices(self) -> dict[str, int]:
        indices = {_loose(name): index for index, name in enumerate(self.classes)}
        return indices | {name: self.classes.index(means) for name, means in self.also.items()}

    def check_labels(
        self, file: Path, folder: Path, paths: Sequence[PurePath], labels: list[int]
    ) -> None:
        """Reject a list whose labels are not those of the folders."""
        for path, label in zip(paths, labels, strict=True):
            index = self.index_of(folder, path)
            if index != label:
                raise FileError(
                    f"{file} gives {path} another label than its folder, class "
                    f"{self.classes[index]}. Download the list again."
                )


# --------------------------------------------------------------------------------------
# Office-Home: 65 things of office and home in four domains (Venkateswara et al., 2017).
# --------------------------------------------------------------------------------------

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
_LAYOUT = _Domains("Office-Home", tuple(_COUNTS), _CLASSES, inside=("OfficeHomeDataset_10072016",))


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


OFFICE_HOME = About(
    load=office_home,
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


# --------------------------------------------------------------------------------------
# Office-Caltech10: the ten classes that Office-31 and Caltech-256 share (Gong et al., 2012).
# --------------------------------------------------------------------------------------

_OFFICE_CALTECH10_COUNTS = {"amazon": 958, "Caltech": 1123, "dslr": 157, "webcam": 295}
# fmt: off
_OFFICE_CALTECH10_CLASSES = (
    "backpack", "bike", "calculator", "headphones", "keyboard", "laptop_computer", "monitor",
    "mouse", "mug", "projector",
)
# fmt: on
_OFFICE_CALTECH10_LAYOUT = _Domains(
    "Office-Caltech10",
    tuple(_OFFICE_CALTECH10_COUNTS),
    _OFFICE_CALTECH10_CLASSES,
    inside=("office_caltech_10", "office-caltech10", "Original_images"),
    also={"laptop": "laptop_computer"},
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
    return _OFFICE_CALTECH10_LAYOUT.load(root, domain)


OFFICE_CALTECH10 = About(
    load=office_caltech10,
    title="Office-Caltech10",
    n_classes=10,
    homepage="https://doi.org/10.1109/CVPR.2012.6247911",
    licence="none stated; research use",
    parts=tuple(Part(name, {"domain": name}, n) for name, n in _OFFICE_CALTECH10_COUNTS.items()),
    by_hand=(
        "No official archive of the images exists: take the ten shared classes of Office-31 "
        "(amazon, dslr, webcam) and of Caltech-256, and put them into folders "
        "<domain>/<class>/ with the domains amazon, Caltech, dslr and webcam."
    ),
)


# --------------------------------------------------------------------------------------
# PACS: seven classes as photos, paintings, cartoons and sketches (Li et al., 2017).
# --------------------------------------------------------------------------------------

_PACS_COUNTS = {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929}
_SPLITS = ("train", "crossval", "test")
_PACS_LAYOUT = _Domains(
    "PACS",
    tuple(_PACS_COUNTS),
    ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
    inside=("kfold", "PACS", "PACS/kfold", "images", "raw_images", "pacs_data"),
)
# Where copies keep the official lists; the last is the name of the makers' own folder.
_LISTS_IN = ("", "pacs_label", "splits", "Train val splits and h5py files pre-read")


def pacs(
    root: str | os.PathLike[str], *, domain: str | None = None, split: str | None = None
) -> ImageSet:
    """PACS, ``<domain>/<class>/<file>``.

    Classes are sorted: dog, elephant, giraffe, guitar, horse, house, person. Images are sorted by
    path, or in the order of the official list. ``fields["domain"]`` is the domain of each.

    Args:
        root: The folder of the domains, or the one that ``kfold`` is in.
        domain: ``"art_painting"``, ``"cartoon"``, ``"photo"`` or ``"sketch"``; all of them in this
            order by default.
        split: ``"train"``, ``"crossval"`` or ``"test"`` of the official lists, called
            ``<domain>_<split>_kfold.txt``, which are looked for in the root, ``pacs_label`` and
            ``splits``; ``"test"`` lists the whole domain. Everything by default, without a list.

    Raises:
        MissingData: If no domain that is asked for is there.
        FileError: If one of them or a list is missing, a folder is not that of a class, or a label
            (they count from 1) is not the one of its folder.

    Warns:
        InputWarning: If listed images are not there; they are left out.
    """
    if split is None:
        return _PACS_LAYOUT.load(root, domain)
    check_choice(split, _SPLITS, name="split")

    def entries(name: str, folder: Path) -> Entries:
        file = f"{name}_{split}_kfold.txt"
        places = [
            above / inside / file
            for above in (Path(root), folder.parent, folder.parent.parent)
            for inside in _LISTS_IN
        ]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise FileError(
                f"{file} is not in {root}, nor in its folders {', '.join(_LISTS_IN[1:])}. Download "
                "the official lists, or leave split out to take every image."
            )
        paths, labels = read_list(found, first=1)
        strange = next((path for path in paths if path.parts[0] != name), None)
        if strange is not None:
            raise FileError(
                f"{found} must list paths such as {name}/dog/name.jpg; got {str(strange)!r}."
            )
        within = [path.relative_to(name) for path in paths]
        _PACS_LAYOUT.check_labels(found, folder, within, labels)
        return keep_existing(found, folder, within, labels)

    return _PACS_LAYOUT.load(root, domain, entries=entries, split=split)


PACS = About(
    load=pacs,
    title="PACS",
    n_classes=7,
    homepage="https://dali-dl.github.io/project_iccv2017.html",
    licence="none stated; research use",
    parts=tuple(Part(name, {"domain": name}, n) for name, n in _PACS_COUNTS.items()),
    by_hand=(
        "Download the images (and, for the official splits, the *_kfold.txt lists) from the "
        "Google Drive link at https://dali-dl.github.io/project_iccv2017.html, unpack them, and "
        "name the folder that holds art_painting, cartoon, photo and sketch."
    ),
)


def _listed(root: Path, domain: str, split: str, folder: Path) -> Entries:
    file = _find_list(root, f"{domain}_{split}_kfold.txt", folder)
    paths, labels = read_list(file, first=1)
    for path, label in zip(paths, labels, strict=True):
        if len(path.parts) != 3 or path.parts[0] != domain:
            raise FileError(
                f"{file} must list paths such as {domain}/dog/name.jpg; got {str(path)!r}. "
                "Fetch the list again."
            )
        index = _PACS_LAYOUT.index_of(folder, Path(*path.parts[1:]))
        if index != label:
            raise FileError(
                f"{file} gives {path} the label {label + 1}, and its folder is class {index + 1}. "
                "Official lists count from 1: fetch them again."
            )
    within = [path.relative_to(domain) for path in paths]
    return keep_existing(file, folder, within, labels)


def _find_list(root: Path, name: str, folder: Path) -> Path:
    above = (root, folder.parent, folder.parent.parent)
    for place in above:
        for inside in _LISTS_IN:
            if (file := place / inside / name).is_file():
                return file
    raise FileError(
        f"{name} is not in {root}, nor in its folders {', '.join(map(repr, _LISTS_IN[1:]))}. "
        "Fetch the official lists, or leave split out to take every image."
    )


# --------------------------------------------------------------------------------------
# VisDA-2017, classification: synthetic images to train on, real ones to adapt to (Peng et al.).
# --------------------------------------------------------------------------------------

_VISDA2017_COUNTS = {"train": 152397, "validation": 55388}
# fmt: off
_VISDA_CLASSES = (
    "aeroplane", "bicycle", "bus", "car", "horse", "knife", "motorcycle", "person", "plant",
    "skateboard", "train", "truck",
)
# fmt: on
_VISDA2017_LAYOUT = _Domains(
    "VisDA-2017",
    tuple(_VISDA2017_COUNTS),
    _VISDA_CLASSES,
    inside=("visda2017", "visda-2017", "VisDA-2017"),
)
_ADDRESS = "https://csr.bu.edu/ftp/visda17/clf"


def visda2017(root: str | os.PathLike[str], *, domain: str | None = None) -> ImageSet:
    """VisDA-2017, ``<domain>/<class>/<file>``.

    Classes are sorted: aeroplane, bicycle, bus, car, horse, knife, motorcycle, person, plant,
    skateboard, train, truck. Where ``<domain>/image_list.txt`` is, images are in its order, and
    its labels must be those of the folders; otherwise they are sorted by path.
    ``fields["domain"]`` is the domain of each.

    Args:
        root: The folder that ``train.tar`` and ``validation.tar`` were unpacked in.
        domain: ``"train"``, 152,397 synthetic images, or ``"validation"``, 55,388 real ones; both
            in this order by default.

    Raises:
        MissingData: If no domain that is asked for is there.
        FileError: If one of them is missing, a folder is not that of a class, or the list says
            something else than the folders.

    Warns:
        InputWarning: If listed images are not there; they are left out.
    """

    def entries(_: str, folder: Path) -> Entries:
        file = folder / "image_list.txt"
        if not file.exists():
            return _VISDA2017_LAYOUT.by_folder(folder)
        paths, labels = read_list(file)
        _VISDA2017_LAYOUT.check_labels(file, folder, paths, labels)
        return keep_existing(file, folder, paths, labels)

    return _VISDA2017_LAYOUT.load(root, domain, entries=entries)


VISDA2017 = About(
    load=visda2017,
    title="VisDA-2017",
    n_classes=12,
    homepage="http://ai.bu.edu/visda-2017/",
    licence="non-commercial research and education, no redistribution",
    parts=tuple(Part(name, {"domain": name}, n) for name, n in _VISDA2017_COUNTS.items()),
    downloads=tuple(
        Download(f"{_ADDRESS}/{name}.tar", f"{name}.tar") for name in _VISDA2017_COUNTS
    ),
)
