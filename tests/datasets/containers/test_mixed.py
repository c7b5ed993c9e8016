"""Mixtures of two images of a set."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images, write_images

from shiftcal.datasets import MixedImages
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import FileImages
from shiftcal.files import Framing

IMAGES = draw_images(6)
FIRST, SECOND = np.array([0, 1, 2, 5]), np.array([3, 0, 4, 1])


def mixtures(whole, *, ratio=0.65, labels=(0, 1, 2, 3)):
    return MixedImages(whole, FIRST, SECOND, ratio=ratio, labels=np.array(labels), name="mixed")


def assert_mixed(found, a, b):
    """0.65 is 13/20: within half a level in whole numbers, where nothing is rounded."""
    off = 20 * found.astype(int) - (13 * a.astype(int) + 7 * b.astype(int))
    assert found.dtype == np.uint8
    assert np.abs(off).max() <= 10


@pytest.fixture
def files(tmp_path):
    names = [f"{i}.png" for i in range(6)]
    write_images(tmp_path, IMAGES, names)
    return FileImages(tmp_path, names, name="files")


def test_an_array_is_mixed_a_batch_at_a_time():
    mixed = mixtures(ArrayImages(IMAGES))
    assert (len(mixed), mixed.labels.tolist()) == (4, [0, 1, 2, 3])
    found = mixed.read([3, 0]).images
    assert_mixed(found, IMAGES[FIRST[[3, 0]]], IMAGES[SECOND[[3, 0]]])
    assert found.std() > 1
    np.testing.assert_array_equal(mixed[3], found[0])


def test_files_give_the_same_and_are_called_by_both_names(files):
    mixed, array = mixtures(files), mixtures(ArrayImages(IMAGES))
    np.testing.assert_array_equal(mixed.read(range(4)).images, array.read(range(4)).images)
    assert mixed.ids([0, 3]) == ["0.png+3.png", "5.png+1.png"]
    assert array.ids([0]) == ["0+3"]


def test_images_are_framed_before_they_are_mixed(files):
    framing = Framing(resize=8, crop=6)
    framed = files.read(range(6), framing=framing).images
    found = mixtures(files).read(range(4), framing=framing).images
    assert_mixed(found, framed[FIRST], framed[SECOND])


def test_a_mixture_with_an_unreadable_image_is_among_the_bad_ones(tmp_path, files):
    (tmp_path / "3.png").write_bytes(b"no image")
    batch = mixtures(files).read(range(4))
    assert batch.indices.tolist() == [1, 2, 3]
    assert "3.png cannot be read as an image" in batch.bad[0]


def test_the_digest_tells_pairs_and_ratios_apart(files):
    mixed = mixtures(files)
    digest = mixed.digest(range(4))
    assert pickle.loads(pickle.dumps(mixed)).digest(range(4)) == digest
    assert mixtures(files, labels=(9, 8, 7, 6)).digest(range(4)) == digest
    assert mixtures(files, ratio=0.66).digest(range(4)) != digest
    turned = MixedImages(files, SECOND, FIRST, ratio=0.65, labels=[0, 1, 2, 3], name="mixed")
    assert turned.digest(range(4)) != digest
