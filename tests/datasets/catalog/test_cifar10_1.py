"""CIFAR-10.1 from its two arrays."""

from __future__ import annotations

import numpy as np
import pytest
from cifar_copies import NAMES, drawn

from shiftcal.datasets.catalog.cifar import cifar10_1

IMAGES = drawn(5, 3)
LABELS = np.array([0, 9, 4, 4, 7], np.int32)


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "datasets"
    folder.mkdir()
    np.save(folder / "cifar10.1_v6_data.npy", IMAGES)
    np.save(folder / "cifar10.1_v6_labels.npy", LABELS)
    np.save(folder / "cifar10.1_v4_data.npy", IMAGES[::-1])
    np.save(folder / "cifar10.1_v4_labels.npy", LABELS[::-1])
    return folder


def test_both_versions_are_read_from_the_folder_or_the_one_above(copy):
    images = cifar10_1(copy)
    assert (images.name, images.classes) == ("CIFAR-10.1 v6", tuple(NAMES))
    assert images.labels.tolist() == [0, 9, 4, 4, 7]
    np.testing.assert_array_equal(images.read(range(5)).images, IMAGES)
    older = cifar10_1(copy.parent, version="v4")
    assert older.labels.tolist() == [7, 4, 4, 9, 0]
    np.testing.assert_array_equal(older[0], IMAGES[4])
