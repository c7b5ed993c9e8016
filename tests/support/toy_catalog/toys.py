"""Eighteen pictures of toys in class folders."""

from __future__ import annotations

from pathlib import Path

from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.containers.files import FileImages
from shiftcal.errors import MissingData

ABOUT = About(
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
