"""``shiftcal corrupt`` and ``gallery``."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from photos import photo, photos, place_of
from PIL import Image

import shiftcal as sc
from shiftcal import corruptions
from shiftcal.cli.inputs import parse_severities
from shiftcal.report import gallery as figures
from shiftcal.surrogates import image_sets as folder

IMAGES = photos(16, 20)


@pytest.fixture
def images(tmp_path, monkeypatch):
    """The folder ``in`` of four images in two classes, and ``in.npz`` with the same."""
    monkeypatch.chdir(tmp_path)
    for index, image in enumerate(IMAGES):
        file = tmp_path / "in" / "ab"[index % 2] / f"{index}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
    np.savez("in.npz", images=IMAGES, labels=np.array([3, 1, 4, 1]))
    np.save("in.npy", IMAGES)
    np.save("truth.npy", np.array([2, 7, 1, 8]))
    return tmp_path


def tree(root):
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def test_a_folder_becomes_folders_of_corruption_severity_and_class(images, shiftcal):
    done = shiftcal("corrupt in out --corruption contrast --severity 2 --seed 3")
    assert (done.status, done.err) == (0, "")
    assert sorted(tree(images / "out")) == [
        *(f"contrast/2/{name}.png" for name in ("a/0", "a/2", "b/1", "b/3")),
        "corrupted.json",
    ]
    made = np.array(Image.open("out/contrast/2/b/1.png"))
    assert np.array_equal(made, sc.corrupt(IMAGES[1], "contrast", severity=2))


def test_an_array_becomes_the_stacked_array_of_cifar_10_c(images, shiftcal):
    done = shiftcal("corrupt in.npz out --corruption contrast")
    assert (done.status, done.err) == (0, "")
    assert sorted(tree(images / "out")) == ["contrast.npy", "corrupted.json", "labels.npy"]
    stacked = np.concatenate([sc.corrupt(IMAGES, "contrast", severity=s) for s in range(1, 6)])
    assert np.array_equal(np.load("out/contrast.npy"), stacked)
    assert np.array_equal(np.load("out/labels.npy"), [3, 1, 4, 1] * 5)


@pytest.mark.parametrize(
    ("text", "severities"),
    [
        ("all", None),
        ("3", [3]),
        ("2-4", [2, 3, 4]),
        ("5,1", [1, 5]),
        ("1, 4-5", [1, 4, 5]),
        ("2-2", [2]),
    ],
)
def test_severities_can_be_one_several_or_all(text, severities):
    assert parse_severities(text) == severities


def test_a_function_of_the_users_own_stands_in_the_place_of_a_name(images, shiftcal_json):
    (images / "corrupt_own.py").write_text(
        "def darker(image, severity):\n    return image // (1 + severity)\n"
    )
    words = "corrupt in.npy out --corruption corrupt_own:darker --corruption contrast"
    document = shiftcal_json(words)
    assert list(document["corruptions"]) == ["darker", "contrast"]
    assert np.array_equal(np.load("out/darker.npy")[8:12], IMAGES // 4)


def test_an_unreadable_image_is_named_and_left_out_with_status_2(images, shiftcal, shiftcal_json):
    (images / "in" / "a" / "broken.png").write_bytes(b"no image")
    words = "corrupt in out --corruption contrast --severity 1"
    done = shiftcal(words)
    assert done.status == 2
    assert "files written  4\n" in done.out
    warning, error = done.err.splitlines()
    assert warning.startswith("warning: left out: ")
    assert "in/a/broken.png cannot be read as an image" in warning
    assert error == ("error: 1 of 5 images could not be read. --skip-bad accepts that.")
    document = shiftcal_json(words, status=2)
    assert (document["files_written"], document["files_kept"]) == (0, 4)
    assert [entry["file"] for entry in document["bad"]] == ["a/broken.png"]
    assert "cannot be read as an image" in document["bad"][0]["reason"]
    assert len(document["warnings"]) == 1


def test_the_same_command_goes_on_where_it_was_broken_off(images, shiftcal, monkeypatch):
    words = "corrupt in {} --corruption contrast --corruption gaussian_noise --threads 1"
    assert shiftcal(words.format("whole")).status == 0
    real, calls = folder.corrupt, []

    def broken(*args, **options):
        calls.append(1)
        if len(calls) > 13:
            raise KeyboardInterrupt
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(folder, "corrupt", broken)
        stopped = shiftcal(words.format("out"))
    assert (stopped.status, stopped.out) == (130, "")
    done = shiftcal(words.format("out"))
    assert done.status == 0
    assert "files written  27\nfiles kept     13\n" in done.out
    assert tree(images / "out") == tree(images / "whole")


def test_what_a_function_of_the_users_raises_is_told_in_one_line(images, refused):
    (images / "corrupt_raises.py").write_text("def f(image):\n    return image[9999]\n")
    reason = refused("corrupt in.npy out --severity 1 --corruption corrupt_raises:f")
    assert "IndexError: index 9999 is out of bounds" in reason
    assert "in corrupt_raises.py, line 2 (raised by the corruption 'f', severity 1)" in reason


@pytest.fixture
def pictures(tmp_path, monkeypatch):
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


def test_one_corruption_is_shown_at_five_severities(pictures, shiftcal, shiftcal_json):
    words = "gallery small.png -o row.png --corruption gaussian_noise --table imagenet"
    done = shiftcal(words)
    assert (done.status, done.err) == (0, "")
    assert done.out == "6 pictures of 32 x 32 pixels written to row.png\n"
    noise = corruptions.get("gaussian_noise")()
    tiles = figures.tiles_of(photo(32, 32), [noise], severity=None, seed=0, table="imagenet")
    places = [place_of(image, Image.open("row.png"), times=4) for _, image in tiles]
    assert places == sorted(places)
    assert len({top for _, top in places}) == 1
    document = shiftcal_json(words)
    assert document["severities"] == [1, 2, 3, 4, 5]
    assert document["corruptions"] == {"gaussian_noise": "gaussian_noise"}


def test_the_paper_leaves_three_out_and_severity_is_3_unless_told(pictures, few, shiftcal_json):
    document = shiftcal_json("gallery small.png -o gallery.png --paper")
    assert set(document["corruptions"]) == {"contrast", "frost", "gaussian_noise"}
    assert document["severities"] == [3]
