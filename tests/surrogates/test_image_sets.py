"""Corrupted copies of folders and arrays: layouts, resuming, bad files."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from photos import photos
from PIL import Image

import shiftcal as sc
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.surrogates.image_sets import corrupt_files

IMAGES = photos(24, 40)


@pytest.fixture
def images(tmp_path):
    """A folder with four images in two classes."""
    for index, image in enumerate(IMAGES):
        file = tmp_path / "in" / f"class{index % 2}" / f"{index}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
    return tmp_path / "in"


def tree(root: Path) -> dict[str, str]:
    """Every file with a digest of its bytes."""
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def test_a_folder_keeps_its_classes_and_has_the_pixels_of_corrupt(images, tmp_path):
    outcome = corrupt_files(
        images,
        tmp_path / "out",
        corruptions=["contrast", "gaussian_noise"],
        severities=[1, 4],
        seed=6,
    )
    assert (outcome.layout, outcome.n_images, outcome.written, outcome.kept) == ("folder", 4, 16, 0)
    # The order of the sorted paths: class0/0, class0/2, class1/1, class1/3.
    for index, name in enumerate(["class0/0", "class0/2", "class1/1", "class1/3"]):
        for corruption in ("contrast", "gaussian_noise"):
            for severity in (1, 4):
                file = tmp_path / "out" / corruption / str(severity) / f"{name}.png"
                expected = sc.corrupt(
                    IMAGES[int(name[-1])], corruption, severity=severity, seed=6, first_index=index
                )
                assert np.array_equal(np.array(Image.open(file)), expected)
    assert len(tree(tmp_path / "out")) == 17


def test_an_array_becomes_stacked_severities_with_labels(tmp_path):
    np.savez(tmp_path / "in.npz", images=IMAGES, labels=np.array([3, 1, 4, 1]))
    outcome = corrupt_files(tmp_path / "in.npz", tmp_path / "out", corruptions=["fog", "contrast"])
    assert (outcome.layout, outcome.written) == ("stacked", 2)
    made = np.load(tmp_path / "out" / "fog.npy")
    assert made.shape == (20, 24, 40, 3)
    for severity in range(1, 6):
        expected = sc.corrupt(IMAGES, "fog", severity=severity)
        assert np.array_equal(made[4 * severity - 4 : 4 * severity], expected)
    assert np.array_equal(np.load(tmp_path / "out" / "labels.npy"), [3, 1, 4, 1] * 5)
    names = ["contrast.npy", "corrupted.json", "fog.npy", "labels.npy"]
    assert sorted(tree(tmp_path / "out")) == names


def test_other_severities_of_an_array_have_a_file_each(tmp_path):
    np.save(tmp_path / "in.npy", IMAGES)
    np.save(tmp_path / "truth.npy", np.arange(4))
    outcome = corrupt_files(
        tmp_path / "in.npy",
        tmp_path / "out",
        corruptions=["contrast"],
        severities=[5, 2],
        labels=tmp_path / "truth.npy",
    )
    assert (outcome.layout, outcome.written) == ("arrays", 2)
    made = np.load(tmp_path / "out" / "contrast" / "5.npy")
    assert np.array_equal(made, sc.corrupt(IMAGES, "contrast", severity=5))
    assert np.array_equal(np.load(tmp_path / "out" / "contrast" / "labels.npy"), np.arange(4))


def test_unreadable_images_are_named_and_left_out_and_the_others_are_as_without_them(
    images, tmp_path
):
    cut = (images / "class1" / "3.png").read_bytes()[:200]
    (images / "class0" / "1cut.png").write_bytes(cut)
    Image.fromarray(IMAGES[0][:5, :5]).save(images / "class0" / "1tiny.png")
    with pytest.warns(InputWarning, match="left out: "):
        outcome = corrupt_files(images, tmp_path / "out", corruptions=["contrast"], severities=[1])
    assert sorted(outcome.bad) == ["class0/1cut.png", "class0/1tiny.png"]
    assert "cannot be read as an image" in outcome.bad["class0/1cut.png"]
    assert "at least 8 pixels" in outcome.bad["class0/1tiny.png"]
    assert outcome.written == 4


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("layout", ["folder", "array"])
def test_a_killed_command_is_completed_to_the_byte(tmp_path, layout):
    pixels = np.random.default_rng(1).integers(0, 256, (150, 96, 96, 3), dtype=np.uint8)
    source = tmp_path / "in.npy"
    if layout == "array":
        np.save(source, pixels)
    else:
        source = tmp_path / "in"
        source.mkdir()
        for index, image in enumerate(pixels[:25]):
            Image.fromarray(image).save(source / f"{index}.png")
    names, part = ["contrast", "gaussian_noise"], tmp_path / "part"
    command = [sys.executable, "-m", "shiftcal", "corrupt", str(source), str(part)]
    command += [word for name in names for word in ("--corruption", name)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        while not list(part.rglob("*.tmp")) + list(part.rglob("*.png")) and running.poll() is None:
            time.sleep(0.001)
        running.send_signal(signal.SIGKILL)
    corrupt_files(source, tmp_path / "whole", corruptions=names)
    assert tree(part) != tree(tmp_path / "whole")
    corrupt_files(source, part, corruptions=names)
    assert tree(part) == tree(tmp_path / "whole")


def test_other_settings_are_not_mixed_into_a_folder(images, tmp_path):
    out = tmp_path / "out"
    corrupt_files(images, out, corruptions=["contrast"], severities=[1])
    for options, words in [
        ({"seed": 1}, "was begun with seed 0, now it is 1"),
        ({"format": "jpeg"}, "was begun with layout png"),
        ({"crop": 16}, "was begun with crop None, now it is 16"),
    ]:
        with pytest.raises(FileError, match=words):
            corrupt_files(images, out, corruptions=["contrast"], **options)
    Image.fromarray(IMAGES[0]).save(images / "another.png")
    with pytest.raises(FileError, match="was begun with source"):
        corrupt_files(images, out, corruptions=["contrast"])


def test_more_corruptions_can_be_added_later(images, tmp_path):
    corrupt_files(images, tmp_path / "out", corruptions=["contrast"], severities=[1])
    corrupt_files(images, tmp_path / "out", corruptions=["fog"], severities=[1, 2])
    corrupt_files(images, tmp_path / "both", corruptions=["fog"], severities=[2, 1])
    corrupt_files(images, tmp_path / "both", corruptions=["contrast"], severities=[1])
    assert tree(tmp_path / "out") == tree(tmp_path / "both")
    document = json.loads((tmp_path / "out" / "corrupted.json").read_text())
    assert list(document["corruptions"]) == ["contrast", "fog"]


def test_a_folder_of_something_else_is_left_alone(images, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    with pytest.raises(FileError, match=r"holds 'thesis.tex' and was not made by shiftcal corrupt"):
        corrupt_files(images, tmp_path / "out", corruptions=["contrast"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"corruptions": []}, "must be given, each once"),
        ({"corruptions": ["fog", "fog"]}, "must be given, each once"),
        ({"corruptions": ["fog"], "format": "gif"}, "format must be one of 'png', 'jpeg'"),
        ({"corruptions": ["fog"], "crop": 3}, "crop must be from 8 to 10,000 pixels; got 3"),
        ({"corruptions": ["fog"], "labels": "x.npy"}, "classes of a folder are its sub-folders"),
    ],
)
def test_settings_that_make_no_sense_raise_before_anything_is_written(
    images, tmp_path, options, words
):
    with pytest.raises(InputError, match=words):
        corrupt_files(images, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_sources_that_cannot_be_used_raise(images, tmp_path):
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "x.npz", x=IMAGES)
    np.save(tmp_path / "in.npy", IMAGES)
    for source, target, options, words in (
        ("nowhere", "out", {}, "does not exist"),
        ("empty", "out", {}, "holds no images"),
        ("in", "in/new", {}, "or inside the folder that is read"),
        ("x.npz", "out", {}, "must have an array 'images'"),
        ("in.npy", "out", {"crop": 8}, "resize and crop are for folders"),
        ("in", "x.npz", {}, "must not be a file"),
    ):
        with pytest.raises(InputError, match=words):
            corrupt_files(tmp_path / source, tmp_path / target, corruptions=["fog"], **options)
    assert not (tmp_path / "out").exists()


def test_all_severities_are_those_that_a_function_has(tmp_path):
    own = sc.corruptions.Custom([np.flipud, np.fliplr], name="turned")
    np.savez(tmp_path / "in.npz", images=IMAGES, labels=np.arange(4))
    corrupt_files(tmp_path / "in.npz", tmp_path / "out", corruptions=[own])
    made = np.load(tmp_path / "out" / "turned.npy")
    assert np.array_equal(made, np.concatenate([IMAGES[:, ::-1], IMAGES[:, :, ::-1]]))
    assert np.array_equal(np.load(tmp_path / "out" / "labels.npy"), [0, 1, 2, 3] * 2)


def test_grey_arrays_stay_grey(tmp_path):
    np.save(tmp_path / "in.npy", IMAGES[..., 1])
    corrupt_files(tmp_path / "in.npy", tmp_path / "out", corruptions="gaussian_noise", severities=2)
    made = np.load(tmp_path / "out" / "gaussian_noise" / "2.npy")
    assert np.array_equal(made, sc.corrupt(IMAGES[..., 1], "gaussian_noise", severity=2))


def test_an_image_that_was_repaired_or_changed_is_made_again(images, tmp_path):
    bad = images / "class0" / "0.png"
    whole = bad.read_bytes()
    bad.write_bytes(whole[:100])
    with pytest.warns(InputWarning, match="left out"):
        first = corrupt_files(images, tmp_path / "out", corruptions=["contrast"], severities=[1])
    assert (first.written, len(first.bad)) == (3, 1)
    bad.write_bytes(whole)
    Image.fromarray(IMAGES[0]).save(images / "class1" / "1.png")
    later = time.time() + 5
    os.utime(images / "class1" / "1.png", (later, later))
    second = corrupt_files(images, tmp_path / "out", corruptions=["contrast"], severities=[1])
    assert (second.written, second.kept, second.bad) == (2, 2, {})
