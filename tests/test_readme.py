"""The README does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from ladder_data import STEPS, draw
from onnx_resnet import mean_colour_onnx
from photos import photo, photos
from PIL import Image

from shiftcal.cli.main import run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_example_runs_and_prints_what_its_comments_say(capsys):
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    selection, ece = capsys.readouterr().out.splitlines()
    assert selection.startswith("set 2 of 3 (fading, severity 1), T = ")
    assert float(ece) < 0.05


def test_the_commands_run_on_files_as_described(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, step in (("clean", 0), ("s1", 2), ("s2", 4), ("target", 3)):
        logits, labels = draw(400, STEPS[step], seed=step)
        # As many columns as the network has classes.
        some = labels < 3
        np.savez(f"{name}.npz", logits=logits[some, :3], labels=labels[some])
    Path("model.onnx").write_bytes(mean_colour_onnx(["n", 3, None, None]))
    new = [Path("new-images", f"{i:02}.png") for i in range(24)]
    for i, file in enumerate(new):
        tinted = photos(32, 32)[i % 4] // np.roll([1, 3, 3], i % 3).astype(np.uint8)
        for path in (file, Path("calibration", "rgb"[i % 3], file.name)):
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(tinted).save(path)
    Path("scores").mkdir()
    np.savez("scores/monday.npz", logits=draw(400, STEPS[1], seed=3)[0][:, :3])
    np.save("labels.npy", np.arange(24) % 3)
    np.savez("images.npz", images=photos(32, 32))
    Image.fromarray(photo(32, 32)).save("photo.png")
    commands = [block for block in blocks("sh") if "make demo" not in block]
    assert len(commands) == 3
    for line in "".join(commands).splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "shiftcal"
        assert run(arguments) == 0, capsys.readouterr().err


@pytest.mark.parametrize("target", re.findall(r"make (\w+) ", README))
def test_every_make_target_named_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)", README))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()
