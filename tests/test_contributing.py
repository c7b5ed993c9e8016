"""The examples of the contributing page are whole files that keep every contract."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "contributing.md").read_text("utf-8")
FILES = dict(
    re.findall(r"^`(src/shiftcal/\w+/\w+\.py)`, whole.*?^```python\n(.*?)^```", PAGE, re.M | re.S)
)


def test_the_page_has_a_corruption_a_map_and_a_method():
    assert sorted(Path(name).parent.name for name in FILES) == ["corruptions", "maps", "methods"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_an_example_in_its_place_keeps_the_contracts(name, tmp_path):
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    place = tmp_path / name
    place.write_text(FILES[name], "utf-8")
    kind = place.parent.name.removesuffix("s")
    contract = f"tests/contracts/test_{kind}_contract.py"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-k",
            place.stem,
            contract,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout  # 5 if there was nothing to run
