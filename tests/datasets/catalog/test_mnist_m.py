"""MNIST-M: files with a list of labels, arrays, and the real images in the real layout."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.digits import mnist_m


@pytest.fixture
def copy(tmp_path):
    write_pictures(tmp_path / "mnist_m" / "mnist_m_test", [f"0000000{i}.png" for i in range(3)])
    lines = "00000002.png 5 \n00000000.png 7\n00000001.png 0\n"
    (tmp_path / "mnist_m" / "mnist_m_test_labels.txt").write_text(lines)
    return tmp_path / "mnist_m"


def test_the_list_gives_the_order_and_the_labels(copy):
    for root in (copy, copy.parent):
        images = mnist_m(root, split="test")
        assert images.labels.tolist() == [5, 7, 0]
        assert images.ids([0, 1, 2]) == ["00000002.png", "00000000.png", "00000001.png"]
        assert [int(images[i].max()) for i in range(3)] == [20, 0, 10]
        assert images.classes == tuple("0123456789")


def test_real_images_come_back_from_the_real_layout(tmp_path, shared_data):
    mosaic = np.asarray(Image.open(shared_data / "digits" / "mnistm_test.webp").convert("RGB"))
    tiles = mosaic[: 2 * 32].reshape(2, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4)
    tiles = tiles.reshape(200, 32, 32, 3)
    digits = np.load(shared_data / "digits" / "mnistm_test_labels.npy")[:200]
    (tmp_path / "mnist_m_test").mkdir()
    lines = []
    for i, (tile, digit) in enumerate(zip(tiles, digits, strict=True)):
        Image.fromarray(tile).save(tmp_path / "mnist_m_test" / f"{i:08d}.png")
        lines.append(f"{i:08d}.png {digit}\n")
    (tmp_path / "mnist_m_test_labels.txt").write_text("".join(lines))
    images = mnist_m(tmp_path)
    np.testing.assert_array_equal(images.labels, digits)
    assert images.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    np.testing.assert_array_equal(images.read(np.arange(200)).images, tiles)
