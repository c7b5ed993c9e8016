"""VisDA-2017: its list files, and the folders they must agree with."""

from __future__ import annotations

import pytest
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.visda2017 import ABOUT, visda2017
from shiftcal.errors import FileError, InputWarning

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


def test_a_list_that_says_something_else_than_the_folders_is_refused(copy):
    (copy / "validation" / "image_list.txt").write_text("plant/plant_7.png 8\ncar/car_1.png 4\n")
    with pytest.raises(FileError, match=r"the label 4, and its folder is class 3 \(car\)"):
        visda2017(copy, domain="validation")


@pytest.mark.parametrize("path", ["../train/truck/src_2_0000__1_1_1.png", "/etc/passwd"])
def test_a_list_that_leads_out_of_the_folder_is_refused(copy, path):
    (copy / "validation" / "image_list.txt").write_text(f"{path} 11\n")
    with pytest.raises(FileError, match="leads out of it and is not read"):
        visda2017(copy, domain="validation")


def test_a_list_of_an_unknown_class_is_refused(copy):
    (copy / "validation" / "image_list.txt").write_text("unknown/1.png 12\n")
    with pytest.raises(FileError, match="is not the folder of a class of VisDA-2017"):
        visda2017(copy, domain="validation")


def test_a_list_that_is_a_folder_is_refused(copy):
    (copy / "validation" / "image_list.txt").mkdir()
    with pytest.raises(FileError, match="is not a file; it should list the images"):
        visda2017(copy, domain="validation")


def test_listed_images_that_are_not_there_are_left_out_with_a_warning(copy):
    (copy / "validation" / "image_list.txt").write_text("car/car_0.png 3\ncar/car_1.png 3\n")
    with pytest.warns(InputWarning, match="1 of 2 images listed"):
        images = visda2017(copy, domain="validation")
    assert images.ids([0]) == ["validation/car/car_1.png"]


def test_one_domain_alone_is_enough(tmp_path):
    write_pictures(tmp_path, ["validation/bus/1.png"])
    assert visda2017(tmp_path, domain="validation").labels.tolist() == [2]
    with pytest.raises(FileError, match="no folder 'train' of VisDA-2017"):
        visda2017(tmp_path)


def test_what_is_known_of_it_fits_together(copy):
    assert [part.n for part in ABOUT.parts] == [152397, 55388]
    assert len(visda2017(copy).classes) == ABOUT.n_classes == 12
    assert all(file.url.startswith("https://") for file in ABOUT.downloads)
