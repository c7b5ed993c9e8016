"""Labels, classes and files in the way of ``shiftcal score``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images, write_images

from shiftcal import TS, SurrogateBank, read_scores

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
        assert done.err.endswith("say --no-labels.\n")
        assert done.err.count("\n") == 1
        assert "rows      18 of 3 classes, no labels\n" in done.out
    assert "all of them were there already" in done.out
    assert read_scores("a.npz").labels is None


def test_what_was_scored_before_that_was_noticed_is_kept(folder, shiftcal_json):
    told = shiftcal_json(COMMAND, "-o a.npz")
    assert told["n"] == 18
    assert told["images_scored"] == 12  # by the second go; six were there
    assert (told["labels"], told["accuracy"]) == (False, None)


def test_labels_left_aside_beforehand_are_not_warned_of(folder, shiftcal):
    done = shiftcal(COMMAND, "-o a.npz --no-labels")
    assert (done.status, done.err) == (0, "")
    assert read_scores("a.npz").labels is None


def test_labels_that_were_given_must_be_the_models(folder, refused):
    np.save("far.npy", np.arange(18))
    words = "score --model net.onnx --images images.npy --labels far.npy -o a.npz"
    assert "must be from 0 to 2" in refused(words)


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


@pytest.mark.parametrize(
    "files", ["-o a.npz", "-o a.csv", "--statistics a.json", "-o a.npz --statistics a.json"]
)
def test_accuracy_is_told_whatever_is_written(folder, shiftcal, files):
    words = "score --model net.onnx --images images.npy --labels y.npy"
    shiftcal(words, "-o known.npz")
    known = read_scores("known.npz")
    right = (known.values.argmax(axis=1) == known.labels).mean()
    done = shiftcal(words, files)
    assert f"rows      18 of 3 classes, with labels\naccuracy  {right:.4f}\n" in done.out


def test_a_file_that_holds_something_else_is_not_replaced(folder, refused, shiftcal):
    np.savez("mine.npz", images=IMAGES)
    (folder / "broken.npz").write_bytes(b"PK no more")
    (folder / "table.csv").write_text("name,label\na,1\n")
    logits = np.random.default_rng(3).standard_normal((60, 3))
    TS().fit(logits, np.arange(60) % 3).save("sac.json")
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    words = "score --model net.onnx --images images.npy"
    for name in ("mine.npz", "broken.npz", "table.csv"):
        reason = refused(words, f"-o {name}")
        assert f"{name} is there already and holds no scores, so that it is not replaced" in reason
    assert "sac.json is there already and holds no statistics" in refused(
        words, "--statistics sac.json"
    )
    assert {file: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


@pytest.mark.parametrize("files", ["-o a.npz", "-o a.csv", "--statistics a.json"])
def test_scores_and_statistics_are_replaced(folder, shiftcal, files):
    words = "score --model net.onnx --images images.npy"
    assert shiftcal(words, files).status == 0
    assert shiftcal(words, "--labels y.npy", files).status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-o images/a.npz", "images/a.npz: the output lies in the folder that is read, images."),
        ("--statistics images/b/a.json", "the output lies in the folder that is read"),
        ("-o a.npz --labels y.npy --no-labels", "--labels and --no-labels exclude one another"),
        ("-o a.npz --gpus-per-worker 1", "gpus_per_worker must be left out for the local engine"),
        ("-o a.npz --classes a", "there is no file a"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder, refused, words, message):
    before = sorted(folder.rglob("*"))
    assert message in refused(COMMAND, words)
    assert sorted(folder.rglob("*")) == before
