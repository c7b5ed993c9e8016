"""``corrupt``: what it takes, rejects and returns."""

from __future__ import annotations

import errno
import os
import sys

import numpy as np
import pytest
from photos import photos

import shiftcal as sc
from shiftcal.corruptions import corruption as _engine
from shiftcal.corruptions import images as _corrupt
from shiftcal.errors import FileError, InputError, UnknownName

IMAGES = photos(24, 40)


@pytest.mark.parametrize(
    ("side", "table"),
    [(45, "cifar"), (46, "tiny-imagenet"), (119, "tiny-imagenet"), (120, "imagenet")],
)
def test_the_table_is_the_one_nearest_in_ratio_to_the_shorter_side(side, table):
    assert _engine.table_for(side, 2 * side) == table
    assert _engine.table_for(2 * side, side) == table


@pytest.mark.parametrize(
    ("shape", "view"),
    [
        ((24, 40, 3), lambda x: x[1]),
        ((24, 40), lambda x: x[1, ..., 1]),
        ((24, 40, 1), lambda x: x[1, ..., 1:2]),
        ((4, 24, 40), lambda x: x[..., 1]),
        ((4, 24, 40, 1), lambda x: x[..., 1:2]),
        ((0, 24, 40, 3), lambda x: x[:0]),
        ((0, 24, 40), lambda x: x[:0, ..., 1]),
    ],
)
def test_the_shape_that_came_is_the_shape_that_goes(shape, view):
    images = view(IMAGES)
    assert images.shape == shape
    assert sc.corrupt(images, "pixelate", severity=2).shape == shape


def test_a_pillow_image_and_a_list_will_do():
    from PIL import Image

    expected = sc.corrupt(IMAGES[0], "contrast", severity=2)
    assert np.array_equal(sc.corrupt(Image.fromarray(IMAGES[0]), "contrast", severity=2), expected)
    assert np.array_equal(sc.corrupt(list(IMAGES), "contrast", severity=2)[0], expected)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (IMAGES / 255, r"must be uint8, 0 to 255; got float64.* \(images \* 255\).round"),
        (IMAGES > 9, "must be uint8, 0 to 255; got bool"),
        (IMAGES.transpose(0, 3, 1, 2), r"channels last.*got shape \(4, 3, 24, 40\).*transpose"),
        (IMAGES[0].transpose(2, 0, 1), r"transpose\(1, 2, 0\)"),
        (np.zeros((9, 9, 4), np.uint8), r"Leave transparency out: images\[..., :3\]"),
        (np.zeros(9, np.uint8), r"got shape \(9,\)"),
        (np.zeros((7, 9, 3), np.uint8), "at least 8 pixels high and wide; these are 7 x 9"),
        (np.ma.masked_less(IMAGES, 9), "must not be masked"),
        ([IMAGES[0], IMAGES[0, 1:]], "must have one size"),
    ],
)
def test_what_is_no_image_is_rejected(images, words):
    with pytest.raises(InputError, match=words):
        sc.corrupt(images, "contrast", severity=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"severity": 6}, "severity must be a whole number of at least 0 and at most 5; got 6"),
        ({"severity": 2.5}, "severity must be a whole number"),
        ({"severity": True}, "severity must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"seed": 2**129}, "seed must be a whole number"),
        ({"threads": 0}, "threads must be a whole number of at least 1"),
        ({"first_index": 2**63}, "first_index must be a whole number"),
        ({"table": "imagnet"}, "table must be one of 'auto', 'cifar'.*'imagenet'"),
        ({"corruption": "pixalate"}, r"no corruption is called 'pixalate'.*'pixelate'"),
        ({"corruption": 7}, r"must be a name such as 'pixelate'.*got 7"),
    ],
)
def test_options_that_cannot_be_used_are_rejected(options, words):
    options = {"corruption": "contrast", "severity": 1} | options
    with pytest.raises((InputError, UnknownName), match=words):
        sc.corrupt(IMAGES, **options)


