"""VisDA-2017: its list files, and the folders they must agree with."""

from __future__ import annotations

import pytest
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.domains import visda2017
from shiftcal.errors import FileError

PATHS = [
    "train/aeroplane/src_1_02691156_4def53f149137451b0009f08a96f38a9__44_349_150.png",
    "train/train/src_1_04468005_1__180_236_150.png",
    "train/truck/src_2_0000__1_1_1.png",
    "validation/car/car_1.png",
    "validation/plant/plant_7.png",
]


@pytest.fixture
def copy(tmp_path):
    return write_pictures(tmp_path, PATHS)


def test_folders_give_the_labels_where_there_is_no_list(copy):
    images = visda2017(copy)
    assert images.labels.tolist() == [0, 10, 11, 3, 8]
    assert images.fields["domain"].tolist() == [*["train"] * 3, *["validation"] * 2]
    assert images.classes[10] == "train"
    assert (images[4] == 40).all()


def test_the_list_gives_the_order_and_the_labels(copy):
    (copy / "validation" / "image_list.txt").write_text("plant/plant_7.png 8\ncar/car_1.png 3\n")
    images = visda2017(copy, domain="validation")
    assert images.labels.tolist() == [8, 3]
    assert images.ids([0]) == ["validation/plant/plant_7.png"]
    assert (images[0] == 40).all()
    assert images.name == "VisDA-2017 validation"


def test_one_domain_alone_is_enough(tmp_path):
    write_pictures(tmp_path, ["validation/bus/1.png"])
    assert visda2017(tmp_path, domain="validation").labels.tolist() == [2]
    with pytest.raises(FileError, match="no folder 'train' of VisDA-2017"):
        visda2017(tmp_path)
