"""CIFAR-10, CIFAR-10.1 and CIFAR-10-C, and files that only look like them."""

from __future__ import annotations

import hashlib
import os
import pickle

import numpy as np
import pytest
from dataset_copies import NAMES, batch_dict, drawn, publish, write_python_batches
from hostile_files import Trap, trap

import shiftcal as sc
from shiftcal.datasets.catalog.cifar import cifar10, cifar10_1, cifar10_c
from shiftcal.errors import FileError, InputError
from shiftcal.surrogates.image_sets import corrupt_files

TEST = (drawn(4, 1), [3, 8, 0, 9])
TRAIN = [(drawn(2, 10 + i), [i, 9 - i]) for i in range(5)]


def test_batches_are_read_as_they_were_stored_and_no_pixels_are_sent(tmp_path, monkeypatch):
    write_python_batches(tmp_path / "cifar-10-batches-py", TEST, TRAIN)
    publish(monkeypatch, tmp_path)
    images = cifar10(tmp_path)
    assert (len(images), images.name, images.classes) == (4, "CIFAR-10 test", tuple(NAMES))
    assert images.labels.tolist() == [3, 8, 0, 9]
    np.testing.assert_array_equal(images.read([0, 1, 2, 3]).images, TEST[0])
    train = cifar10(tmp_path / "cifar-10-batches-py", split="train")
    assert train.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    sent = pickle.dumps(train)
    assert len(sent) < 3072 * len(train) / 4
    mixed = [9, 0, 5, 5, 2]
    everything = np.concatenate([images for images, _ in TRAIN])
    np.testing.assert_array_equal(pickle.loads(sent).read(mixed).images, everything[mixed])
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(FileError, match="has no data_batch_3 of CIFAR-10"):
        cifar10(tmp_path, split="train")


@pytest.mark.parametrize("change", ["hostile", "cut", "empty", "large"])
def test_a_python_batch_that_is_not_the_published_one_is_not_opened(tmp_path, change):
    write_python_batches(tmp_path / "p", TEST)  # not published either
    file, mark = tmp_path / "p" / "test_batch", tmp_path / "mark"
    if change == "hostile":
        file.write_bytes(trap(mark))
    elif change == "cut":
        file.write_bytes(file.read_bytes()[:-1])
    elif change == "empty":
        file.write_bytes(b"")
    else:
        os.truncate(file, 1 << 40)
    with pytest.raises(FileError, match=r"test_batch must be the published file.*was not opened"):
        cifar10(tmp_path / "p")
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_even_with_the_right_checksum_a_name_that_no_batch_needs_is_refused(
    tmp_path, monkeypatch, protocol
):
    file, mark = tmp_path / "test_batch", tmp_path / "mark"
    file.write_bytes(pickle.dumps({**batch_dict(*TEST), "extra": Trap(mark)}, protocol))
    publish(monkeypatch, tmp_path)
    with pytest.raises(FileError, match=r"test_batch could not be read: it asks for \S+, which no"):
        cifar10(tmp_path)
    assert not mark.exists()
    pickle.loads(file.read_bytes())
    assert mark.exists()  # plain pickle would have run it


