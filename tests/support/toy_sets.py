"""Copies of the toys on disk and in archives, and the catalog that knows them."""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import replace
from pathlib import Path

from photos import photo
from PIL import Image
from toy_catalog import toys

from shiftcal import datasets
from shiftcal.datasets.about import Download


def use_toys(monkeypatch):
    """Have the toys in the place of the published data sets."""
    monkeypatch.setattr(datasets._CATALOG, "package", "toy_catalog")


def about_toys(monkeypatch, **facts):
    """Have other facts known of the toys."""
    monkeypatch.setattr(toys, "ABOUT", replace(toys.ABOUT, **facts))


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
    return Download(url, file, hashlib.md5(body).hexdigest(), unpack=unpack, size=size)
