"""Sets one after the other."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images, write_images

from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import FileImages
from shiftcal.datasets.image_set import ChainImages
from shiftcal.errors import InputError
from shiftcal.files import Framing

FIRST, SECOND = draw_images(3), draw_images(2, seed=1)
BOTH = np.concatenate([FIRST, SECOND])


@pytest.fixture
def stored(tmp_path):
    """The second part as files, of which the last is no image."""
    write_images(tmp_path, SECOND, ["0.png", "1.png"])
    (tmp_path / "2.png").write_bytes(b"no image")
    return FileImages(tmp_path, ["0.png", "1.png", "2.png"], name="files")


def test_images_labels_and_fields_come_in_order():
    parts = [
        ArrayImages(FIRST, labels=[0, 1, 0], classes=["a", "b"], fields={"id": ["x", "y", "z"]}),
        ArrayImages(SECOND, labels=[1, 1], classes=["a", "b"], fields={"id": ["v", "w"]}),
    ]
    chain = pickle.loads(pickle.dumps(ChainImages(parts, name="both")))
    assert (len(chain), chain.name, chain.classes) == (5, "both", ("a", "b"))
    assert chain.labels.tolist() == [0, 1, 0, 1, 1]
    assert chain.ids([4, 0]) == ["w", "x"]
    np.testing.assert_array_equal(chain.read([4, 0, 2]).images, BOTH[[4, 0, 2]])
    np.testing.assert_array_equal(chain[3], SECOND[0])
    assert chain.digest(range(5)) == ArrayImages(BOTH).digest(range(5))


def test_parts_of_different_kinds_are_read_each_in_its_way(stored):
    chain = ChainImages([ArrayImages(FIRST), stored], name="mixed")
    batch = chain.read(range(6), threads=2)
    assert batch.indices.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(batch.images, BOTH)
    assert "2.png cannot be read as an image" in batch.bad[5]
    assert chain.ids([5]) == ["5"]


def test_parts_of_different_sizes_need_a_framing():
    chain = ChainImages([ArrayImages(FIRST), ArrayImages(draw_images(1, 20, 20))], name="sizes")
    with pytest.raises(InputError, match="must have one size"):
        chain.read([0, 3])
    assert chain.read([0, 3], framing=Framing(resize=9, crop=9)).images.shape == (2, 9, 9, 3)


def test_ready_made_is_what_all_parts_are():
    first, second = ArrayImages(FIRST), ArrayImages(SECOND)
    first.ready_made = second.ready_made = 224
    assert ChainImages([first, second], name="x").ready_made == 224
    assert ChainImages([first.subset([1]), second], name="x").ready_made == 224
    second.ready_made = None
    assert ChainImages([first, second], name="x").ready_made is None


def test_nothing_is_no_chain():
    with pytest.raises(InputError, match="both must consist of at least one set"):
        ChainImages([], name="both")
