"""CIFAR-10-C: severities stacked in one array, as published and as shiftcal writes it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from cifar_copies import NAMES, drawn

import shiftcal as sc
from shiftcal.datasets.catalog.cifar import cifar10_c
from shiftcal.errors import FileError
from shiftcal.surrogates.image_sets import corrupt_files

FOG, PIXELATE = drawn(15, 1), drawn(15, 2)
LABELS = np.array([6, 0, 9])


@pytest.fixture
def copy(tmp_path):
    """Three images at five severities, in a folder above the arrays."""
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    np.save(folder / "fog.npy", FOG)
    np.save(folder / "pixelate.npy", PIXELATE)
    np.save(folder / "labels.npy", np.tile(LABELS, 5))
    return tmp_path


def test_one_severity_is_its_stretch_of_the_rows(copy):
    images = cifar10_c(copy, corruption="fog", severity=2)
    assert (images.name, images.classes) == ("CIFAR-10-C fog 2", tuple(NAMES))
    assert images.labels.tolist() == [6, 0, 9]
    assert images.fields["severity"].tolist() == [2, 2, 2]
    assert images.fields["corruption"].tolist() == ["fog"] * 3
    np.testing.assert_array_equal(images.read([0, 1, 2]).images, FOG[3:6])


def test_all_severities_come_in_rising_order(copy):
    images = cifar10_c(copy / "CIFAR-10-C", corruption="pixelate")
    assert images.name == "CIFAR-10-C pixelate"
    assert images.fields["severity"].tolist() == [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3 + [5] * 3
    assert images.labels.tolist() == [6, 0, 9] * 5
    np.testing.assert_array_equal(images.read(range(15)).images, PIXELATE)
    np.testing.assert_array_equal(images.read([14, 0, 4, 5]).images, PIXELATE[[14, 0, 4, 5]])
    np.testing.assert_array_equal(images[7], PIXELATE[7])


@pytest.mark.parametrize("which", [None, "all"])
def test_all_corruptions_come_by_name(copy, which):
    images = cifar10_c(copy, corruption=which, severity=5)
    assert images.name == "CIFAR-10-C 2 corruptions 5"
    assert images.fields["corruption"].tolist() == ["fog"] * 3 + ["pixelate"] * 3
    expected = np.concatenate([FOG[12:], PIXELATE[12:]])
    np.testing.assert_array_equal(images.read(range(6)).images, expected)


@pytest.mark.parametrize("which", ["pixelate,fog", ["pixelate", "fog"], "pixelate, fog"])
def test_several_come_in_the_order_asked_for(copy, which):
    images = cifar10_c(copy, corruption=which, severity=1)
    expected = np.concatenate([PIXELATE[:3], FOG[:3]])
    np.testing.assert_array_equal(images.read(range(6)).images, expected)
    part = images.subset([4, 1])
    np.testing.assert_array_equal(part.read([0, 1]).images, expected[[4, 1]])
    assert part.fields["corruption"].tolist() == ["fog", "pixelate"]
    assert part.digest([0, 1]) == images.digest([4, 1])


@pytest.mark.parametrize("options", [{"corruption": "fog", "severity": 4}, {}])
def test_another_process_is_sent_no_pixels(copy, options):
    images = cifar10_c(copy, **options)
    sent = pickle.dumps(images)
    assert len(sent) < 15 * 3072
    last = len(images) - 1
    np.testing.assert_array_equal(pickle.loads(sent)[last], images[last])


def test_what_shiftcal_writes_for_all_severities_is_read(tmp_path):
    clean = drawn(4, 5)
    np.save(tmp_path / "images.npy", clean)
    np.save(tmp_path / "y.npy", [1, 2, 3, 5])
    corrupt_files(
        tmp_path / "images.npy",
        tmp_path / "out",
        corruptions=["contrast", "brightness"],
        labels=tmp_path / "y.npy",
    )
    images = cifar10_c(tmp_path / "out", corruption="contrast", severity=3)
    assert images.labels.tolist() == [1, 2, 3, 5]
    expected = sc.corrupt(clean, "contrast", severity=3, seed=0)
    np.testing.assert_array_equal(images.read(range(4)).images, expected)
    assert len(cifar10_c(tmp_path / "out")) == 2 * 5 * 4


def test_what_shiftcal_writes_for_some_severities_and_without_labels_is_read(tmp_path):
    clean = drawn(4, 5)
    np.save(tmp_path / "images.npy", clean)
    corrupt_files(
        tmp_path / "images.npy", tmp_path / "out", corruptions="contrast", severities=[2, 5]
    )
    images = cifar10_c(tmp_path / "out", corruption="contrast", severity=5)
    assert images.labels is None
    expected = sc.corrupt(clean, "contrast", severity=5, seed=0)
    np.testing.assert_array_equal(images.read(range(4)).images, expected)
    with pytest.raises(FileError, match=r"contrast/1\.npy is missing"):
        cifar10_c(tmp_path / "out", corruption="contrast")


def test_some_severities_and_a_corruption_of_ones_own_can_be_asked_for(copy):
    images = cifar10_c(copy, corruption="fog", severity="5,1")
    assert images.fields["severity"].tolist() == [5] * 3 + [1] * 3
    np.testing.assert_array_equal(images.read(range(6)).images, FOG[[12, 13, 14, 0, 1, 2]])
    np.save(copy / "CIFAR-10-C" / "my-rain.npy", FOG)
    assert len(cifar10_c(copy, corruption="my-rain", severity="all")) == 15


def test_labels_for_one_severity_serve_for_all(copy):
    np.save(copy / "CIFAR-10-C" / "labels.npy", LABELS)
    assert cifar10_c(copy, corruption="fog").labels.tolist() == [6, 0, 9] * 5
