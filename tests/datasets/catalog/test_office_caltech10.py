"""Office-Caltech10: a real copy, and the spellings of others."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.office_caltech10 import ABOUT, office_caltech10
from shiftcal.errors import FileError


def test_the_real_copy_has_the_published_counts(shared_data):
    root = shared_data / "office-caltech10"
    for part in ABOUT.parts:
        images = office_caltech10(root, **part.options)
        assert len(images) == part.n
        assert len(np.unique(images.labels)) == ABOUT.n_classes == 10
    whole = office_caltech10(root)
    assert len(whole) == 2533
    names, counts = np.unique(whole.fields["domain"], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "amazon": 958,
        "Caltech": 1123,
        "dslr": 157,
        "webcam": 295,
    }


def test_the_real_copy_has_the_counts_of_its_class_folders(shared_data):
    dslr = office_caltech10(shared_data / "office-caltech10", domain="dslr")
    # backpack, bike, calculator, headphones, keyboard, laptop, monitor, mouse, mug, projector
    assert np.bincount(dslr.labels).tolist() == [12, 21, 12, 13, 10, 24, 22, 12, 8, 23]
    picture = dslr[0]
    assert picture.dtype == np.uint8
    assert min(picture.shape[:2]) == 224


def test_other_spellings_of_folders_are_found(tmp_path):
    paths = [
        "amazon/back_pack/frame_0001.png",
        "amazon/laptop_computer/frame_0001.png",
        "caltech/laptop/frame_0001.png",
        "dslr/mug/frame_0001.png",
        "webcam/projector/frame_0001.png",
    ]
    write_pictures(tmp_path / "office_caltech_10", paths)
    images = office_caltech10(tmp_path)
    assert images.labels.tolist() == [0, 5, 5, 8, 9]
    assert images.fields["domain"].tolist() == ["amazon", "amazon", "Caltech", "dslr", "webcam"]
    assert images.classes[5] == "laptop_computer"
    assert (images[2] == 20).all()


def test_a_class_of_office_31_is_not_taken_for_one_of_the_ten(tmp_path):
    write_pictures(tmp_path, ["amazon/back_pack/1.png", "amazon/stapler/1.png"])
    with pytest.raises(FileError, match=r"stapler is not the folder of a class.*Move it away"):
        office_caltech10(tmp_path, domain="amazon")


def test_it_is_fetched_by_hand():
    assert not ABOUT.downloads
    assert "<domain>/<class>/" in ABOUT.by_hand
