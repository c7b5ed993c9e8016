"""Office-Home: four domains, 65 classes, the spellings that copies have."""

from __future__ import annotations

import pytest
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.domains import office_home
from shiftcal.errors import FileError, UnknownName

# A miniature in the layout as distributed; TV is class 58, Table 59, Webcam 64.
PATHS = [
    "Art/Alarm_Clock/00001.png",
    "Art/TV/00002.png",
    "Art/Table/00001.png",
    "Clipart/Webcam/00001.png",
    "Product/Backpack/00001.png",
    "Product/Backpack/00002.png",
    "Real World/Bed/00010.png",
]


@pytest.fixture
def copy(tmp_path):
    return write_pictures(tmp_path / "home", PATHS)


def test_a_domain_has_the_labels_of_the_whole_data_set(copy):
    art = office_home(copy, domain="Art")
    assert len(art) == 3
    assert art.ids([0, 1, 2]) == [
        "Art/Alarm_Clock/00001.png",
        "Art/TV/00002.png",
        "Art/Table/00001.png",
    ]
    assert art.labels.tolist() == [0, 58, 59]
    assert [art.classes[i] for i in art.labels] == ["Alarm_Clock", "TV", "Table"]
    assert art[1].shape == (10, 12, 3)
    assert (art[1] == 10).all()
    assert art.name == "Office-Home Art"


def test_all_domains_come_in_the_documented_order(copy):
    home = office_home(copy)
    assert home.labels.tolist() == [0, 58, 59, 64, 1, 1, 3]
    assert home.fields["domain"].tolist() == [
        *["Art"] * 3,
        "Clipart",
        *["Product"] * 2,
        "Real World",
    ]
    assert [int(home[i].max()) for i in range(7)] == [0, 10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize("spelling", ["Real World", "Real_World", "RealWorld", "real_world"])
def test_the_real_domain_is_found_however_it_is_spelled(tmp_path, spelling):
    write_pictures(tmp_path, [f"{spelling}/Bed/1.png"])
    found = office_home(tmp_path, domain="Real World")
    assert found.labels.tolist() == [3]
    assert found.fields["domain"].tolist() == ["Real World"]
    assert office_home(tmp_path, domain="real_world").fields["domain"].tolist() == ["Real World"]


def test_the_folder_that_the_archive_makes_is_found(tmp_path):
    write_pictures(tmp_path / "OfficeHomeDataset_10072016", PATHS)
    assert len(office_home(tmp_path)) == 7


def test_a_domain_that_is_not_there_is_named(copy):
    (copy / "Clipart" / "Webcam" / "00001.png").unlink()
    (copy / "Clipart" / "Webcam").rmdir()
    (copy / "Clipart").rmdir()
    with pytest.raises(FileError, match=r"no folder 'Clipart' of Office-Home; it has 'Art'"):
        office_home(copy)
    assert len(office_home(copy, domain="Product")) == 2


def test_an_unknown_domain_is_refused(copy):
    with pytest.raises(UnknownName, match="Did you mean 'Clipart'"):
        office_home(copy, domain="Clippart")
