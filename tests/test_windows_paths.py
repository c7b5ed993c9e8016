"""No colon of a drive is taken for another, and our files can have their names on any disk."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import numpy as np
import pytest
from photos import photos

from shiftcal.cli.inputs import file_of
from shiftcal.cli.main import run
from shiftcal.models.resolve import parse_spec as parse_model
from shiftcal.registry import split_spec
from shiftcal.scores_io import member_of

FORBIDDEN = set('<>:"|?*\\')
DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{i}" for port in ("com", "lpt") for i in range(10)),
}
FILE = r"C:\Users\Ada Lovelace\model.onnx"


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        (FILE, "onnx", FILE),
        (f"onnx:{FILE}", "onnx", FILE),
        (r"d:model.skops", "sklearn", r"d:model.skops"),
        (r"export:\\server\share\net.pt2", "export", r"\\server\share\net.pt2"),
        (rf"{FILE}?batch_size=4", "onnx", FILE),
    ],
)
def test_a_model_may_be_on_a_drive(text, kind, target):
    spec = parse_model(text)
    assert (spec.kind, spec.target) == (kind, target)
    assert parse_model(str(spec)) == spec


def test_images_may_be_on_a_drive():
    assert split_spec(r"C:\photos") == ("", r"C:\photos", {})
    spec = split_spec(r"cifar10:C:\data\cifar10?part=test")
    assert spec == ("cifar10", r"C:\data\cifar10", {"part": "test"})


@pytest.mark.parametrize(
    ("text", "file", "key"),
    [
        (r"C:\x\labels.npz", r"C:\x\labels.npz", None),
        (r"C:\x\labels.npz:fine", r"C:\x\labels.npz", "fine"),
        (r"C:\x\labels.csv", r"C:\x\labels.csv", None),
        ("labels.npz:fine", "labels.npz", "fine"),
    ],
)
def test_an_array_of_an_archive_may_be_on_a_drive(text, file, key):
    assert member_of(text) == (Path(file), key)


@pytest.mark.parametrize(
    ("text", "file", "column"),
    [
        (r"C:\x\target.csv", r"C:\x\target.csv", None),
        (r"C:\x\target.csv:camera", r"C:\x\target.csv", "camera"),
        ("target.csv:camera", "target.csv", "camera"),
    ],
)
def test_groups_may_be_on_a_drive(text, file, column):
    assert file_of(text) == (Path(file), column)


def names_in(folder):
    return [part for path in folder.rglob("*") for part in path.relative_to(folder).parts]


def portable(name):
    return (
        not FORBIDDEN & set(name)
        and name.isprintable()
        and name[-1] not in ". "
        and PureWindowsPath(name).stem.lower() not in DEVICES
    )


def test_names_of_our_files_can_stand_on_any_disk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("darkening.py").write_text(
        "def darker(image, severity, rng):\n    return image // (severity + 1)\n"
    )
    Path("colour_net.py").write_text(
        "import numpy as np\n"
        "def logits(images):\n"
        "    return images.mean((1, 2)).astype(float) / 9\n"
    )
    images = np.concatenate([photos(32, 32)] * 30)
    np.savez("images.npz", images=images, labels=np.arange(len(images)) % 3)
    given = set(tmp_path.iterdir())
    bank = "bank --model python:colour_net:logits --images images.npz -o bank"
    for words in (
        "corrupt images.npz out --corruption darkening:darker,fog",
        f"{bank} --corruption darkening:darker,pixelate --severity 1-2",
        "score --model python:colour_net:logits --images images.npz -o target.npz",
        "fit bank --method sac -o sac.json",
        "report bank target.npz -o report.html --resamples 0",
    ):
        assert run(words.split()) == 0, capsys.readouterr().err
    made = [name for path in set(tmp_path.iterdir()) - given for name in (path.name,)]
    assert {"out", "bank", "target.npz", "sac.json", "report.html"} <= set(made)
    names = [*made, *names_in(tmp_path / "out"), *names_in(tmp_path / "bank")]
    assert [name for name in names if not portable(name)] == []
