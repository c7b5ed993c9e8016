"""ImageNet, ImageNet-C, ImageNet-Sketch and ImageNet-V2: labels from folders and lists."""

from __future__ import annotations

import numpy as np
import pytest
from dataset_copies import WNIDS, write_class_index, write_image
from PIL import Image

import shiftcal as sc
from shiftcal.datasets.catalog.imagenet import imagenet, imagenet_c, imagenet_sketch, imagenet_v2
from shiftcal.errors import FileError, MissingData
from shiftcal.surrogates.image_sets import corrupt_files

# Neither of these is 0 and 1, as sorting the two alone would have it.
LOW, HIGH = WNIDS[7], WNIDS[421]


def flat(n):
    return [f"ILSVRC2012_val_{i:08d}.JPEG" for i in range(1, n + 1)]


@pytest.fixture
def two_classes(tmp_path):
    write_image(tmp_path / "val" / HIGH / "ILSVRC2012_val_00000001.JPEG", 10)
    write_image(tmp_path / "val" / LOW / "ILSVRC2012_val_00000002.JPEG", 20)
    write_image(tmp_path / "val" / HIGH / "ILSVRC2012_val_00000003.JPEG", 30)
    return tmp_path


@pytest.fixture
def together(tmp_path):
    """Four images without class folders."""
    for value, name in enumerate(flat(4)):
        write_image(tmp_path / "val" / name, 40 * value)
    return tmp_path


def test_some_class_folders_get_their_index_among_all_classes(two_classes):
    with pytest.raises(FileError, match=r"has 2 of ImageNet's 1,000 classes.*class_index"):
        imagenet(two_classes)
    write_class_index(two_classes / "imagenet_class_index.json")
    images = imagenet(two_classes)
    assert images.ids(range(3)) == [
        f"{LOW}/ILSVRC2012_val_00000002.JPEG",
        f"{HIGH}/ILSVRC2012_val_00000001.JPEG",
        f"{HIGH}/ILSVRC2012_val_00000003.JPEG",
    ]
    assert images.labels.tolist() == [7, 421, 421]
    assert images.classes == tuple(WNIDS)
    # JPEG of a flat image of quality 95 is off by at most one or two levels.
    assert all(abs(int(images[i].mean()) - value) <= 2 for i, value in enumerate([20, 10, 30]))
    (two_classes / "imagenet_class_index.json").unlink()
    for wnid in WNIDS:
        (two_classes / "val" / wnid).mkdir(exist_ok=True)
    assert imagenet(two_classes / "val").labels.tolist() == [7, 421, 421]


def test_a_list_of_files_and_indices_gives_the_labels(together):
    with pytest.raises(FileError, match=r"labels\.csv with the columns file and label"):
        imagenet(together)
    text = "file,label\n{3},999\n{0},65\n{2},0\n{1},970\nILSVRC2012_val_00000099.JPEG,3\n"
    (together / "labels.csv").write_text(text.format(*flat(4)), "utf-8")
    images = imagenet(together)
    assert images.labels.tolist() == [65, 970, 0, 999]
    assert images.classes is None
    write_class_index(together / "imagenet_class_index.json")
    assert imagenet(together).classes[970] == WNIDS[970]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"0": ["n01440764", "tench"]}'])
def test_a_list_of_classes_that_is_none(two_classes, text):
    (two_classes / "imagenet_class_index.json").write_text(text)
    with pytest.raises(FileError, match=r"imagenet_class_index\.json"):
        imagenet(two_classes)


def test_real_images_with_their_list_load(shared_data):
    images = imagenet(shared_data / "imagenet-val-2000")
    assert np.bincount(images.labels).tolist() == [2] * 1000
    assert images.ids([0]) == ["ILSVRC2012_val_00000001.jpg"]
    assert (images.labels[0], images.classes[0]) == (65, "n01440764")
    assert images.classes[65] == "n01751748"  # the sea snake that the set begins with
    assert images.read([0, 1999]).images.shape == (2, 256, 256, 3)


A, B = WNIDS[5], WNIDS[640]


def write_level(folder, value):
    write_image(folder / B / "ILSVRC2012_val_00000001.JPEG", value)
    write_image(folder / A / "ILSVRC2012_val_00000002.JPEG", value + 1)


