"""Tutorials and how-to pages: every block runs, in order, and prints what the page shows.

Where a page names the extras to install, the packages of all other extras are hidden from it.
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
DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in (
        *DOCS.glob("tutorials/*.md"),
        *DOCS.glob("how-to/*.md"),
        DOCS / "index.md",
        DOCS / "quickstart.md",
        DOCS / "reference" / "python" / "integrations.md",
    )
)
PROCESS = Path(__file__).parent / "support" / "page_blocks.py"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
IMPORTED_AS = {
    "mlflow-skinny": "mlflow",
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


def hidden_packages(page):
    """The packages of extras that a page does not tell its reader to install."""
    found = re.search(r"\*\*Install\*\*.*?`pip install '?\.(?:\[([a-z,]+)\]')?", page, re.DOTALL)
    if not found:
        return []
    installed = set().union(*map(packages, found[1].split(",") if found[1] else []))
    others = set().union(*(packages(name) for name in EXTRAS if name not in ("all", "dev")))
    return sorted(others - installed - {"pandas"})  # pages say themselves where they need it


def environment(page, folder):
    """This environment first on PATH, without the packages that the reader does not have."""
    (folder / "sitecustomize.py").write_text(HIDING.format(names=hidden_packages(page)))
    inherited = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    return inherited | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "OMP_NUM_THREADS": "1",
    }


# Starts a Ray cluster, which takes half a minute.
SLOW = {"how-to/scale.md"}


@pytest.mark.parametrize(
    "name", [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW)) for page in PAGES]
)
def test_a_page_runs_from_its_first_block_to_its_last_and_prints_what_it_shows(name, tmp_path):
    page = DOCS / name
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
