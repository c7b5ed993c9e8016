"""Labels, classes and files in the way of ``shiftcal score``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images, write_images

from shiftcal import SurrogateBank, read_scores

IMAGES = draw_images(18, 16, 16, seed=31)
COMMAND = "score --model net.onnx --images images --batch-size 6 --shard-size 6"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A network of three classes, and images of two classes in folders."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    write_images(tmp_path / "images", IMAGES, [f"{'ab'[i // 9]}/{i:02d}.png" for i in range(18)])
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "y.npy", np.arange(18) % 3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


def test_labels_that_are_not_the_models_are_left_aside_with_a_warning(folder, shiftcal):
    for times in ("first", "again"):
        done = shiftcal(COMMAND, "-o a.npz")
        assert done.status == 0, times
        assert done.err.startswith("warning: scored without labels: images has 2 classes (a, b)")
        assert done.err.endswith("give --no-labels.\n")
        assert done.err.count("\n") == 1
        assert "rows      18 of 3 classes, no labels\n" in done.out
    assert "all of them were there already" in done.out
    assert read_scores("a.npz").labels is None


def test_labels_left_aside_beforehand_are_not_warned_of(folder, shiftcal):
    done = shiftcal(COMMAND, "-o a.npz --no-labels")
    assert (done.status, done.err) == (0, "")
    assert read_scores("a.npz").labels is None


def test_classes_make_the_labels_those_of_the_model(folder, shiftcal_json):
    told = shiftcal_json(COMMAND, "-o a.npz --classes x,b,a")
    assert (told["labels"], told["warnings"]) == (True, [])
    found = read_scores("a.npz")
    assert found.classes == ("x", "b", "a")
    assert found.labels.tolist() == [2] * 9 + [1] * 9
    assert told["accuracy"] == (found.values.argmax(axis=1) == found.labels).mean()


def test_the_classes_of_a_bank_are_those_of_its_model(folder, shiftcal):
    bank = "bank --model net.onnx --images images --severity 1 --classes x,b,a -o bank"
    assert shiftcal(bank).status == 0
    assert shiftcal("score --bank bank --images images -o a.npz").status == 0
    assert read_scores("a.npz").classes == SurrogateBank.load("bank").classes == ("x", "b", "a")
    assert shiftcal("score --bank bank --images images --classes b,a,x -o b.npz").status == 0
    assert read_scores("b.npz").classes == ("b", "a", "x")
