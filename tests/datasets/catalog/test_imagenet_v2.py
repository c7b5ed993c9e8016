"""ImageNet-V2: folders named by number."""

from __future__ import annotations

import pytest
from imagenet_copies import WNIDS, write_class_index, write_image

from shiftcal.datasets.catalog.imagenet import IMAGENET_V2 as ABOUT
from shiftcal.datasets.catalog.imagenet import imagenet_v2
from shiftcal.errors import FileError, UnknownName

MATCHED = "imagenetv2-matched-frequency-format-val"


@pytest.fixture
def copy(tmp_path):
    for number in (10, 2, 999, 100, 0):
        write_image(tmp_path / MATCHED / str(number) / "b.jpeg", number % 256)
    write_image(tmp_path / MATCHED / "2" / "a.jpeg", 7)
    return tmp_path


def test_folders_count_as_numbers_and_not_as_text(copy):
    images = imagenet_v2(copy)
    assert images.name == "ImageNet-V2 matched-frequency"
    assert images.labels.tolist() == [0, 2, 2, 10, 100, 999]
    assert images.ids(range(6)) == [
        "0/b.jpeg",
        "2/a.jpeg",
        "2/b.jpeg",
        "10/b.jpeg",
        "100/b.jpeg",
        "999/b.jpeg",
    ]
    # JPEG of a flat image of quality 95 is off by at most one or two levels.
    assert abs(int(images[4].mean()) - 100) <= 2
    assert images.classes is None
    assert imagenet_v2(copy / MATCHED).labels.tolist() == images.labels.tolist()


def test_names_come_from_a_list_of_classes_if_there_is_one(copy):
    write_class_index(copy / "imagenet_class_index.json")
    images = imagenet_v2(copy)
    assert images.labels.tolist() == [0, 2, 2, 10, 100, 999]
    assert images.classes == tuple(WNIDS)


def test_what_is_missing_or_unknown_is_named(copy):
    with pytest.raises(FileError, match="is not a folder"):
        imagenet_v2(copy / "nowhere")
    with pytest.raises(UnknownName, match="variant must be one of 'matched-frequency'"):
        imagenet_v2(copy, variant="val")
    (copy / "empty").mkdir()
    with pytest.raises(FileError, match="holds no images"):
        imagenet_v2(copy / "empty")
    assert len(ABOUT.downloads) == len(ABOUT.parts) == 3