def test_the_real_test_set_in_its_real_form_is_itself(shared_data, tmp_path, monkeypatch):
    from PIL import Image

    mosaic = np.asarray(Image.open(shared_data / "cifar10" / "test.webp").convert("RGB"))
    tiles = mosaic.reshape(100, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
    with np.load(shared_data / "cifar10" / "labels.npz") as held:
        labels = held["test"].tolist()
    write_python_batches(tmp_path / "cifar-10-batches-py", (tiles, labels))
    # The size of the published file but for its shorter and longer file names.
    assert abs((tmp_path / "cifar-10-batches-py/test_batch").stat().st_size - 31_035_526) < 200_000
    publish(monkeypatch, tmp_path)
    images = cifar10(tmp_path)
    assert np.bincount(images.labels).tolist() == [1000] * 10
    # What everybody knows of the first ten test images.
    first = [images.classes[label] for label in images.labels[:10]]
    assert first[:5] == ["cat", "ship", "ship", "airplane", "frog"]
    assert first[5:] == ["frog", "automobile", "frog", "cat", "automobile"]
    digest = hashlib.sha256()
    digest.update(images.read(range(10_000)).images.tobytes())
    assert digest.hexdigest() == hashlib.sha256(tiles.tobytes()).hexdigest()
    assert digest.hexdigest() in (shared_data / "cifar10" / "SHA256").read_text()


IMAGES = drawn(5, 3)
LABELS = np.array([0, 9, 4, 4, 7], np.int32)


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "datasets"
    folder.mkdir()
    np.save(folder / "cifar10.1_v6_data.npy", IMAGES)
    np.save(folder / "cifar10.1_v6_labels.npy", LABELS)
    return folder


def test_arrays_are_read_from_the_folder_or_the_one_above(copy):
    images = cifar10_1(copy)
    assert (images.name, images.classes) == ("CIFAR-10.1 v6", tuple(NAMES))
    assert images.labels.tolist() == [0, 9, 4, 4, 7]
    np.testing.assert_array_equal(images.read(range(5)).images, IMAGES)
    assert len(cifar10_1(copy.parent)) == 5


FOG, PIXELATE = drawn(15, 1), drawn(15, 2)
LABELS_CIFAR10_C = np.array([6, 0, 9])


@pytest.fixture
def copy_cifar10_c(tmp_path):
    """Three images at five severities, in a folder above the arrays."""
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    np.save(folder / "fog.npy", FOG)
    np.save(folder / "pixelate.npy", PIXELATE)
    np.save(folder / "labels.npy", np.tile(LABELS_CIFAR10_C, 5))
    return tmp_path


def test_one_severity_is_its_stretch_of_the_rows_and_all_come_in_rising_order(copy_cifar10_c):
    images = cifar10_c(copy_cifar10_c, corruption="fog", severity=2)
    assert (images.name, images.classes) == ("CIFAR-10-C fog 2", tuple(NAMES))
    assert images.labels.tolist() == [6, 0, 9]
    assert images.fields["corruption"].tolist() == ["fog"] * 3
    np.testing.assert_array_equal(images.read([0, 1, 2]).images, FOG[3:6])
    images = cifar10_c(copy_cifar10_c / "CIFAR-10-C", corruption="pixelate")
    assert images.name == "CIFAR-10-C pixelate"
    assert images.fields["severity"].tolist() == [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3 + [5] * 3
    assert images.labels.tolist() == [6, 0, 9] * 5
    np.testing.assert_array_equal(images.read(range(15)).images, PIXELATE)
    np.testing.assert_array_equal(images.read([14, 0, 4, 5]).images, PIXELATE[[14, 0, 4, 5]])


def test_corruptions_and_severities_come_in_the_order_asked_for(copy_cifar10_c):
    for which in ("pixelate, fog", ["pixelate", "fog"]):
        images = cifar10_c(copy_cifar10_c, corruption=which, severity=1)
        expected = np.concatenate([PIXELATE[:3], FOG[:3]])
        np.testing.assert_array_equal(images.read(range(6)).images, expected)
    part = images.subset([4, 1])
    np.testing.assert_array_equal(part.read([0, 1]).images, expected[[4, 1]])
    assert part.fields["corruption"].tolist() == ["fog", "pixelate"]
    assert part.digest([0, 1]) == images.digest([4, 1])
    images = cifar10_c(copy_cifar10_c, corruption="fog", severity="5,1")
    assert images.fields["severity"].tolist() == [5] * 3 + [1] * 3
    np.testing.assert_array_equal(images.read(range(6)).images, FOG[[12, 13, 14, 0, 1, 2]])
    np.save(copy_cifar10_c / "CIFAR-10-C" / "my-rain.npy", FOG)
    assert len(cifar10_c(copy_cifar10_c, corruption="my-rain", severity="all")) == 15


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"corruption": "snow"}, "has no snow; the corruptions in it: fog, pixelate"),
        ({"severity": 6}, "severity"),
        ({"severity": "high"}, "severity"),
    ],
)
def test_what_is_not_there(copy_cifar10_c, options, words):
    with pytest.raises(InputError, match=words):
        cifar10_c(copy_cifar10_c, **options)


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
    with pytest.raises(FileError, match=r"contrast/1\.npy"):
        cifar10_c(tmp_path / "out", corruption="contrast")