@pytest.fixture
def small_pieces(monkeypatch):
    """Files are handled three images at a time."""
    monkeypatch.setattr(_corrupt, "PIECE_BYTES", 3 * IMAGES[0].nbytes)


@pytest.mark.parametrize("grey", [False, True])
def test_a_file_becomes_a_file_with_the_same_pixels_as_in_memory(tmp_path, small_pieces, grey):
    images = np.tile(IMAGES, (3, 1, 1, 1))[..., 1] if grey else np.tile(IMAGES, (3, 1, 1, 1))
    np.save(tmp_path / "in.npy", images)
    expected = sc.corrupt(images, "gaussian_noise", severity=3, seed=5)
    mapped = np.load(tmp_path / "in.npy", mmap_mode="r")
    for source in (tmp_path / "in.npy", str(tmp_path / "in.npy"), mapped, images):
        made = sc.corrupt(source, "gaussian_noise", severity=3, seed=5, out=tmp_path / "out.npy")
        assert isinstance(made, np.memmap)
        assert not made.flags.writeable
        assert np.array_equal(made, expected)
        assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.npy", "out.npy"]


def test_the_file_that_is_read_is_never_written(tmp_path):
    np.save(tmp_path / "in.npy", IMAGES)
    (tmp_path / "link.npy").symlink_to(tmp_path / "in.npy")
    for out in ("in.npy", "link.npy"):
        with pytest.raises(InputError, match="not the one that is read"):
            sc.corrupt(tmp_path / "in.npy", "contrast", severity=1, out=tmp_path / out)
    assert np.array_equal(np.load(tmp_path / "in.npy"), IMAGES)


def test_bad_files_are_rejected_by_name(tmp_path):
    (tmp_path / "text.npy").write_text("not an array")
    np.savez(tmp_path / "two.npz", a=IMAGES, b=IMAGES)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    whole = tmp_path / "cut.npy"
    np.save(whole, IMAGES)
    os.truncate(whole, 500)
    for name in ("missing.npy", "text.npy", "objects.npy", "cut.npy", "two.npz"):
        with pytest.raises(FileError, match=rf"{name}"):
            sc.corrupt(tmp_path / name, "contrast", severity=1)
    with pytest.raises(InputError, match=r"out must be an .npy file"):
        sc.corrupt(IMAGES, "contrast", severity=1, out="out.png")


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_what_breaks_off_leaves_the_old_file_and_nothing_else(
    tmp_path, small_pieces, monkeypatch, error
):
    out = tmp_path / "out.npy"
    np.save(out, IMAGES)
    calls = []

    def broken(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise error
        return _engine.run(*args, **options)

    monkeypatch.setattr(_corrupt, "run", broken)
    expected = FileError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        sc.corrupt(np.tile(IMAGES, (3, 1, 1, 1)), "contrast", severity=1, out=out)
    assert np.array_equal(np.load(out), IMAGES)
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_mapped_file_is_corrupted_in_bounded_memory(tmp_path):
    import subprocess

    # 600 MB of images; the process itself, scipy included, takes about 200 MB.
    code = """
import sys, numpy as np, shiftcal as sc
shape = (200_000, 32, 32, 3)
np.lib.format.open_memmap(sys.argv[1], mode="w+", dtype=np.uint8, shape=shape).flush()
sc.corrupt(sys.argv[1], "contrast", severity=1, out=sys.argv[2])
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")))
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "in.npy"), str(tmp_path / "out.npy")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 450


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own():
    import subprocess

    # In a process of its own, since forking the one that runs the tests is no good idea.
    code = """
import os, numpy as np, shiftcal as sc
images = np.zeros((800, 32, 32, 3), np.uint8)
expected = sc.corrupt(images, "gaussian_noise", severity=1, threads=2)
child = os.fork()
if child == 0:
    made = sc.corrupt(images, "gaussian_noise", severity=1, threads=2)
    os._exit(0 if np.array_equal(made, expected) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "0\n"
