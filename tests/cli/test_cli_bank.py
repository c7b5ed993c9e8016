"""``shiftcal bank``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images, encode, write_images

from shiftcal import SurrogateBank, corrupt
from shiftcal.models import as_model

# Six each are red, green, blue, as the network of mean colours has its classes.
IMAGES = draw_images(18, 16, 16, seed=30) // 2
IMAGES[np.arange(18), ..., np.arange(18) // 6] += 100
CLASSES = ("ant", "bee", "cat")
NAMES = [f"{CLASSES[i // 6]}/{i:02d}.png" for i in range(18)]
COMMAND = "bank --model net.onnx --images images --batch-size 6 --shard-size 6"
FEW = "the clean set has 18 images; fewer than 100 tell little. Add more."


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A network of three classes, images in class folders, and an array of them."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    write_images(tmp_path / "images", IMAGES, NAMES)
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "three.npy", np.arange(18) // 6)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


def contents(bank):
    return {file.name: file.read_bytes() for file in bank.iterdir()}


def test_a_bank_is_made_and_says_what_is_next(folder, shiftcal):
    done = shiftcal(COMMAND, "--corruption pixelate -o bank")
    assert (done.status, done.err) == (0, f"warning: {FEW}\n")
    lines = done.out.splitlines()
    assert lines[:7] == [
        "model     net.onnx",
        "images    images",
        "input     pixels 0 to 1, nothing else",
        "sets      6: 6 added",
        "scored    108 images in this run",
        "bank      bank",
        "",
    ]
    bank = SurrogateBank.load("bank")
    assert lines[7].split() == ["set", "name", "rows", "mean", "confidence", "accuracy"]
    for j, (line, each) in enumerate(zip(lines[8:14], bank.summaries(), strict=True), start=1):
        told = [str(j), *each.name.split(), "18", f"{each.mean_confidence:.4f}"]
        assert line.split() == [*told, f"{each.accuracy:.4f}"]
    assert lines[8].endswith("1.0000")
    assert lines[14:] == ["", "next      shiftcal fit --method sac --bank bank -o sac.json"]
    model = as_model("net.onnx", batch_size=6)
    for each in bank:
        pixels = corrupt(IMAGES, "pixelate", severity=each.severity) if each.severity else IMAGES
        np.testing.assert_array_equal(each.logits, model.logits(pixels))
        assert each.labels.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert bank.origin["model"]["spec"] == f"onnx:{folder / 'net.onnx'}"


def test_the_same_command_again_has_nothing_to_do(folder, shiftcal):
    shiftcal(COMMAND, "-o bank --severity 1")
    before = contents(folder / "bank")
    done = shiftcal(COMMAND, "-o bank --severity 1")
    assert done.status == 0
    assert "sets      2: 0 added, 2 were there already" in done.out
    assert "scored    0 images in this run" in done.out
    assert contents(folder / "bank") == before


def test_a_bank_is_added_to(folder, shiftcal):
    shiftcal(COMMAND, "-o bank --severity 1")
    done = shiftcal(COMMAND, "-o bank --severity 1-2 --corruption pixelate --corruption fog")
    assert "sets      5: 3 added, 2 were there already" in done.out
    assert "scored    54 images in this run" in done.out


def test_json_says_the_same(folder, shiftcal_json):
    told = shiftcal_json(COMMAND, "-o bank --severity 2,4 --seed 3 --dtype float16")
    assert told["command"] == "bank"
    assert (told["bank"], told["model"], told["images"]) == ("bank", "net.onnx", "images")
    for each, one in zip(told["sets"], SurrogateBank.load("bank").summaries(), strict=True):
        assert each == {
            "name": one.name,
            "rows": 18,
            "mean_confidence": pytest.approx(one.mean_confidence, abs=1e-12),
            "accuracy": one.accuracy,
        }
    names = ["clean", "pixelate, severity 2", "pixelate, severity 4"]
    assert [each["name"] for each in told["sets"]] == names
    assert told["preprocessing"] == as_model("net.onnx").preprocessing.to_dict()
    assert (told["sets_added"], told["images_scored"]) == (3, 54)
    assert (told["left_out"], told["warnings"]) == ([], [FEW])
    origin = json.loads((folder / "bank" / "bank.json").read_text())["origin"]
    assert (origin["seed"], origin["dtype"]) == (3, "float16")


def test_two_workers_make_the_same_bank(folder, shiftcal):
    shiftcal(COMMAND, "--severity 1 -o one")
    done = shiftcal(COMMAND, "--severity 1 --workers 2 -o two")
    assert done.status == 0, done.err
    assert contents(folder / "one") == contents(folder / "two")


def test_a_function_of_ones_own_is_a_corruption(folder, shiftcal):
    (folder / "mine.py").write_text("def dark(image, severity):\n    return image // severity\n")
    done = shiftcal(COMMAND, "--corruption mine:dark --severity 2 -o bank")
    assert done.status == 0, done.err
    np.testing.assert_array_equal(
        SurrogateBank.load("bank")[1].logits, as_model("net.onnx", batch_size=6).logits(IMAGES // 2)
    )


def test_a_function_that_fails_is_to_blame_and_what_was_done_is_kept(folder, shiftcal):
    (folder / "bad.py").write_text("def bad(image, severity):\n    return image.nonsense\n")
    done = shiftcal(COMMAND, "--corruption bad:bad --severity 1 -o bank")
    assert done.status == 2
    assert "nonsense" in done.err
    assert "mistake in shiftcal" not in done.err


@pytest.fixture
def damaged(folder):
    """Four images that cannot be read: cut short, empty, something else, gone."""
    png = (folder / "images" / NAMES[0]).read_bytes()
    (folder / "images" / NAMES[0]).write_bytes(png[: len(png) // 2])
    (folder / "images" / NAMES[7]).write_bytes(b"")
    (folder / "images" / NAMES[8]).write_text("this is no image")
    jpeg = encode(IMAGES[17], "JPEG")
    (folder / "images" / NAMES[17]).unlink()
    (folder / "images" / "cat" / "17.jpg").write_bytes(jpeg[: len(jpeg) // 3])
    return ["ant/00.png", "bee/07.png", "bee/08.png", "cat/17.jpg"]


def test_images_that_cannot_be_read_are_left_out_listed_and_status_2(folder, shiftcal, damaged):
    done = shiftcal(COMMAND, "--severity 1 -o bank")
    assert done.status == 2
    assert "scored    28 images in this run\nleft out  4 images\n" in done.out
    assert "next" not in done.out
    lines = done.err.splitlines()
    assert lines[0].startswith("warning: left out 4 of 18 images: ")
    assert "ant/00.png" in lines[0]
    assert lines[0].endswith("; and 1 more.")
    assert ".;" not in lines[0]
    assert lines[-1].startswith("error: ")
    assert "could not be read and left out: 4 images. --skip-bad accepts that." in lines[-1]
    bank = SurrogateBank.load("bank")
    assert [len(each) for each in bank] == [14, 14]
    assert [bad["id"] for bad in bank.origin["left_out"]] == damaged
