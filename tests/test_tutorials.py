"""The tutorials do what they say: every block runs, in order, and prints what the page shows.

A reader has installed the extras that the page names and no others, so the packages of all other
extras are hidden from the processes of the page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from page_blocks import blocks_of, is_shown, shown_after

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = sorted(path.name for path in TUTORIALS.glob("*.md") if path.name != "index.md")
PROCESS = Path(__file__).parent / "support" / "page_blocks.py"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
IMPORTED_AS = {
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "prometheus-client": "prometheus_client",
}
HIDING = """
from importlib.machinery import PathFinder

found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *where: None if name in {names!r} else found(name, *where)
"""


def packages(extra):
    """The packages of an extra, as they are imported."""
    named = (re.match(r"[\w-]+", requirement)[0] for requirement in EXTRAS[extra])
    return {IMPORTED_AS.get(name, name) for name in named}


def extras_of(page):
    """The extras that a page tells its reader to install."""
    (command,) = re.findall(r"`pip install '?\.(?:\[([a-z,]+)\]')?`", page)
    return set(command.split(",")) - {""}


def environment(page, folder):
    """Where the reader sits: this environment first on PATH, and other extras not installed."""
    installed = set().union(*map(packages, extras_of(page)))
    others = set().union(*(packages(name) for name in EXTRAS if name not in ("all", "dev")))
    (folder / "sitecustomize.py").write_text(HIDING.format(names=sorted(others - installed)))
    inherited = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    return inherited | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "OMP_NUM_THREADS": "1",
    }


# Starts a Ray cluster, which takes half a minute.
SLOW = {"cluster.md"}


@pytest.mark.parametrize(
    "name", [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW)) for page in PAGES]
)
def test_a_tutorial_runs_from_its_first_block_to_its_last_and_prints_what_it_shows(name, tmp_path):
    page = TUTORIALS / name
    around, reader = tmp_path / "around", tmp_path / "reader"
    around.mkdir()
    reader.mkdir()
    done = subprocess.run(
        [sys.executable, PROCESS, page, around / "printed.json"],
        cwd=reader,
        env=environment(page.read_text("utf-8"), around),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    printed = json.loads((around / "printed.json").read_text("utf-8"))
    for output, shown in zip(printed, shown_after(blocks_of(page)), strict=True):
        if shown is not None:
            assert is_shown(output, shown.text), f"line {shown.line} of {name}; it was:\n{output}"
