"""What every set of images promises; chains and mixtures."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images, write_images

from shiftcal.datasets import MixedImages, mix_images
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_files import FileImages
from shiftcal.datasets.image_set import ChainImages, ImageSet
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
    for grey in (OneByOne(list(images[..., 0])), ArrayImages(images[..., 0])):
        expected = np.repeat(images[:3, ..., :1], 3, axis=3)
        np.testing.assert_array_equal(grey[2], expected[2])
        np.testing.assert_array_equal(grey.read([0, 1, 2]).images, expected)


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


IMAGES = draw_images(6)
ONE, TWO = np.array([0, 1, 2, 5]), np.array([3, 0, 4, 1])


def mixtures(whole, *, ratio=0.65, labels=(0, 1, 2, 3)):
    return MixedImages(whole, ONE, TWO, ratio=ratio, labels=np.array(labels), name="mixed")


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


def test_files_give_the_same_and_are_called_by_both_names(files):
    mixed, array = mixtures(files), mixtures(ArrayImages(IMAGES))
    np.testing.assert_array_equal(mixed.read(range(4)).images, array.read(range(4)).images)
    assert_mixed(array[3], IMAGES[5], IMAGES[1])
    assert mixed.ids([0, 3]) == ["0.png+3.png", "5.png+1.png"]
    assert array.ids([0]) == ["0+3"]


def test_images_are_framed_before_they_are_mixed(files):
    framing = Framing(resize=8, crop=6)
    framed = files.read(range(6), framing=framing).images
    found = mixtures(files).read(range(4), framing=framing).images
    assert_mixed(found, framed[ONE], framed[TWO])


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
    turned = MixedImages(files, TWO, ONE, ratio=0.65, labels=[0, 1, 2, 3], name="mixed")
    assert turned.digest(range(4)) != digest


RNG = np.random.default_rng(0)
PHOTOS = RNG.integers(0, 256, (300, 8, 9, 3), dtype=np.uint8)
LOGITS = RNG.standard_normal((300, 4))
PREDICTED = LOGITS.argmax(axis=1)


def test_only_images_of_different_predictions_are_mixed_and_the_first_gives_the_label():
    mixed = mix_images(PHOTOS, LOGITS)
    np.testing.assert_array_equal(mixed.labels, PREDICTED[mixed.first])
    assert mixed.classes is None
    assert (PREDICTED[mixed.first] != PREDICTED[mixed.second]).all()
    expected = 0.65 * PHOTOS[mixed.first].astype(float) + 0.35 * PHOTOS[mixed.second]
    found = mixed.read(np.arange(len(mixed))).images
    # half a level for rounding, and what float32 is off by
    np.testing.assert_allclose(found, expected, atol=0.5 + 1e-4)


def test_everyone_has_one_partner_from_the_whole_set():
    mixed = mix_images(PHOTOS, np.arange(300))  # all different: nobody is left out but by itself
    assert 290 <= len(mixed) <= 300
    assert len(set(mixed.first.tolist())) == len(set(mixed.second.tolist())) == len(mixed)
    # of a permutation inside batches of 108 no partner would be further than that
    assert np.abs(mixed.first - mixed.second).max() > 200
    assert (mixed.first != mixed.second).all()


def test_the_seed_decides_and_nothing_else():
    first, again = (
        mix_images(PHOTOS, LOGITS, seed=3),
        mix_images(PHOTOS, PREDICTED, seed=3),
    )
    np.testing.assert_array_equal(first.second, again.second)
    assert first.second.tolist() != mix_images(PHOTOS, LOGITS, seed=4).second.tolist()
