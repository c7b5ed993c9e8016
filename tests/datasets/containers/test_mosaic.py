"""Many small images in one picture."""

from __future__ import annotations

import copy
import hashlib
import pickle
import warnings

import numpy as np
import pytest
from PIL import Image
from stored_images import draw_images

from shiftcal.datasets import as_image_set
from shiftcal.datasets.image_files import mosaic
from shiftcal.errors import FileError, InputError, MissingData

TILES = draw_images(12, 16, 24)


def pasted(path, tiles, columns, rows=None):
    """Tiles pasted one by one, row by row, by Pillow."""
    height, width = tiles.shape[1:3]
    rows = rows or -(-len(tiles) // columns)
    whole = Image.new("RGB", (columns * width, rows * height))
    for i, tile in enumerate(tiles):
        whole.paste(Image.fromarray(tile), (i % columns * width, i // columns * height))
    whole.save(path, lossless=True)
    return path


@pytest.fixture
def picture(tmp_path):
    return pasted(tmp_path / "x.png", TILES, columns=4)


@pytest.mark.parametrize("ending", ["png", "webp"])
def test_tiles_come_row_by_row(tmp_path, ending):
    file = pasted(tmp_path / f"x.{ending}", TILES, columns=4)
    images = as_image_set(f"mosaic:{file}?tile=16x24")
    np.testing.assert_array_equal(images.read(range(12)).images, TILES)
    np.testing.assert_array_equal(images[7], TILES[7])
    assert images.labels is None
    assert images.name == str(file)
    assert images.ids([3]) == ["3"]


def test_labels_are_given_or_in_a_file_of_any_kind(picture, tmp_path):
    wanted = [i % 3 for i in range(12)]
    np.savez(tmp_path / "l.npz", test=wanted, labels=[0] * 12)
    (tmp_path / "l.csv").write_text("id,label\n" + "".join(f"{i},{i % 3}\n" for i in range(12)))
    line = f"mosaic:{picture}?tile=16x24&labels={tmp_path}"
    assert as_image_set(f"{line}/l.npz:test").labels.tolist() == wanted
    assert as_image_set(f"{line}/l.npz").labels.tolist() == [0] * 12
    assert as_image_set(f"{line}/l.csv").labels.tolist() == wanted
    named = mosaic(picture, tile="16x24", labels=list("abc") * 4, classes=["c", "b", "a"])
    assert named.labels.tolist() == [2, 1, 0] * 4
    assert named.classes == ("c", "b", "a")
    later = as_image_set(f"mosaic:{picture}?tile=16x24", labels=f"{tmp_path}/l.npz:test")
    assert later.labels.tolist() == wanted


def test_empty_tiles_of_the_last_row_have_no_label(tmp_path):
    file = pasted(tmp_path / "x.png", TILES[:10], columns=4)
    images = mosaic(file, tile="16x24", labels=np.zeros(10, int))
    assert len(images) == 10
    np.testing.assert_array_equal(images[9], TILES[9])
    assert len(mosaic(file, tile="16x24")) == 12
    with pytest.raises(InputError, match=r"12 tiles, 4 a row, and there are 9 labels"):
        mosaic(file, tile="16x24", labels=[0] * 9)


def test_a_row_without_labels_and_surplus_labels_are_refused(tmp_path, picture):
    file = pasted(tmp_path / "y.png", TILES[:8], columns=4, rows=3)
    with pytest.raises(InputError, match=r"12 tiles, 4 a row, and there are 8 labels. Check tile"):
        mosaic(file, tile="16x24", labels=[0] * 8)
    with pytest.raises(InputError, match="13"):
        mosaic(picture, tile="16x24", labels=[0] * 13)
    np.save(tmp_path / "l.npy", np.zeros(13, int))
    with pytest.raises(FileError, match=r"every image of .*x.png, 12 in order; it has 13"):
        mosaic(picture, tile="16x24", labels=tmp_path / "l.npy")


def test_some_tiles_are_kept_by_a_mask_or_by_indices(picture, tmp_path):
    mask = np.arange(12) % 3 == 1
    np.savez(tmp_path / "m.npz", mask=mask, some=[7, 0])
    labels = list(range(12))
    line = f"mosaic:{picture}?tile=16x24&keep={tmp_path}/m.npz"
    kept = as_image_set(f"{line}:mask")
    np.testing.assert_array_equal(kept.read(range(4)).images, TILES[mask])
    assert kept.name == f"4 of {picture}"
    some = mosaic(picture, tile="16x24", labels=labels, keep=f"{tmp_path}/m.npz:some", name="two")
    assert some.labels.tolist() == [7, 0]
    assert some.ids([0]) == ["7"]
    assert some.name == "two"
    assert mosaic(picture, tile="16x24", labels=labels, keep=mask).labels.tolist() == [1, 4, 7, 10]


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ([True] * 11, r"every image of .*x.png, shape \(12,\), .* got shape \(11,\)"),
        ([False] * 12, "leave at least one"),
        ([12], "indices must be from 0 to 11"),
        ([0.5], "indices must be whole numbers"),
        ("l.npy", "must name an array, FILE.npz:KEY; got 'l.npy'"),
        ("{}/m.npz", "which of its arrays is meant must be said; it holds 'a'. Name .* m.npz:a"),
        ("{}/m.npz:b", "no array 'b'; it holds 'a'"),
    ],
)
def test_what_cannot_be_kept_is_refused(picture, tmp_path, keep, words):
    np.savez(tmp_path / "m.npz", a=[1])
    keep = keep.format(tmp_path) if isinstance(keep, str) else keep
    with pytest.raises(InputError, match=words):
        mosaic(picture, tile="16x24", keep=keep)


def test_another_process_decodes_the_file_itself(picture, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images = mosaic("x.png", tile="16x24", labels=[1, 0] * 6, keep=[3, 1])
    sent = pickle.dumps(images)
    assert TILES[3].tobytes()[:64] not in sent
    monkeypatch.chdir("/")
    other = pickle.loads(sent)
    assert other.digest([0, 1]) == images.digest([0, 1])
    assert other.labels.tolist() == [0, 0]
    pasted(picture, TILES[::-1], columns=4)
    with pytest.raises(FileError, match="has changed since the set was made; make it again"):
        pickle.loads(sent)
    picture.unlink()
    with pytest.raises(MissingData, match="No such file"):
        pickle.loads(sent)


def test_a_copy_in_this_process_needs_no_file(picture):
    images = mosaic(picture, tile="16x24")
    picture.unlink()
    assert copy.copy(images)._array is images._array
    assert images.relabelled([0] * 12).labels.tolist() == [0] * 12


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        (17, r"tiles of 17 x 17 pixels \(height x width\); it is 48 x 96, no multiple"),
        ("24x20", "tiles of 24 x 20 .*Say tile=SIDE or tile=HEIGHTxWIDTH"),
        ("32x24", "tiles of 32 x 24 "),
        ("wide", "tile must be a side in pixels, or HEIGHTxWIDTH; got 'wide'"),
        (7, "tile must be a whole number of at least 8; got 7"),
        ("8x4", "tile must be a whole number of at least 8; got 4"),
        ((16, 24), "tile must be a whole number"),
    ],
)
def test_tiles_that_do_not_fill_the_picture_are_refused(picture, tile, words):
    with pytest.raises(InputError, match=words):
        mosaic(picture, tile=tile)


