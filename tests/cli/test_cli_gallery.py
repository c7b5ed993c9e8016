"""``shiftcal gallery``."""

from __future__ import annotations

import pytest
from photos import photo, place_of
from PIL import Image

from shiftcal import corruptions
from shiftcal.report import gallery as figures


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


def test_one_corruption_is_shown_at_five_severities(photos, shiftcal, shiftcal_json):
    words = "gallery small.png -o row.png --corruption gaussian_noise --table imagenet"
    done = shiftcal(words)
    assert (done.status, done.err) == (0, "")
    assert done.out == "6 pictures of 32 x 32 pixels written to row.png\n"
    tiles = figures.tiles_of_one(
        photo(32, 32), corruptions.get("gaussian_noise")(), seed=0, table="imagenet"
    )
    places = [place_of(tile.image, Image.open("row.png"), times=4) for tile in tiles]
    assert places == sorted(places)
    assert len({top for _, top in places}) == 1
    document = shiftcal_json(words)
    assert document["severities"] == [1, 2, 3, 4, 5]
    assert document["corruptions"] == {"gaussian_noise": "gaussian_noise"}


def test_the_paper_leaves_three_out_and_severity_is_3_unless_told(photos, few, shiftcal_json):
    document = shiftcal_json("gallery small.png -o gallery.png --paper")
    assert set(document["corruptions"]) == {"contrast", "frost", "gaussian_noise"}
    assert document["severities"] == [3]


def test_a_function_of_the_users_own_can_be_shown(photos, shiftcal_json):
    (photos / "gallery_own.py").write_text("def negative(image):\n    return 255 - image\n")
    document = shiftcal_json("gallery small.png -o g.png --corruption gallery_own:negative")
    assert document["severities"] == [1]
    assert place_of(255 - photo(32, 32), Image.open("g.png"), times=4)
