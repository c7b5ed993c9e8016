"""What every set does, whatever container it is in."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images

from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import FileError, InputError
from shiftcal.files import Framing


class OneByOne(ImageSet):
    """A container that can only give one image at a time, and not all of them."""

    def __init__(self, images, broken=(), **known):
        self.held, self.broken = images, set(broken)
        super().__init__(len(images), name="odd", **known)

    def _image(self, index):
        if index in self.broken:
            raise FileError(f"image {index} is torn.")
        return self.held[index]


def test_images_come_in_the_order_asked_for_and_in_colour():
    images = draw_images(5)
    for held in (OneByOne(list(images)), ArrayImages(images)):
        np.testing.assert_array_equal(held.read([3, 1, 3]).images, images[[3, 1, 3]])
        np.testing.assert_array_equal(held[-1], images[4])
        assert len(held) == 5
    grey = OneByOne(list(images[..., 0]))
    np.testing.assert_array_equal(grey[2], np.repeat(images[2, ..., :1], 3, axis=2))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_grey_images_of_an_array_come_in_colour_however_many_are_read(n):
    images = draw_images(5)[..., 0]
    batch = ArrayImages(images).read(np.arange(n))
    np.testing.assert_array_equal(batch.images, np.repeat(images[:n, ..., None], 3, axis=3))


@pytest.mark.parametrize("threads", [1, 3])
def test_images_that_cannot_be_read_are_left_out_and_said(threads):
    images = draw_images(5)
    batch = OneByOne(list(images), broken=[1, 4]).read([0, 1, 2, 4], threads=threads)
    assert batch.indices.tolist() == [0, 2]
    np.testing.assert_array_equal(batch.images, images[[0, 2]])
    assert batch.bad == {1: "image 1 is torn.", 4: "image 4 is torn."}
    nothing = OneByOne(list(images), broken=[3]).read([3])
    assert nothing.images.shape == (0, 0, 0, 3)
    assert nothing.bad


def test_an_image_that_cannot_be_framed_is_bad_and_named():
    images = [draw_images(1)[0], draw_images(1, 30, 30)[0]]
    held = OneByOne(images, fields={"id": ["small", "large"]})
    batch = held.read([0, 1], framing=Framing(crop=16))
    assert batch.indices.tolist() == [1]
    assert batch.bad[0].startswith("small of odd: images must be at least 16 pixels")


def test_batches_cover_the_set_once_and_the_last_is_smaller():
    images = draw_images(7)
    batches = list(ArrayImages(images).batches(3, framing=Framing(crop=8)))
    assert [batch.indices.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    joined = np.concatenate([batch.images for batch in batches])
    np.testing.assert_array_equal(joined, Framing(crop=8).of_images(images))
    with pytest.raises(InputError, match="size must be a whole number of at least 1; got 0"):
        next(ArrayImages(images).batches(0))


def test_a_subset_has_the_images_labels_fields_and_names_of_its_indices():
    images = draw_images(6)
    whole = OneByOne(
        list(images),
        labels=[0, 1, 2, 0, 1, 2],
        classes=["a", "b", "c"],
        fields={"id": [f"n{i}" for i in range(6)], "severity": [1, 1, 2, 2, 3, 3]},
    )
    part = whole.subset([5, 0, 3]).subset([2, 0])
    np.testing.assert_array_equal(part.read([0, 1]).images, images[[3, 5]])
    assert part.labels.tolist() == [0, 2]
    assert part.classes == ("a", "b", "c")
    assert part.fields["severity"].tolist() == [2, 3]
    assert part.ids([0, 1]) == ["n3", "n5"]
    assert part.digest([0]) == whole.digest([3])
    assert "2 of 3 of odd" in repr(part)
    assert whole.subset([1], name="one").name == "one"
    mask = np.array([True, False, False, False, True, False])
    assert whole.subset(mask).labels.tolist() == [0, 1]
    framed = part.read([0, 1], framing=Framing(crop=8)).images
    np.testing.assert_array_equal(framed, Framing(crop=8).of_images(images[[3, 5]]))


def test_the_digest_follows_pixels_and_order_and_nothing_else():
    images = draw_images(4)
    first = OneByOne(list(images), labels=[0, 1, 0, 1])
    again = ArrayImages(images.copy(), name="other")
    assert first.digest([0, 1, 2]) == again.digest([0, 1, 2]) == first.digest([0, 1, 2], threads=3)
    assert first.digest([1, 0, 2]) != first.digest([0, 1, 2])
    changed = images.copy()
    changed[2, 0, 0, 0] ^= 1
    assert ArrayImages(changed).digest([0, 1, 2]) != again.digest([0, 1, 2])
    assert ArrayImages(changed).digest([0, 1]) == again.digest([0, 1])
    assert OneByOne(list(images), broken=[1]).digest([0, 1]) != first.digest([0, 1])


def test_relabelled_leaves_the_set_itself_as_it_was():
    held = ArrayImages(draw_images(3), labels=[0, 1, 1], classes=["a", "b"])
    other = held.relabelled(["b", "b", "a"])
    assert other.labels.tolist() == [1, 1, 0]
    assert other.classes == ("a", "b")
    assert held.labels.tolist() == [0, 1, 1]
    assert held.relabelled(None).labels is None
    assert held.relabelled([2, 0, 1], classes=["x", "y", "z"]).classes == ("x", "y", "z")
    np.testing.assert_array_equal(other[1], held[1])


def test_a_subset_goes_to_another_process():
    held = ArrayImages(draw_images(4), labels=[0, 1, 0, 1]).subset([3, 1])
    again = pickle.loads(pickle.dumps(held))
    np.testing.assert_array_equal(again.read([0, 1]).images, held.read([0, 1]).images)
    assert again.labels.tolist() == [1, 1]
