"""What every command does to files it replaces, to a full disk, and to odd names it prints."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import small_disk
from onnx_resnet import mean_colour_onnx
from stored_images import draw_images

from shiftcal.cli.main import run

ODD = "odd\x1b[31m\x07\u202ename"
FIT = "fit --method sac --map histogram --set map.n_bins=99 --surrogate"
SHOWN = r"odd\x1b[31m\x07\u202ename"


@pytest.fixture
def folder(fitted):
    """Scores, a fitted method, images and a network."""
    np.save("images.npy", draw_images(6, 16, 16, seed=1))
    np.save("others.npy", draw_images(6, 16, 16, seed=2))
    Path("net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    return fitted.parent


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (f"{FIT} clean.npz --surrogate s1.npz", "out.json"),
        ("apply sac.json target.npz", "out.npz"),
        ("score --model net.onnx --images images.npy", "out.npz"),
        ("score --model net.onnx --images images.npy", "out.csv"),
    ],
)
def test_an_output_that_is_replaced_keeps_its_mode_and_its_link(folder, shiftcal, words, name):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    real = elsewhere / f"real{Path(name).suffix}"
    assert shiftcal(words, "-o", real).status == 0
    before = real.read_bytes()
    real.chmod(0o640)
    Path(name).symlink_to(real)
    changed = (
        words.replace("s1.npz", "s2.npz")
        .replace("target", "s2")
        .replace("images.npy", "others.npy")
    )
    done = shiftcal(changed, "-o", name)
    assert done.status == 0, done.err
    assert Path(name).is_symlink()
    assert real.read_bytes() != before
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_link_that_leads_nowhere_yet_is_filled(folder, shiftcal, bank):
    Path("out.json").symlink_to(folder / "later.json")
    assert shiftcal("fit --method sac -o out.json", bank).status == 0
    assert json.loads((folder / "later.json").read_text())["format"] == "shiftcal-estimator"


def test_a_device_is_no_output(folder, refused, bank):
    Path("device.json").symlink_to("/dev/null")
    assert "it is not a regular file" in refused("fit --method sac -o device.json", bank)


@pytest.mark.skipif(small_disk.way() is None, reason="no tmpfs can be mounted here")
def test_fit_leaves_nothing_on_a_disk_that_is_full(folder):
    """Of every size from one page on until the method fits."""
    disk = folder / "disk"
    disk.mkdir()
    script = (
        "import json, os, subprocess, sys\n"
        "from shiftcal.cli.main import run\n"
        "disk, *words = sys.argv[1:]\n"
        "found, status, pages = [], 2, 0\n"
        "while status == 2 and pages < 40:\n"
        "    pages += 1\n"
        "    mount = ['mount', '-t', 'tmpfs', '-o', f'size={pages * 4096}', 'tmpfs', disk]\n"
        "    subprocess.run(mount, check=True)\n"
        "    status = run([*words, '-o', f'{disk}/out.json'])\n"
        "    found.append([status, sorted(os.listdir(disk))])\n"
        "    subprocess.run(['umount', disk], check=True)\n"
        "print(json.dumps(found))\n"
    )
    words = [*FIT.split(), "clean.npz", "--surrogate", "s1.npz"]
    command = [*small_disk.way(), sys.executable, "-c", script, str(disk), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    *full, last = json.loads(done.stdout.splitlines()[-1])
    assert last == [0, ["out.json"]]
    assert full
    assert all(each == [2, []] for each in full)


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "ODD.npz", "--bins", "5"],
        [
            "fit",
            "--method",
            "sac",
            "--surrogate",
            "clean.npz",
            "--surrogate",
            "ODD.npz",
            "-o",
            "ODD.json",
        ],
        ["compare", "--target", "ODD.npz", "--surrogate", "clean.npz", "--surrogate", "s1.npz"],
        ["apply", "sac.json", "ODD.npz", "-o", "ODD-out.npz"],
        ["bank", "--model", "net.onnx", "--images", "ODD", "--severity", "1", "-o", "ODD-bank"],
    ],
    ids=lambda words: words[0],
)
def test_control_characters_of_names_do_not_reach_stdout(folder, capsys, words):
    from stored_images import write_images

    for name in (ODD, "plain"):
        shutil.copy("target.npz", f"{name}.npz")
        names = [f"{label}/{i}.png" for i, label in enumerate("abcabc")]
        write_images(Path(name), np.load("images.npy"), names)
    lines = {}
    for name in (ODD, "plain"):
        assert run([word.replace("ODD", name) for word in words]) == 0, capsys.readouterr().err
        out = capsys.readouterr().out
        assert all(line.isprintable() for line in out.split("\n"))
        lines[name] = out.split("\n")
    assert len(lines[ODD]) == len(lines["plain"])
    assert any(SHOWN in line for line in lines[ODD])
