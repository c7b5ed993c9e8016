from __future__ import annotations

import hashlib
import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo, photos
from PIL import Image

from shiftcal.corruptions._frost_layers import SIDE
from shiftcal.corruptions._frost_textures import frost_textures
from shiftcal.corruptions._keys import stream_keys
from shiftcal.corruptions._shrink import shrink
from shiftcal.corruptions.frost import Frost
from shiftcal.errors import FileError, InputError

SCALES = {"cifar": 0.2, "tiny-imagenet": 0.3, "imagenet": 1}


def textures(scale):
    """The five procedural textures as images."""
    texels, starts, sizes = frost_textures(scale)
    ends = [*starts[1:], len(texels)]
    return [
        texels[start:end].reshape(*size, 3)
        for start, end, size in zip(starts, ends, sizes, strict=True)
    ]


def drawn_places(index, severity, choices, seed=0):
    """Texture, row and column of an image: the first three words times the number of choices."""
    from shiftcal.corruptions._kernels.counter_kernels import fill_words

    key = stream_keys(seed=seed, corruption="frost", severity=severity, indices=np.array([index]))
    words = np.empty(3, np.uint32)
    fill_words(words, 0, key[0, 0], key[0, 1])
    which = int(words[0]) * len(choices) >> 32
    rows, columns = choices[which]
    return which, int(words[1]) * int(rows) >> 32, int(words[2]) * int(columns) >> 32


