"""Lists and other libraries' data sets as sets of images."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from stored_images import draw_images
from torch.utils.data import Dataset, Subset

from shiftcal.datasets.arrays import SequenceImages

IMAGES = draw_images(6)
LABELS = [1, 0, 2, 2, 1, 0]


class Photos(Dataset):
    """A torch data set as people write them."""

    def __init__(self):
        self.asked = []
        self.inside = 0

    def __len__(self):
        return 6

    def __getitem__(self, index):
        self.inside += 1
        assert self.inside == 1, "two threads at once"
        self.asked.append(index)
        self.inside -= 1
        return Image.fromarray(IMAGES[index]), LABELS[index]


class Known(Photos):
    classes = ("a", "b", "c")
    targets = torch.tensor(LABELS)


def test_a_torch_data_set_gives_its_images_and_labels():
    held = SequenceImages(Photos())
    assert held.labels.tolist() == LABELS
    assert held.name == "Photos"
    np.testing.assert_array_equal(held.read(range(6), threads=3).images, IMAGES)
    part = SequenceImages(Subset(Photos(), [4, 2]))
    assert part.labels.tolist() == [1, 2]
    np.testing.assert_array_equal(part[1], IMAGES[2])


def test_targets_and_classes_are_taken_without_reading_the_images():
    known = Known()
    held = SequenceImages(known)
    assert held.labels.tolist() == LABELS
    assert held.classes == ("a", "b", "c")
    assert set(known.asked) == {0}


def test_a_list_may_hold_pictures_and_arrays_of_any_size_and_mode():
    small = draw_images(1, 20, 15)[0]
    see_through = Image.fromarray(IMAGES[2]).convert("RGBA")
    grey = IMAGES[3][..., 0]
    tensor = torch.from_numpy(IMAGES[4])
    held = SequenceImages([IMAGES[0], Image.fromarray(small), see_through, grey, tensor])
    np.testing.assert_array_equal(held[0], IMAGES[0])
    np.testing.assert_array_equal(held[1], small)
    np.testing.assert_array_equal(held[2], IMAGES[2])
    np.testing.assert_array_equal(held[3], np.repeat(grey[..., None], 3, axis=2))
    np.testing.assert_array_equal(held[4], IMAGES[4])
    assert held.labels is None