def test_what_is_no_picture_is_refused(tmp_path):
    (tmp_path / "x.png").write_bytes(b"no picture")
    with pytest.raises(FileError, match=r"x\.png cannot be read as an image"):
        mosaic(tmp_path / "x.png", tile=8)
    with pytest.raises(FileError, match="is a folder, a pipe or the like, not an image"):
        mosaic(tmp_path, tile=8)
    with pytest.raises(MissingData, match=r"none\.webp cannot be read"):
        as_image_set(f"mosaic:{tmp_path}/none.webp?tile=8")
    with pytest.raises(InputError, match="mosaic needs the option tile"):
        as_image_set(f"mosaic:{tmp_path}/x.png")


def test_a_picture_that_would_fill_the_memory_is_refused_before_it_is_decoded(tmp_path):
    limit = Image.MAX_IMAGE_PIXELS
    Image.new("1", (16384, 8192)).save(tmp_path / "x.png")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with pytest.raises(FileError, match="16384 x 8192 pixels; more than 89,478,485 are not"):
            mosaic(tmp_path / "x.png", tile=32)
    assert limit == Image.MAX_IMAGE_PIXELS


def test_the_test_images_of_cifar10_are_the_published_ones(shared_data):
    folder = shared_data / "cifar10"
    line = f"mosaic:{folder}/test.webp?tile=32&labels={folder}/labels.npz:test"
    images = as_image_set(line)
    pixels = images.read(range(10_000)).images
    wanted = dict(row.split() for row in (folder / "SHA256").read_text().splitlines())
    assert hashlib.sha256(pixels.tobytes()).hexdigest() == wanted["test"]
    assert np.bincount(images.labels).tolist() == [1000] * 10
