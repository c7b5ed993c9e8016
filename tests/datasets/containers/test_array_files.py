"""Images in .npy and .npz files: mapped where that is possible, never unpickled."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images

from shiftcal.datasets.arrays import array_file
from shiftcal.errors import FileError

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
    assert isinstance(held._array, np.memmap) is mapped
    assert (len(pickle.dumps(held)) < 4000) is mapped


def test_fortran_order_and_grey_images_are_mapped_too(tmp_path):
    grey = np.asfortranarray(IMAGES[..., 0])
    np.savez(tmp_path / "x.npz", images=grey)
    held = array_file(tmp_path / "x.npz")
    np.testing.assert_array_equal(held[5], np.repeat(grey[5][..., None], 3, axis=2))


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


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_cut_files_are_refused(tmp_path, save):
    save(tmp_path / "x.npz", images=IMAGES)
    np.save(tmp_path / "x.npy", IMAGES)
    for name in ("x.npz", "x.npy"):
        whole = (tmp_path / name).read_bytes()
        for length in (0, 5, 60, len(whole) // 2, len(whole) - 1):
            (tmp_path / name).write_bytes(whole[:length])
            with pytest.raises(FileError, match=rf"{name} (could not be read as|is not)"):
                array_file(tmp_path / name)


def test_an_npy_header_that_promises_terabytes_is_refused(tmp_path):
    with (tmp_path / "x.npy").open("wb") as file:
        head = {"descr": "|u1", "fortran_order": False, "shape": (10**9, 224, 224, 3)}
        np.lib.format.write_array_header_1_0(file, head)
        file.write(bytes(1000))
    with pytest.raises(FileError, match=r"x.npy could not be read as a .npy array"):
        array_file(tmp_path / "x.npy")


def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("shiftcal.files._LARGE", 10_000)
    np.savez_compressed(tmp_path / "x.npz", images=np.zeros((100, 32, 32, 3), np.uint8))
    with pytest.raises(FileError, match=r"would unpack from \d+ bytes to 307328"):
        array_file(tmp_path / "x.npz")
