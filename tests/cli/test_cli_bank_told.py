"""What ``shiftcal bank`` says of a bank, and what else can be said to it."""

from __future__ import annotations

import json
import subprocess
import sys

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


def test_what_is_done_to_images_is_said_in_short(folder, shiftcal):
    words = "bank --model net.onnx?resize=20x18&crop=16&std=0.5,0.25,1 --images images -o bank"
    done = shiftcal(words, "--severity 1")
    assert "input     resize 20, 18; crop 16; std 0.5, 0.25, 1\n" in done.out


def test_no_better_than_guessing_is_warned_of(folder, shiftcal_json):
    np.save("wrong.npy", (np.arange(18) // 6 + 1) % 3)
    told = shiftcal_json(
        "bank --model net.onnx --images images.npy --labels wrong.npy --severity 1 -o bank"
    )
    assert told["sets"][0]["accuracy"] == 0
    assert told["warnings"][0] == (
        "the accuracy of the clean set is 0.0000, no better than guessing among 3 classes "
        "(0.3333). Look at mean and std of the preprocessing, and at the order of the classes "
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


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("names.txt", "there is no file names.txt"),
        ("a,b,a", "two names or more, all different and none empty; got 3, of which 2"),
        ("a,,b", "got 3, of which 2 are different and not empty"),
        ("latin.txt", "latin.txt must be a text file in UTF-8"),
        ("ant,bee", "a column for each of the 2 classes named; got 3 columns"),
    ],
)
def test_classes_that_cannot_be_used_are_refused(folder, refused, classes, message):
    (folder / "latin.txt").write_bytes(b"caf\xe9\nth\xe9\n")
    assert message in refused(COMMAND, f"--classes {classes} -o bank")
    assert not (folder / "bank").exists()


@pytest.mark.parametrize("images", ["images", "folder:images"])
def test_a_bank_among_the_images_is_refused(folder, refused, images):
    reason = refused(f"bank --model net.onnx --images {images} -o images/bank")
    assert "images/bank: the output lies in the folder that is read, images." in reason
    assert not (folder / "images" / "bank").exists()


@pytest.mark.parametrize("option", ["cpus", "gpus"])
def test_shares_of_a_worker_are_for_ray(folder, refused, option):
    reason = refused(COMMAND, f"--{option}-per-worker 1 -o bank")
    assert f"{option}_per_worker must be left out for the local engine" in reason
    assert "engine ray" in reason


SPEAKING = """
import ctypes, os, sys
print("python on import")

def dark(image, severity):
    print("python at work")
    sys.__stdout__.write("python past the rest\\n")
    os.write(1, b"the system\\n")
    if os.name == "posix":
        ctypes.CDLL(None).puts(b"c")
    return image // 2
"""


def test_what_others_print_does_not_break_the_document(folder, shiftcal_json):
    (folder / "chatty.py").write_text(
        'def dark(image):\n    print("hello")\n    return image // 2\n'
    )
    told = shiftcal_json(COMMAND, "--corruption chatty:dark --severity 1 -o bank")
    assert told["sets_added"] == 2


def test_nor_does_what_is_printed_past_python(folder):
    (folder / "speaking.py").write_text(SPEAKING)
    words = [*COMMAND.split(), "--corruption", "speaking:dark", "--severity", "1", "-o", "bank"]
    done = subprocess.run(
        [sys.executable, "-m", "shiftcal", *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sets_added"] == 2
    heard = {"python on import", "python at work", "python past the rest", "the system"}
    assert heard <= set(done.stderr.splitlines())
