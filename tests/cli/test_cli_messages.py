"""Mistakes that new users make: every message says what is wrong and what to do instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images, write_images

MISTAKES = {
    "compare nofile.npz": "nofile.npz does not exist.",
    "report nofile.npz target.npz -o r.html": "nofile.npz does not exist.",
    "compare cleen.npz target.npz": "cleen.npz does not exist. Did you mean 'clean.npz'?",
    "apply bank target.npz -o o.npz": "bank is a folder. METHOD must be a fitted method: shiftcal",
    "calibrate": "no such command 'calibrate'. Did you mean 'fit' or 'apply'?",
    "predict x.npz": "Did you mean 'apply'?",
    "adapt": "Did you mean 'train'?",
    "evalute": "Did you mean 'evaluate'?",
    "data lst": "no such command 'lst'. Did you mean 'list'?",
    "zzz": "no such command 'zzz'. There are: demo, list, ",
    "fit --method temperature -o o.json clean.npz": "Did you mean 'ts'?",
    "fit --method temperature_scaling -o o.json clean.npz": "Did you mean 'ts'?",
    "fit --method sac --map ts -o o.json clean.npz": "Did you mean 'temperature'?",
    "fit --method uncalibrated -o o.json clean.npz": "Did you mean 'vanilla'?",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_answered_with_what_to_do(files, refused, line):
    (files / "bank").mkdir()
    assert MISTAKES[line] in refused(line)


IMAGES = draw_images(18, 16, 16, seed=30) // 2
IMAGES[np.arange(18), ..., np.arange(18) // 6] += 100
NAMES = [f"{('ant', 'bee', 'cat')[i // 6]}/{i:02d}.png" for i in range(18)]
BANK = "--model net.onnx --batch-size 6 --severity 1"


@pytest.fixture
def images(tmp_path, monkeypatch):
    """A network of three classes, images in class folders, an array of them and labels."""
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    write_images(tmp_path / "images", IMAGES, NAMES)
    (tmp_path / "images" / "cat" / "99.png").write_bytes(b"no image")  # left out
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "other.npy", np.arange(18) % 3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    return tmp_path


# Classes that do not fit the bank, and what is said.
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("--images images --classes cat,bee,ant", "--images images --classes ant,bee,cat"),
        ("--images images.npy --labels other.npy", "--images images.npy --labels other.npy"),
        (
            "--images images.npy --labels other.npy",
            "--images images.npy --labels zero.npy --classes ant,bee,cat",
        ),
    ],
)
def test_a_bank_is_relabelled_as_if_made_anew_and_nothing_is_scored(
    images, shiftcal, shiftcal_json, before, after
):
    np.save("zero.npy", np.arange(18) // 6)
    assert shiftcal("bank", BANK, before, "--skip-bad -o bank").status == 0
    assert shiftcal("bank", BANK, after, "--skip-bad -o wanted").status == 0
    if before != after:
        assert "--relabel" in shiftcal("bank", BANK, after, "--skip-bad -o bank").err
    told = shiftcal_json("bank", BANK, after, "--skip-bad --relabel -o bank")
    assert (told["images_scored"], told["sets_added"]) == (0, 0)
    made, wanted = (
        {file.name: file.read_bytes() for file in Path(name).iterdir()}
        for name in ("bank", "wanted")
    )
    assert made == wanted


def test_a_file_of_torch_without_code_says_how_it_is_loaded(images, refused):
    torch = pytest.importorskip("torch")

    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 3))
    torch.save(net, "net.pt")
    torch.save(net, "old.pt", _use_new_zipfile_serialization=False)
    (images / "not_read.py").write_text("import torch\ndef net():\n    return torch.nn.ReLU()\n")
    for file in ("net.pt", "old.pt"):
        reason = refused(f"bank --images images -o bank --model {file}")
        assert "torch:package.module:factory?weights=FILE" in reason
        reason = refused(f"bank --images images -o bank --model torch:not_read:net?weights={file}")
        assert "tensors and nothing else" in reason
