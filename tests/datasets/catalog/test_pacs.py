"""PACS: a real partial copy, and the official lists that count from 1."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.domains import pacs
from shiftcal.errors import FileError, InputWarning

PATHS = [
    "art_painting/dog/pic_001.png",
    "art_painting/person/pic_002.png",
    "cartoon/house/pic_001.png",
    "photo/guitar/063_0001.png",
    "photo/horse/105_0001.png",
    "sketch/elephant/n02503517_79-1.png",
    "sketch/giraffe/n02439033_67-1.png",
]


@pytest.fixture
def copy(tmp_path):
    root = write_pictures(tmp_path / "PACS" / "kfold", PATHS).parent
    lists = root / "pacs_label"
    lists.mkdir()
    (lists / "photo_train_kfold.txt").write_text("photo/horse/105_0001.png 5\n")
    (lists / "photo_crossval_kfold.txt").write_text("photo/guitar/063_0001.png 4\r\n\r\n")
    (lists / "photo_test_kfold.txt").write_text(
        "photo/horse/105_0001.png 5\nphoto/guitar/063_0001.png 4"
    )
    return root


def write_list(copy, text, *, domain="sketch"):
    (copy / "pacs_label" / f"{domain}_train_kfold.txt").write_text(text)


def test_the_real_partial_copy_has_the_counts_of_its_readme(shared_data):
    root = shared_data / "pacs-2800"
    whole = pacs(root)
    assert len(whole) == 2780
    for domain, last in [("art_painting", 100), ("cartoon", 100), ("photo", 100), ("sketch", 100)]:
        images = pacs(root, domain=domain)
        house = 80 if domain == "sketch" else 100
        assert np.bincount(images.labels).tolist() == [100, 100, 100, 100, 100, house, last]
        assert images[0].shape == (227, 227, 3)
        assert set(images.fields["domain"]) == {domain}
    assert whole.labels[:100].tolist() == [0] * 100


def test_labels_go_by_the_seven_classes_though_some_are_missing(copy):
    images = pacs(copy)
    assert images.labels.tolist() == [0, 6, 5, 3, 4, 1, 2]
    assert images.classes == ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
    assert images.fields["domain"].tolist() == [
        *["art_painting"] * 2,
        "cartoon",
        *["photo"] * 2,
        *["sketch"] * 2,
    ]


@pytest.mark.parametrize(
    ("split", "labels", "grey"),
    [("train", [4], [40]), ("crossval", [3], [30]), ("test", [4, 3], [40, 30])],
)
def test_official_lists_are_read_in_their_order_and_count_from_one(copy, split, labels, grey):
    images = pacs(copy, domain="photo", split=split)
    assert images.labels.tolist() == labels
    assert [int(image.max()) for image in (images[i] for i in range(len(images)))] == grey
    assert images.name == f"PACS photo {split}"
    assert images.fields["domain"].tolist() == ["photo"] * len(labels)


def test_lists_beside_the_domains_are_found_too(tmp_path):
    write_pictures(tmp_path, ["sketch/dog/1.png"])
    (tmp_path / "sketch_test_kfold.txt").write_text("sketch/dog/1.png 1\n")
    assert pacs(tmp_path, domain="sketch", split="test").labels.tolist() == [0]
    write_pictures(tmp_path / "b" / "images", ["sketch/dog/1.png"])
    (tmp_path / "b" / "splits").mkdir()
    (tmp_path / "b" / "splits" / "sketch_test_kfold.txt").write_text("sketch/dog/1.png 1\n")
    assert len(pacs(tmp_path / "b", domain="sketch", split="test")) == 1
    assert len(pacs(tmp_path / "b" / "images", domain="sketch", split="test")) == 1


def test_a_missing_list_is_named(copy):
    with pytest.raises(FileError, match=r"sketch_train_kfold.txt is not in .*leave split out"):
        pacs(copy, domain="sketch", split="train")


def test_listed_images_that_are_not_there_are_left_out_with_a_warning(copy):
    write_list(
        copy,
        "sketch/dog/absent.png 1\nsketch/giraffe/n02439033_67-1.png 3\nsketch/giraffe/b.png 3\n",
    )
    with pytest.warns(InputWarning, match=r"2 of 3 images listed .* the first is dog/absent.png"):
        images = pacs(copy, domain="sketch", split="train")
    assert images.labels.tolist() == [2]
    assert (images[0] == 60).all()
    write_list(copy, "sketch/dog/absent.png 1\n")
    with pytest.raises(FileError, match=r"1 of 1 images listed .*Name the folder"):
        pacs(copy, domain="sketch", split="train")
