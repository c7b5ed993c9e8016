"""A data set of toys that nobody published: its record, copies on disk and in archives."""

from __future__ import annotations

import hashlib
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

from photos import photo
from PIL import Image

from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.datasets.image_files import FileImages
from shiftcal.errors import MissingData
from shiftcal.registry import DATA_SETS


def toys(root, *, split="train"):
    """Toys from ``<split>/<class>/<file>``, or from what a list names."""
    folder = Path(root, "toys", split) if Path(root, "toys").is_dir() else Path(root, split)
    if not folder.is_dir():
        raise MissingData(f"{folder} does not exist.")
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if (folder / "list.txt").exists():
        files = (folder / "list.txt").read_text().split()
    else:
        files = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*.png"))
    labels = [classes.index(Path(file).parent.name) for file in files]
    return FileImages(folder, files, name=f"Toys {split}", labels=labels, classes=classes)


TOYS = About(
    load=toys,
    title="Toys",
    n_classes=3,
    homepage="https://example.org/toys",
    licence="free",
    parts=(
        Part("train", {"split": "train"}, n=12, per_class=4),
        Part("test", {"split": "test"}, n=6, per_class=2),
    ),
    downloads=(Download("https://example.org/toys.tar.gz", "toys.tar.gz", size=1),),
)
TOYS_BY_HAND = replace(
    TOYS, title="Other Toys", downloads=(), by_hand="Ask the maker of the toys for them."
)
ENTRIES = {"toys": "toy_sets:TOYS", "toys-by-hand": "toy_sets:TOYS_BY_HAND"}


def use_toys(monkeypatch):
    """Have the toys in the place of the published data sets."""
    monkeypatch.setattr(DATA_SETS, "entries", ENTRIES)


def about_toys(monkeypatch, **facts):
    """Have other facts known of the toys."""
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "TOYS", replace(module.TOYS, **facts))


def write_toys(root):
    """A complete copy: ``toys/<split>/<class>/<file>``."""
    for split, n in (("train", 4), ("test", 2)):
        for name in ("ball", "car", "doll"):
            folder = Path(root, "toys", split, name)
            folder.mkdir(parents=True)
            for index in range(n):
                Image.fromarray(photo(12, 10)).save(folder / f"{index}.png")
    return Path(root)


def toy_archive(folder):
    """The toys as a ``.tar.gz``: its bytes."""
    write_toys(folder)
    with tarfile.open(folder / "made.tar.gz", "w:gz") as made:
        made.add(folder / "toys", "toys")
    return (folder / "made.tar.gz").read_bytes()


def source_of(url, body, *, file="toys.tar.gz", unpack=True, size=0):
    """The facts of a file with that content."""
    return Download(url, file, f"md5:{hashlib.md5(body).hexdigest()}", unpack=unpack, size=size)
