"""What ``shiftcal bank`` says of a bank, and what else can be said to it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images, write_images

from shiftcal import SurrogateBank

# Six each are red, green, blue, as the network of mean colours has its classes.
IMAGES = draw_images(18, 16, 16, seed=30) // 2
IMAGES[np.arange(18), ..., np.arange(18) // 6] += 100
CLASSES = ("ant", "bee", "cat")
COMMAND = "bank --model net.onnx --images images --batch-size 6 --shard-size 6"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A network of three classes, images in class folders, and an array of them."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    write_images(tmp_path / "images", IMAGES, [f"{CLASSES[i // 6]}/{i:02d}.png" for i in range(18)])
    np.save(tmp_path / "images.npy", IMAGES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


def test_commas_name_several_corruptions(folder, shiftcal_json):
    told = shiftcal_json(COMMAND, "--corruption fog,contrast --severity 1 -o bank")
    names = ["clean", "fog, severity 1", "contrast, severity 1"]
    assert [each["name"] for each in told["sets"]] == names


def test_no_better_than_guessing_is_warned_of(folder, shiftcal_json):
    np.save("wrong.npy", (np.arange(18) // 6 + 1) % 3)
    told = shiftcal_json(
        "bank --model net.onnx --images images.npy --labels wrong.npy --severity 1 -o bank"
    )
    assert told["sets"][0]["accuracy"] == 0
    assert told["warnings"][0] == (
        "the accuracy of the clean set is 0.0000, no better than guessing among 3 classes "
        "(0.3333). Check mean and std of the preprocessing and the order of the classes "
        "(--classes)."
    )


def test_one_class_alone_is_warned_of_by_name(folder, shiftcal):
    words = "--classes ant,bee,cat --labels one.npy --severity 1 -o bank"
    np.save("one.npy", np.ones(18, int))
    done = shiftcal("bank --model net.onnx --images images.npy", words)
    assert "all images are of one class, bee, which says nothing about the others." in done.err


def test_classes_are_named_by_commas_or_by_a_file(folder, shiftcal):
    (folder / "names.txt").write_text("cat\nbee\nant\n")
    assert shiftcal(COMMAND, "--classes cat,bee,ant --severity 1 -o a").status == 0
    assert shiftcal(COMMAND, "--classes names.txt --severity 1 -o b").status == 0
    for name in ("a", "b"):
        bank = SurrogateBank.load(name)
        assert bank.classes == ("cat", "bee", "ant")
        assert bank.clean.labels.tolist() == [2] * 6 + [1] * 6 + [0] * 6


def test_names_in_a_file_of_labels_go_by_the_classes(folder, shiftcal):
    (folder / "y.csv").write_text("label\n" + "\n".join(CLASSES[i // 6] for i in range(18)))
    words = "bank --model net.onnx --images images.npy --labels y.csv --severity 1 -o bank"
    done = shiftcal(words, "--classes cat,ant,bee")
    assert done.status == 0, done.err
    assert SurrogateBank.load("bank").clean.labels.tolist() == [1] * 6 + [2] * 6 + [0] * 6


def test_what_others_print_does_not_break_the_document(folder, shiftcal_json):
    (folder / "chatty.py").write_text(
        'def dark(image):\n    print("hello")\n    return image // 2\n'
    )
    told = shiftcal_json(COMMAND, "--corruption chatty:dark --severity 1 -o bank")
    assert told["sets_added"] == 2
