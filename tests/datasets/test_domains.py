"""Office-Home, Office-Caltech10, PACS and VisDA-2017: domains, classes, spellings of copies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from dataset_copies import write_pictures

from shiftcal.datasets import load
from shiftcal.errors import FileError, MissingData, UnknownName
from shiftcal.registry import DATA_SETS

# Miniatures in the layouts as distributed, with the label of every image.
COPIES = {
    "office-home": {
        "Art/Alarm_Clock/00001.png": 0,
        "Art/TV/00002.png": 58,
        "Art/Table/00001.png": 59,
        "Clipart/Webcam/00001.png": 64,
        "Product/Backpack/00001.png": 1,
        "Real_World/Bed/00010.png": 3,
    },
    "office-caltech10": {
        "amazon/back_pack/frame_0001.png": 0,
        "amazon/laptop_computer/frame_0001.png": 5,
        "caltech/laptop/frame_0001.png": 5,
        "dslr/mug/frame_0001.png": 8,
        "webcam/projector/frame_0001.png": 9,
    },
    "pacs": {
        "art_painting/dog/pic_001.png": 0,
        "art_painting/person/pic_002.png": 6,
        "cartoon/house/pic_001.png": 5,
        "photo/guitar/063_0001.png": 3,
        "sketch/giraffe/n02439033_67-1.png": 2,
    },
    "visda2017": {
        "train/aeroplane/src_1_02691156_4def__44_349_150.png": 0,
        "train/train/src_1_04468005_1__180_236_150.png": 10,
        "validation/plant/plant_7.png": 8,
    },
}
INSIDE = {
    "office-home": "OfficeHomeDataset_10072016",
    "office-caltech10": "office_caltech_10",
    "pacs": "PACS/kfold",
    "visda2017": "visda-2017",
}


@pytest.mark.parametrize("name", COPIES)
def test_labels_go_by_the_classes_of_the_whole_data_set(name, tmp_path):
    write_pictures(tmp_path, list(COPIES[name]))
    images = load(name, tmp_path)
    assert images.ids(range(len(images))) == list(COPIES[name])
    assert images.labels.tolist() == list(COPIES[name].values())
    assert len(images.classes) == DATA_SETS.get(name).n_classes
    assert [int(images[i].max()) for i in range(len(images))] == [
        10 * i for i in range(len(images))
    ]
    domains = [part.name for part in DATA_SETS.get(name).parts]
    assert list(dict.fromkeys(images.fields["domain"].tolist())) == domains
    alone = load(name, tmp_path, domain=domains[-1].lower().replace(" ", "_"))
    assert set(alone.fields["domain"]) == {domains[-1]}
    assert alone.name == f"{images.name} {domains[-1]}"
    write_pictures(tmp_path / "above" / INSIDE[name], list(COPIES[name]))
    assert len(load(name, tmp_path / "above")) == len(images)


def test_what_is_not_there_is_named(tmp_path):
    write_pictures(tmp_path, list(COPIES["office-home"]))
    with pytest.raises(UnknownName, match="Did you mean 'Clipart'"):
        load("office-home", tmp_path, domain="Clippart")
    (tmp_path / "art").mkdir()
    with pytest.raises(FileError, match="one folder for Art"):
        load("office-home", tmp_path)
    (tmp_path / "art").rmdir()
    shutil.rmtree(tmp_path / "Clipart")
    with pytest.raises(FileError, match=r"no folder 'Clipart' of Office-Home; it has 'Art'"):
        load("office-home", tmp_path)
    assert len(load("office-home", tmp_path, domain="Product")) == 1
    with pytest.raises(MissingData, match="no domain of it"):
        load("pacs", tmp_path)
    write_pictures(tmp_path, ["Art/Elephant/1.png"])
    with pytest.raises(FileError, match=r"Elephant.1.png is not in the folder of a class"):
        load("office-home", tmp_path, domain="Art")


def test_real_copies_have_the_published_counts(shared_data):
    caltech = load("office-caltech10", shared_data / "office-caltech10")
    domains, counts = np.unique(caltech.fields["domain"], return_counts=True)
    assert dict(zip(domains.tolist(), counts.tolist(), strict=True)) == {
        part.name: part.n for part in DATA_SETS.get("office-caltech10").parts
    }
    sketches = load("pacs", shared_data / "pacs-2800", domain="sketch")
    assert np.bincount(sketches.labels).tolist() == [100, 100, 100, 100, 100, 80, 100]
    assert sketches[0].shape == (227, 227, 3)