@pytest.fixture
def copy(tmp_path):
    """Two corruptions of two images."""
    for severity in range(1, 6):
        write_level(tmp_path / "fog" / str(severity), 10 * severity)
        write_level(tmp_path / "gaussian_noise" / str(severity), 100 + 10 * severity)
    write_class_index(tmp_path / "imagenet_class_index.json")
    return tmp_path


def level_of(image):
    """The ten that a flat image was written with; JPEG is off by at most a level or two."""
    return round((image.mean() - 1) / 10) * 10


def test_all_come_by_name_and_rising_severity(copy):
    images = imagenet_c(copy)
    assert images.name == "ImageNet-C 2 corruptions"
    assert images.labels.tolist() == [5, 640] * 10
    assert images.fields["corruption"].tolist() == ["fog"] * 10 + ["gaussian_noise"] * 10
    assert images.fields["severity"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5] * 2
    levels = [level_of(images[i]) for i in range(0, 20, 2)]
    assert levels == [10, 20, 30, 40, 50, 110, 120, 130, 140, 150]
    both = imagenet_c(copy, corruption=["gaussian_noise", "fog"], severity=1)
    assert [level_of(both[i]) for i in range(4)] == [110, 110, 10, 10]
    one = imagenet_c(copy, corruption="fog", severity=3)
    assert (one.name, one.ready_made) == ("ImageNet-C fog 3", 224)
    assert one.ids([0]) == [f"fog/3/{A}/ILSVRC2012_val_00000002.JPEG"]


def test_what_shiftcal_writes_for_class_folders_is_read(tmp_path):
    rng = np.random.default_rng(4)
    clean = rng.integers(0, 256, (2, 24, 24, 3), dtype=np.uint8)
    for wnid, image in zip((A, B), clean, strict=True):
        (tmp_path / "in" / wnid).mkdir(parents=True)
        Image.fromarray(image).save(tmp_path / "in" / wnid / "x.png")
    corrupt_files(
        tmp_path / "in", tmp_path / "out", corruptions=["contrast", "brightness"], severities=[2, 5]
    )
    write_class_index(tmp_path / "imagenet_class_index.json")
    images = imagenet_c(tmp_path / "out", corruption="contrast", severity=5)
    assert images.labels.tolist() == [5, 640]
    expected = sc.corrupt(clean, "contrast", severity=5, seed=0)
    np.testing.assert_array_equal(images.read([0, 1]).images, expected)


@pytest.fixture
def copy_imagenet_sketch(tmp_path):
    write_image(tmp_path / "sketch" / WNIDS[300] / "sketch_9.JPEG", 10)
    write_image(tmp_path / "sketch" / WNIDS[300] / "sketch_10.JPEG", 20)
    write_image(tmp_path / "sketch" / WNIDS[2] / "sketch_0.JPEG", 30)
    return tmp_path


def test_labels_are_the_places_among_all_classes(copy_imagenet_sketch):
    write_class_index(copy_imagenet_sketch / "imagenet_class_index.json")
    for root in (copy_imagenet_sketch, copy_imagenet_sketch / "sketch"):
        images = imagenet_sketch(root)
        assert images.labels.tolist() == [2, 300, 300]
        assert [name.rpartition("/")[2] for name in images.ids(range(3))] == [
            "sketch_0.JPEG",
            "sketch_10.JPEG",
            "sketch_9.JPEG",
        ]


MATCHED = "imagenetv2-matched-frequency-format-val"


@pytest.fixture
def copy_imagenet_v2(tmp_path):
    for number in (10, 2, 999, 100, 0):
        write_image(tmp_path / MATCHED / str(number) / "b.jpeg", number % 256)
    write_image(tmp_path / MATCHED / "2" / "a.jpeg", 7)
    return tmp_path


def test_folders_count_as_numbers_and_not_as_text(copy_imagenet_v2):
    images = imagenet_v2(copy_imagenet_v2)
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
    write_class_index(copy_imagenet_v2 / "imagenet_class_index.json")
    assert imagenet_v2(copy_imagenet_v2).classes == tuple(WNIDS)
    with pytest.raises(MissingData, match="top-images"):
        imagenet_v2(copy_imagenet_v2, variant="top-images")
    write_image(copy_imagenet_v2 / MATCHED / "cat" / "a.jpeg", 7)
    with pytest.raises(FileError, match="folders named 0 to 999"):
        imagenet_v2(copy_imagenet_v2)
