"""Images in arrays, in .npy and .npz files and in sequences."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from stored_images import draw_images
from torch.utils.data import Dataset, Subset

from shiftcal.datasets.arrays import ArrayImages, SequenceImages, array_file
from shiftcal.errors import FileError, InputError

IMAGES = draw_images(20)
LABELS = np.arange(20) % 3


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_file_has_all_it_needs(tmp_path, save):
    ids = np.array([f"img{i}" for i in range(20)])
    save(
        tmp_path / "x.npz", labels=LABELS, images=IMAGES, classes=np.array(["a", "b", "c"]), ids=ids
    )
    held = array_file(tmp_path / "x.npz")
    np.testing.assert_array_equal(held.read(range(20)).images, IMAGES)
    assert held.labels.tolist() == LABELS.tolist()
    assert held.classes == ("a", "b", "c")
    assert held.ids([0, 7]) == ["img0", "img7"]
    again = pickle.loads(pickle.dumps(held))
    np.testing.assert_array_equal(again.read([3, 19]).images, IMAGES[[3, 19]])
    mapped = save is np.savez
    assert (held._place is not None) is mapped
    assert (len(pickle.dumps(held)) < 4000) is mapped


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_pickled_objects_are_refused_and_not_run(tmp_path, name):
    ran = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return (ran.touch, ())

    evil = np.array([Evil()] * 3, dtype=object)
    if name == "x.npy":
        np.save(tmp_path / name, evil, allow_pickle=True)
    else:
        np.savez(tmp_path / name, images=evil)
    ran.unlink(missing_ok=True)
    with pytest.raises(FileError, match="holds pickled Python objects, which are never loaded"):
        array_file(tmp_path / name)
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(FileError, match=r"p.npy"):
        array_file(tmp_path / "p.npy")
    np.savez(tmp_path / "l.npz", images=IMAGES, labels=evil)
    with pytest.raises(FileError, match="holds pickled Python objects"):
        array_file(tmp_path / "l.npz")
    assert not ran.exists()


@pytest.fixture
def mapped(tmp_path):
    images = draw_images(50)
    np.save(tmp_path / "images.npy", images)
    return np.load(tmp_path / "images.npy", mmap_mode="r")


VIEWS = {
    "whole": lambda x: x,
    "part": lambda x: x[10:20],
    "backwards": lambda x: x[::-1],
    "one channel": lambda x: x[..., 1],
    "one image": lambda x: x[7],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_mapped_file_is_sent_by_name_and_read_the_same(mapped, view):
    held = ArrayImages(VIEWS[view](mapped))
    sent = pickle.dumps(held)
    assert len(sent) < 1000  # the 50 images are 14,850 bytes
    again = pickle.loads(sent)
    assert len(pickle.dumps(again)) == len(sent)
    np.testing.assert_array_equal(again.read(range(len(held))).images, [x for x in held])


def test_pixels_changed_in_memory_are_sent_themselves(tmp_path):
    np.save(tmp_path / "images.npy", draw_images(4))
    private = np.load(tmp_path / "images.npy", mmap_mode="c")
    private[0] = 7
    again = pickle.loads(pickle.dumps(ArrayImages(private)))
    assert (again[0] == 7).all()


def test_a_file_that_changed_or_went_is_said(mapped, tmp_path):
    sent = pickle.dumps(ArrayImages(mapped))
    np.save(tmp_path / "other.npy", draw_images(3))
    (tmp_path / "other.npy").replace(tmp_path / "images.npy")
    with pytest.raises(FileError, match=r"images.npy has changed since the set was made"):
        pickle.loads(sent)
    (tmp_path / "images.npy").unlink()
    with pytest.raises(FileError, match=r"images.npy could not be read: No such file"):
        pickle.loads(sent)


def test_a_stretch_of_the_array_is_not_copied_and_the_array_is_never_changed():
    images = draw_images(6)
    before = images.copy()
    batch = ArrayImages(images).read([2, 3, 4])
    assert np.shares_memory(batch.images, images)
    np.testing.assert_array_equal(ArrayImages(images).read([4, 2]).images, before[[4, 2]])
    np.testing.assert_array_equal(images, before)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 3, 16, 16), np.uint8), "channels last"),
        (np.zeros((2, 16, 16, 3)), "must be uint8"),
        (np.zeros((0, 16, 16, 3), np.uint8), "at least one image; got none"),
        (np.zeros((2, 4, 4, 3), np.uint8), "at least 8 pixels"),
    ],
)
def test_arrays_that_are_no_images_are_refused(images, words):
    with pytest.raises(InputError, match=words):
        ArrayImages(images)


PHOTOS = draw_images(6)
TRUTH = [1, 0, 2, 2, 1, 0]


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
        return Image.fromarray(PHOTOS[index]), TRUTH[index]


class Known(Photos):
    classes = ("a", "b", "c")
    targets = torch.tensor(TRUTH)


def test_a_torch_data_set_gives_its_images_and_labels():
    held = SequenceImages(Photos())
    assert held.labels.tolist() == TRUTH
    assert held.name == "Photos"
    np.testing.assert_array_equal(held.read(range(6), threads=3).images, PHOTOS)
    known = Known()
    assert SequenceImages(known).classes == ("a", "b", "c")
    assert set(known.asked) == {0}  # targets are taken without reading the images
    part = SequenceImages(Subset(Photos(), [4, 2]))
    assert part.labels.tolist() == [1, 2]
    np.testing.assert_array_equal(part[1], PHOTOS[2])


def test_a_list_may_hold_pictures_and_arrays_of_any_size_and_mode():
    small = draw_images(1, 20, 15)[0]
    see_through = Image.fromarray(PHOTOS[2]).convert("RGBA")
    grey = PHOTOS[3][..., 0]
    tensor = torch.from_numpy(PHOTOS[4])
    held = SequenceImages([PHOTOS[0], Image.fromarray(small), see_through, grey, tensor])
    np.testing.assert_array_equal(held[0], PHOTOS[0])
    np.testing.assert_array_equal(held[1], small)
    np.testing.assert_array_equal(held[2], PHOTOS[2])
    np.testing.assert_array_equal(held[3], np.repeat(grey[..., None], 3, axis=2))
    np.testing.assert_array_equal(held[4], PHOTOS[4])
    assert held.labels is None
