"""ImageNet-C: folders of corruption, severity and class."""

from __future__ import annotations

import numpy as np
import pytest
from imagenet_copies import WNIDS, write_class_index, write_image
from PIL import Image

import shiftcal as sc
from shiftcal.datasets.catalog.imagenet import imagenet_c
from shiftcal.errors import FileError
from shiftcal.surrogates.image_sets import corrupt_files

A, B = WNIDS[5], WNIDS[640]


def write_level(folder, value):
    write_image(folder / B / "ILSVRC2012_val_00000001.JPEG", value)
    write_image(folder / A / "ILSVRC2012_val_00000002.JPEG", value + 1)


@pytest.fixture
def copy(tmp_path):
    """fog as unpacked into the root, gaussian_noise in the folder of its group."""
    for severity in range(1, 6):
        write_level(tmp_path / "fog" / str(severity), 10 * severity)
        write_level(tmp_path / "noise" / "gaussian_noise" / str(severity), 100 + 10 * severity)
    write_class_index(tmp_path / "imagenet_class_index.json")
    return tmp_path


def level_of(image):
    """The ten that a flat image was written with; JPEG is off by at most a level or two."""
    return round((image.mean() - 1) / 10) * 10


def test_one_corruption_and_severity(copy):
    images = imagenet_c(copy, corruption="fog", severity=3)
    assert images.name == "ImageNet-C fog 3"
    assert images.labels.tolist() == [5, 640]
    assert images.ids([0, 1]) == [
        f"fog/3/{A}/ILSVRC2012_val_00000002.JPEG",
        f"fog/3/{B}/ILSVRC2012_val_00000001.JPEG",
    ]
    assert images.fields["corruption"].tolist() == ["fog", "fog"]
    assert images.fields["severity"].tolist() == [3, 3]
    assert [level_of(images[i]) for i in range(2)] == [30, 30]


def test_a_corruption_in_the_folder_of_its_group_is_found(copy):
    images = imagenet_c(copy, corruption="gaussian_noise", severity=5)
    assert images.ids([0])[0].startswith("noise/gaussian_noise/5/")
    assert [level_of(images[i]) for i in range(2)] == [150, 150]


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


def test_the_classes_must_be_the_same_everywhere(copy):
    (copy / "imagenet_class_index.json").unlink()
    for severity in (1, 2):
        for wnid in [*WNIDS[:-1], "n99999999"] if severity == 2 else WNIDS:
            (copy / "fog" / str(severity) / wnid).mkdir(exist_ok=True)
    assert imagenet_c(copy, corruption="fog", severity=1).labels.tolist() == [5, 640]
    with pytest.raises(FileError, match="the same classes under every corruption"):
        imagenet_c(copy, corruption="fog", severity=[1, 2])


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


def test_what_shiftcal_writes_for_real_images_without_class_folders_is_read(shared_data, tmp_path):
    source = shared_data / "imagenet-val-2000"
    (tmp_path / "in" / "images").mkdir(parents=True)
    for number in (1, 2, 3):
        name = f"ILSVRC2012_val_{number:08d}.jpg"
        (tmp_path / "in" / "images" / name).symlink_to(source / "images" / name)
    corrupt_files(tmp_path / "in", tmp_path / "out", corruptions="contrast", severities=3, crop=32)
    images = imagenet_c(
        tmp_path / "out",
        corruption="contrast",
        severity=3,
        labels=source / "labels.csv",
        class_index=source / "imagenet_class_index.json",
    )
    assert images.ids([0]) == ["contrast/3/images/ILSVRC2012_val_00000001.png"]
    assert images.labels.tolist()[:2] == [65, 970]
    assert images.classes[65] == "n01751748"