def recipe(image, crop, a, b):
    return np.clip(a * image.astype(np.float64) + b * crop, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("table", SCALES)
@pytest.mark.parametrize("shape", [(32, 32), (8, 9), (40, 52), (64, 64), (224, 224), (200, 150)])
def test_equals_the_recipe_at_the_drawn_place_of_a_procedural_texture(table, shape):
    height, width = shape
    pictures = textures(SCALES[table])
    images = np.concatenate([photos(height, width), odd_images(height, width)])
    for severity in range(1, 6):
        got = corrupted(images, "frost", severity, table)
        a, b, scale = Frost().setting(severity, table=table)
        assert scale == SCALES[table]
        for i, image in enumerate(images):
            which, top, left = drawn_places(i, severity, [p.shape[:2] for p in pictures])
            around = np.roll(pictures[which], (-top, -left), axis=(0, 1))
            times = (-(-height // len(around)), -(-width // len(around)), 1)
            want = recipe(image, np.tile(around, times)[:height, :width], a, b)
            np.testing.assert_array_equal(got[i], want)


def test_images_larger_than_a_texture_get_it_again_and_again():
    image = np.zeros((1, 300, 290, 3), np.uint8)
    got = corrupted(image, "frost", 5, "cifar")[0]
    side = round(0.2 * SIDE)
    np.testing.assert_array_equal(got[side:], got[:-side])
    np.testing.assert_array_equal(got[:, side:], got[:, :-side])
    assert got.std() > 3


@pytest.fixture
def folder(tmp_path):
    """Six photographs of different sizes, in both file formats of the published ones."""
    rng = np.random.default_rng(0)
    for k, (height, width) in enumerate([(300, 420), (310, 290), (350, 500)] * 2):
        picture = photo(height, width, "flower.jpg" if k % 2 else "china.jpg")
        noisy = np.clip(picture + rng.normal(0, 30, picture.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(tmp_path / f"frost{k + 1}.{'png' if k < 3 else 'jpg'}")
    (tmp_path / "notes.txt").write_text("not a photo")
    return tmp_path


@pytest.mark.parametrize(
    ("table", "size"), [("cifar", 32), ("tiny-imagenet", 64), ("imagenet", 224)]
)
def test_with_photos_it_equals_the_published_recipe(folder, table, size):
    """The oracle reads and shrinks the photographs with OpenCV, as the published generator."""
    frost = Frost(photos=folder)
    images = np.concatenate([photos(size, size), odd_images(size, size)] * 2)
    for severity in range(1, 6):
        got = corrupted(images, frost, severity, table)
        a, b, scale = frost.setting(severity, table=table)
        pictures = []
        for file in sorted(folder.glob("frost*"))[:5]:
            picture = cv2.imread(str(file))
            if scale != 1:
                picture = cv2.resize(picture, (0, 0), fx=scale, fy=scale)
            pictures.append(picture[..., [2, 1, 0]])
        choices = [np.array(p.shape[:2]) - size for p in pictures]
        for i, image in enumerate(images):
            which, top, left = drawn_places(i, severity, choices)
            crop = pictures[which][top : top + size, left : left + size]
            off = np.abs(got[i].astype(int) - recipe(image, crop, a, b))
            # Two decoders may differ by a level in a JPEG, of which at most 0.75 arrives.
            assert off.max() <= 1
            assert (off > 0).mean() < 0.02


def test_the_sixth_photo_is_never_drawn(folder):
    """Published: one of six file names is chosen by a random number below five."""
    bright = Image.fromarray(np.full((300, 300, 3), 255, np.uint8))
    bright.save(folder / "frost6.jpg")
    black = np.zeros((400, 32, 32, 3), np.uint8)
    assert corrupted(black, Frost(photos=folder), 1, "cifar").mean(axis=(1, 2, 3)).max() < 51
    (folder / "frost1.png").unlink()
    means = corrupted(black, Frost(photos=folder), 1, "cifar").mean(axis=(1, 2, 3))
    assert 0.1 < (means > 50.9).mean() < 0.3  # one of five now


def test_the_last_row_and_column_of_places_are_never_drawn(tmp_path):
    """Published: a random number below the photo's height less that of the image."""
    picture = np.zeros((175, 175, 3), np.uint8)  # 35 x 35 at a scale of 0.2
    picture[2::5, 2::5, 0] = 7 * np.arange(35)[:, None]
    picture[2::5, 2::5, 1] = 7 * np.arange(35)[None, :]
    Image.fromarray(picture).save(tmp_path / "a.png")
    black = np.zeros((300, 32, 32, 3), np.uint8)
    got = corrupted(black, Frost(photos=tmp_path), 5, "cifar")
    first = [{round(v / 0.45 / 7) for v in got[:, 0, 0, channel]} for channel in (0, 1)]
    assert first == [{0, 1, 2}, {0, 1, 2}]


def test_photos_turned_by_their_camera_are_turned_upright(tmp_path):
    picture = np.zeros((200, 300, 3), np.uint8)
    picture[:, :150] = 200
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter: the left half is the upper half then
    Image.fromarray(picture).save(tmp_path / "a.png", exif=exif)
    from shiftcal.corruptions._frost_photos import frost_photos

    texels, _, sizes = frost_photos(tmp_path, 1)
    upright = texels.reshape(*sizes[0], 3)
    assert upright.shape == (300, 200, 3)
    assert upright[:150].min() == 200
    assert upright[150:].max() == 0


def test_a_replaced_photo_is_read_anew(tmp_path):
    file = tmp_path / "a.png"
    black = np.zeros((1, 32, 32, 3), np.uint8)
    for moment, level in [(1, 100), (2, 200)]:
        Image.fromarray(np.full((300, 300, 3), level, np.uint8)).save(file)
        os.utime(file, (moment, moment))
        assert (corrupted(black, Frost(photos=tmp_path), 1, "cifar") == level // 5).all()


def test_a_photo_that_was_replaced_with_its_time_kept_is_read_anew(tmp_path):
    file = tmp_path / "a.png"
    black = np.zeros((1, 32, 32, 3), np.uint8)
    known = set()
    for level in (100, 200):
        made = tmp_path / "new"
        Image.fromarray(np.full((300, 300, 3), level, np.uint8)).save(made, "PNG")
        os.utime(made, (1, 1))
        made.replace(file)
        frost = Frost(photos=tmp_path)
        assert (corrupted(black, frost, 1, "cifar") == level // 5).all()
        known.add(frost.identity)
    assert len(known) == 2


def test_photos_are_read_once_for_the_identity(folder, monkeypatch):
    frost = Frost(photos=folder)
    read = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: read.append(file.name) or real(file))
    first = frost.identity
    assert len(read) == 5
    assert [frost.identity, Frost(photos=folder).identity] == [first, first]
    assert len(read) == 5
    (folder / "frost2.png").write_bytes(real(folder / "frost3.png"))
    assert frost.identity != first


def test_the_identity_is_that_of_the_content_wherever_it_is(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    whole = b"".join(file.read_bytes() for file in sorted(folder.glob("frost*"))[:5])
    digest = hashlib.sha256(whole).hexdigest()[:16]
    assert Frost(photos=folder).identity == f"frost (photos, sha256 {digest})"
    assert Frost(photos=other).identity == Frost(photos=folder).identity


@pytest.mark.skipif(os.name == "nt", reason="a file cannot be made unreadable by a broken link")
def test_a_photo_that_is_gone_is_named(folder):
    frost = Frost(photos=folder)
    (folder / "frost1.png").unlink()
    (folder / "frost1.png").symlink_to(folder / "nowhere.png")
    with pytest.raises(FileError, match=r"frost1\.png' cannot be read.*Remove or replace it"):
        _ = frost.identity


@pytest.mark.parametrize("scale", [0.2, 0.3])
@pytest.mark.parametrize("shape", [(203, 311), (315, 560), (64, 65)])
def test_shrinking_is_that_of_opencv(shape, scale):
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3)).astype(np.uint8)
    want = cv2.resize(image, (0, 0), fx=scale, fy=scale)
    got = shrink(image, scale)
    assert got.shape == want.shape
    # Equal on the processors tried; OpenCV's own code differs by a level between processors.
    assert np.abs(got.astype(int) - want).max() <= 1


def test_shrinking_takes_every_fifth_pixel_as_it_is():
    """Published: no smoothing before, so the frost of small images is rough."""
    image = photo(100, 120)
    np.testing.assert_array_equal(shrink(image, 0.2), image[2::5, 2::5])


def test_places_are_drawn_evenly():
    black = np.zeros((4000, 8, 8, 3), np.uint8)
    shapes = [picture.shape[:2] for picture in textures(0.2)]
    drawn = np.array([drawn_places(i, 2, shapes) for i in range(len(black))])
    counts = np.bincount(drawn[:, 0], minlength=5)
    assert abs(counts - 800).max() < 4 * np.sqrt(4000 * 0.16)
    side = round(0.2 * SIDE)
    for column in (1, 2):
        assert abs(drawn[:, column].mean() - (side - 1) / 2) < 4 * side / np.sqrt(12 * 4000)
        assert drawn[:, column].min() == 0
        assert drawn[:, column].max() == side - 1


def test_textures_join_at_their_edges():
    for texture in textures(1):
        grey = texture.astype(float).mean(axis=2)
        for axis in (0, 1):
            lines = np.abs(np.diff(grey, axis=axis)).mean(axis=1 - axis)
            seam = np.abs(grey.take(0, axis=axis) - grey.take(-1, axis=axis)).mean()
            assert seam <= lines.max()


def test_textures_differ():
    five = [texture.astype(float).mean(axis=2) for texture in textures(1)]
    for i in range(5):
        for j in range(i):
            assert abs(np.corrcoef(five[i].reshape(-1), five[j].reshape(-1))[0, 1]) < 0.25


def test_description_tells_procedural_from_photos(folder):
    assert Frost().kind == "procedural"
    assert Frost().description == "frost (procedural)"
    assert Frost(photos=folder).kind == "photos"
    assert Frost(photos=str(folder)).description == "frost (photos)"
    assert Frost().name == Frost(photos=folder).name == "frost"


def test_images_that_do_not_fit_into_the_photos_are_refused(folder):
    frost = Frost(photos=folder)
    images = np.zeros((1, 60, 32, 3), np.uint8)
    with pytest.raises(InputError, match=r"60 x 32 pixels do not fit .* 60 x 58 at a scale of 0.2"):
        corrupted(images, frost, 1, "cifar")
    assert corrupted(images[:, :59], frost, 1, "cifar").shape == (1, 59, 32, 3)


def test_a_folder_that_is_missing_or_has_no_photo_is_refused(tmp_path):
    with pytest.raises(FileError, match="is not a folder"):
        Frost(photos=tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(FileError, match="no image is in"):
        Frost(photos=tmp_path)


def test_a_damaged_photo_is_named(tmp_path):
    (tmp_path / "torn.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(FileError, match=r"torn\.png.*cannot be read as an image"):
        corrupted(np.zeros((1, 32, 32, 3), np.uint8), Frost(photos=tmp_path), 1, "cifar")
