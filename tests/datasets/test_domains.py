"""Office-Home, Office-Caltech10, PACS and VisDA-2017: domains, classes, spellings of copies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from dataset_copies import write_pictures

from shiftcal.datasets import load
from shiftcal.errors import FileError, MissingData, UnknownName
from shiftcal.registry import DATA_SETS

DOMAINS = {
    "office-home": ["Art", "Clipart", "Product", "Real World"],
    "office-caltech10": ["amazon", "Caltech", "dslr", "webcam"],
    "pacs": ["art_painting", "cartoon", "photo", "sketch"],
    "visda2017": ["train", "validation"],
}
INSIDE = {
    "office-home": "OfficeHomeDataset_10072016",
    "office-caltech10": "office_caltech_10",
    "pacs": "kfold",
    "visda2017": "visda2017",
}


def paths(name):
    """An image of every class in every domain, whose folders are spelled in their own way."""
    folders = [domain.replace(" ", "_") for domain in DOMAINS[name]]
    return [f"{folder}/c{i:02d}/a.png" for folder in folders for i in range(n_classes(name))]


def n_classes(name):
    return DATA_SETS.get(name).n_classes


@pytest.mark.parametrize("name", DOMAINS)
def test_labels_are_places_among_the_sorted_classes(name, tmp_path):
    write_pictures(tmp_path, paths(name))
    images = load(name, tmp_path)
    domains = DOMAINS[name]
    assert images.ids(range(len(images))) == paths(name)
    assert images.labels.tolist() == list(range(n_classes(name))) * len(domains)
    assert list(dict.fromkeys(images.fields["domain"].tolist())) == domains
    assert list(DATA_SETS.get(name).counts) == domains
    alone = load(name, tmp_path, domain=domains[-1].lower().replace(" ", "_"))
    assert set(alone.fields["domain"]) == {domains[-1]}
    assert alone.name == f"{images.name} {domains[-1]}"
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / INSIDE[name]).symlink_to(tmp_path)
    assert len(load(name, tmp_path / "above", domain=domains[0])) == n_classes(name)


def test_what_is_not_there_is_named(tmp_path):
    write_pictures(tmp_path, paths("pacs"))
    with pytest.raises(UnknownName, match="Did you mean 'sketch'"):
        load("pacs", tmp_path, domain="skech")
    shutil.rmtree(tmp_path / "cartoon")
    with pytest.raises(MissingData, match=r"no folder cartoon of PACS; it has art_painting"):
        load("pacs", tmp_path)
    with pytest.raises(MissingData, match="no domain of it"):
        load("office-home", tmp_path)
    write_pictures(tmp_path, ["photo/elephant/1.png"])
    with pytest.raises(FileError, match="the folders of 7 classes of PACS"):
        load("pacs", tmp_path, domain="photo")
    shutil.rmtree(tmp_path / "photo" / "elephant")
    shutil.rmtree(tmp_path / "photo" / "c03")
    with pytest.raises(FileError, match="the folders of 7 classes of PACS"):
        load("pacs", tmp_path, domain="photo")


def test_real_copies_have_the_published_counts(shared_data):
    caltech = load("office-caltech10", shared_data / "office-caltech10")
    assert caltech.classes[5] == "laptop_computer"
    domains, counts = np.unique(caltech.fields["domain"], return_counts=True)
    found = dict(zip(domains.tolist(), counts.tolist(), strict=True))
    assert found == DATA_SETS.get("office-caltech10").counts
    sketches = load("pacs", shared_data / "pacs-2800", domain="sketch")
    assert sketches.classes[2:4] == ("giraffe", "guitar")
    assert np.bincount(sketches.labels).tolist() == [100, 100, 100, 100, 100, 80, 100]
    assert sketches[0].shape == (227, 227, 3)
