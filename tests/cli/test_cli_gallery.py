"""``shiftcal gallery``."""

from __future__ import annotations

import numpy as np
import pytest
from photos import photo
from PIL import Image

from shiftcal import corruptions
from shiftcal.report import gallery as figures

KEYS = {
    "shiftcal",
    "command",
    "image",
    "output",
    "width",
    "height",
    "corruptions",
    "severities",
    "table",
    "seed",
    "warnings",
}


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """``small.png`` (32 x 32) and ``large.jpg`` (640 x 427) in the current folder."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(photo(32, 32)).save("small.png")
    Image.fromarray(photo(427, 640)).save("large.jpg")
    return tmp_path


@pytest.fixture
def few(monkeypatch):
    """Only four corruptions, so that a test of something else is quick."""
    names = ["contrast", "frost", "gaussian_noise", "snow"]
    monkeypatch.setattr(corruptions, "names", lambda: names)
    return names


def shown(file, tiles, *, one_row):
    """The pictures of a gallery, cut out of it again."""
    grid = figures.layout(tiles, one_row=one_row)
    figure = np.array(Image.open(file))
    height, width = tiles[0].image.shape[:2]
    for index in range(len(tiles)):
        left, top = grid.corner(index)
        rows = slice(top, top + grid.times * height, grid.times)
        yield figure[rows, left : left + grid.times * width : grid.times]


def test_every_corruption_there_is_has_its_picture(photos, shiftcal_json):
    document = shiftcal_json("gallery small.png -o gallery.png --severity 2 --seed 7")
    assert set(document) == KEYS
    assert set(document["corruptions"]) == set(corruptions.names())
    assert len(document["corruptions"]) == 19
    assert (document["severities"], document["table"], document["seed"]) == ([2], "cifar", 7)
    image = photo(32, 32)
    made = [corruptions.get(name)() for name in corruptions.names()]
    tiles = figures.tiles_of_all(image, made, severity=2, seed=7, table="cifar")
    for tile, cut in zip(tiles, shown("gallery.png", tiles, one_row=False), strict=True):
        assert np.array_equal(tile.image, cut), tile.label


def test_one_corruption_is_shown_at_five_severities(photos, shiftcal, shiftcal_json):
    words = "gallery small.png -o row.png --corruption gaussian_noise --table imagenet"
    done = shiftcal(words)
    assert (done.status, done.err) == (0, "")
    assert done.out == "6 pictures of 32 x 32 pixels written to row.png\n"
    tiles = figures.tiles_of_one(
        photo(32, 32), corruptions.get("gaussian_noise")(), seed=0, table="imagenet"
    )
    for tile, cut in zip(tiles, shown("row.png", tiles, one_row=True), strict=True):
        assert np.array_equal(tile.image, cut)
    document = shiftcal_json(words)
    assert document["severities"] == [1, 2, 3, 4, 5]
    assert document["corruptions"] == {"gaussian_noise": "gaussian_noise"}


def test_the_paper_leaves_three_out_and_severity_is_3_unless_told(photos, few, shiftcal_json):
    document = shiftcal_json("gallery small.png -o gallery.png --paper")
    assert set(document["corruptions"]) == {"contrast", "frost", "gaussian_noise"}
    assert document["severities"] == [3]


def test_a_large_photo_is_reduced_first_and_the_size_can_be_chosen(photos, few, shiftcal_json):
    sizes = {}
    for options in ("", "--resize 64", "--crop 300", "--resize 40 --crop 32"):
        document = shiftcal_json("gallery large.jpg -o g.png --corruption contrast", options)
        sizes[options] = (document["width"], document["height"], document["table"])
    assert sizes == {
        "": (335, 224, "imagenet"),
        "--resize 64": (95, 64, "tiny-imagenet"),
        "--crop 300": (300, 300, "imagenet"),
        "--resize 40 --crop 32": (32, 32, "cifar"),
    }


def test_frost_photographs_can_be_given(photos, few, shiftcal_json):
    (photos / "frost").mkdir()
    for index in range(5):
        Image.fromarray(photo(200, 200)).save(photos / "frost" / f"frost{index}.png")
    procedural = shiftcal_json("gallery small.png -o a.png")["corruptions"]["frost"]
    photographed = shiftcal_json("gallery small.png -o b.png --frost-photos frost")
    assert procedural != photographed["corruptions"]["frost"]
    assert (photos / "a.png").read_bytes() != (photos / "b.png").read_bytes()


def test_a_function_of_the_users_own_can_be_shown(photos, shiftcal_json):
    (photos / "gallery_own.py").write_text("def negative(image):\n    return 255 - image\n")
    document = shiftcal_json("gallery small.png -o g.png --corruption gallery_own:negative")
    assert document["severities"] == [1]
    own = corruptions.Custom(lambda image: 255 - image, name="negative")
    tiles = figures.tiles_of_one(photo(32, 32), own, seed=0, table="cifar")
    cut = list(shown("g.png", tiles, one_row=True))
    assert np.array_equal(cut[1], 255 - photo(32, 32))


@pytest.mark.parametrize(
    ("suffix", "kind"), [("jpg", "JPEG"), ("JPEG", "JPEG"), ("webp", "WEBP"), ("png", "PNG")]
)
def test_the_suffix_says_the_format(photos, shiftcal, suffix, kind):
    assert shiftcal(f"gallery small.png -o g.{suffix} --corruption contrast").status == 0
    with Image.open(f"g.{suffix}") as opened:
        assert opened.format == kind


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("none.png -o g.png", "none.png cannot be read as an image: No such file"),
        ("text.png -o g.png", "text.png cannot be read as an image: cannot identify"),
        ("cut.png -o g.png", "cut.png cannot be read as an image: "),
        ("tiny.png -o g.png", "tiny.png: images must be at least 8 pixels high and wide"),
        ("small.png -o g.gif", "g.gif must end in .png, .jpg, .jpeg, .webp"),
        ("small.png -o g", "g must end in .png"),
        ("small.png -o small.png", "small.png is read by this command"),
        ("small.png -o none/g.png", "there is no folder none"),
        ("small.png", "missing option '--output'"),
        ("small.png -o g.png --severity 6", "invalid value for '--severity': "),
        ("small.png -o g.png --seed -1", "invalid value for '--seed': "),
        ("small.png -o g.png --table cifar10", "table must be one of"),
        ("small.png -o g.png --corruption contarst", "Did you mean 'contrast'?"),
        ("small.png -o g.png --corruption all", "Leave it out"),
        ("small.png -o g.png --corruption fog --severity 2", "Leave one or the other out"),
        ("small.png -o g.png --corruption fog --paper", "Leave one or the other out"),
        ("small.png -o g.png --corruption fog --frost-photos .", "goes with --corruption frost"),
        ("small.png -o g.png --resize 7", "--resize must be from 8 to 10,000 pixels; got 7"),
        ("small.png -o g.png --crop 33", "at least 33 pixels high and wide to be cropped"),
        ("small.png -o g.png --corruption nowhere:f", "cannot be imported: "),
        ("small.png -o g.png --corruption json:nothing", "cannot be imported: "),
        ("small.png -o g.png --corruption :f", "cannot be imported: "),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(photos, refused, words, reason):
    (photos / "text.png").write_text("no image")
    (photos / "cut.png").write_bytes((photos / "small.png").read_bytes()[:600])
    Image.fromarray(photo(8, 7)).save("tiny.png")
    before = {file: file.read_bytes() for file in photos.iterdir()}
    assert reason in refused("gallery", words)
    assert {file: file.read_bytes() for file in photos.iterdir()} == before


def test_a_side_the_format_cannot_have_is_told(photos, refused):
    Image.fromarray(photo(8, 4000)).save("strip.png")
    reason = refused("gallery strip.png -o g.webp --corruption contrast")
    assert "g.webp could not be written: " in reason
    assert "Write a .png file" in reason
    assert not (photos / "g.webp").exists()
