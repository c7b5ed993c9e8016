"""Many small images in one picture."""

from __future__ import annotations

import hashlib
import pickle

import numpy as np
import pytest
from PIL import Image
from stored_images import draw_images

from shiftcal.datasets import as_image_set
from shiftcal.datasets.image_files import mosaic
from shiftcal.errors import InputError

TILES = draw_images(12, 16, 16)


@pytest.fixture
def picture(tmp_path):
    """Four tiles in a row, row by row; labels of all but the last."""
    rows = TILES.reshape(3, 4, 16, 16, 3).swapaxes(1, 2).reshape(48, 64, 3)
    Image.fromarray(rows).save(tmp_path / "x.png")
    np.savez(tmp_path / "x.npz", truth=np.arange(11) % 3, mask=np.arange(11) > 3, few=[0, 1])
    return tmp_path / "x.png"


def test_tiles_come_row_by_row_with_their_labels(picture):
    np.testing.assert_array_equal(mosaic(picture, tile=16).read(range(12)).images, TILES)
    line = f"mosaic:{picture}?tile=16&labels={picture.with_suffix('.npz')}:truth"
    images = as_image_set(line)
    assert images.labels.tolist() == [i % 3 for i in range(11)]
    kept = as_image_set(f"{line}&keep={picture.with_suffix('.npz')}:mask")
    np.testing.assert_array_equal(kept.read(range(7)).images, TILES[4:11])
    assert kept.labels.tolist() == [i % 3 for i in range(4, 11)]
    assert pickle.loads(pickle.dumps(images)).digest([0, 7]) == images.digest([0, 7])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "needs the option tile"),
        ("tile=4", "tile must be a whole number of at least 8"),
        ("tile=20", "tiles of 20 x 20"),
        ("tile=16&labels={}.npz:few", "2 labels"),
        ("tile=16&labels={}.npz:none", "no array 'none'"),
        ("tile=16&colour=red", "no option 'colour'"),
    ],
)
def test_what_does_not_fit_is_rejected(picture, options, words):
    with pytest.raises(InputError, match=words):
        as_image_set(f"mosaic:{picture}?{options.format(picture.with_suffix(''))}".rstrip("?"))


def test_the_test_images_of_cifar10_are_the_published_ones(shared_data):
    folder = shared_data / "cifar10"
    line = f"mosaic:{folder}/test.webp?tile=32&labels={folder}/labels.npz:test"
    images = as_image_set(line)
    pixels = images.read(range(10_000)).images
    wanted = dict(row.split() for row in (folder / "SHA256").read_text().splitlines())
    assert hashlib.sha256(pixels.tobytes()).hexdigest() == wanted["test"]
    assert np.bincount(images.labels).tolist() == [1000] * 10
