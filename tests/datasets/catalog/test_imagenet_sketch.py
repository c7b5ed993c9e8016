"""ImageNet-Sketch from its class folders."""

from __future__ import annotations

import pytest
from imagenet_copies import WNIDS, write_class_index, write_image

from shiftcal.datasets.catalog.imagenet import IMAGENET_SKETCH as ABOUT
from shiftcal.datasets.catalog.imagenet import imagenet_sketch
from shiftcal.errors import FileError


@pytest.fixture
def copy(tmp_path):
    write_image(tmp_path / "sketch" / WNIDS[300] / "sketch_9.JPEG", 10)
    write_image(tmp_path / "sketch" / WNIDS[300] / "sketch_10.JPEG", 20)
    write_image(tmp_path / "sketch" / WNIDS[2] / "sketch_0.JPEG", 30)
    return tmp_path


def test_labels_are_the_places_among_all_classes(copy):
    write_class_index(copy / "imagenet_class_index.json")
    for root in (copy, copy / "sketch"):
        images = imagenet_sketch(root)
        assert images.labels.tolist() == [2, 300, 300]
        assert [name.rpartition("/")[2] for name in images.ids(range(3))] == [
            "sketch_0.JPEG",
            "sketch_10.JPEG",
            "sketch_9.JPEG",
        ]


def test_all_folders_need_no_list_and_some_do(copy):
    with pytest.raises(FileError, match="has 2 of ImageNet's 1,000 classes"):
        imagenet_sketch(copy)
    for wnid in WNIDS:
        (copy / "sketch" / wnid).mkdir(exist_ok=True)
    assert imagenet_sketch(copy).labels.tolist() == [2, 300, 300]


def test_what_is_missing_is_named(copy):
    with pytest.raises(FileError, match="is not a folder"):
        imagenet_sketch(copy / "nowhere")
    (copy / "empty").mkdir()
    with pytest.raises(FileError, match="holds no images"):
        imagenet_sketch(copy / "empty")
    assert ABOUT.parts[0].n == 50_889
