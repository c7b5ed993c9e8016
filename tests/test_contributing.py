"""The examples of the contributing page keep every contract when they are added to shiftcal."""

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
# Of each example the table of its kind, the file, the line in the table, and the text.
EXAMPLES = {
    table: (file, line, text)
    for file, line, table, text in re.findall(
        r"^In .*?`(src/shiftcal/[\w/]+\.py)`, with the line `([^`]+)` in the table `(\w+)`"
        r".*?^```python\n(.*?)^```",
        PAGE,
        re.M | re.S,
    )
}


def test_the_page_has_a_corruption_a_map_and_a_method():
    assert sorted(EXAMPLES) == ["CORRUPTIONS", "MAPS", "METHODS"]


@pytest.mark.slow
@pytest.mark.parametrize("table", EXAMPLES)
def test_an_example_in_its_place_keeps_the_contracts(table, tmp_path):
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file, line, text = EXAMPLES[table]
    place = tmp_path / file
    before = place.read_text("utf-8") if place.exists() else ""
    place.write_text(f"{before}\n\n{text}", "utf-8")
    registry = tmp_path / "src" / "shiftcal" / "registry.py"
    head = rf'(?m)^{table} = Registry\(\n    "[\w ]+",\n    {{\n'
    tables, n = re.subn(head, lambda found: f"{found[0]}        {line},\n", registry.read_text())
    assert n == 1
    registry.write_text(tables)
    contract = f"tests/contracts/test_{table.lower().removesuffix('s')}_contract.py"
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
            line.split('"')[1],
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
