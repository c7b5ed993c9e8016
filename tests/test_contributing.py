"""The examples of the contributing page keep every contract when they are added to shiftcal."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shiftcal.numerics.blocks import kernels

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "contributing.md").read_text("utf-8")
# Of each example the table of its kind, the file, the class, its module, and the text.
EXAMPLES = {
    table: (file, name, module, text)
    for file, name, module, table, text in re.findall(
        r"^In .*?`(src/shiftcal/[\w/]+\.py)`, with `(\w+)` listed under `([\w.]+)` in the table "
        r"`(\w+)`.*?^```python\n(.*?)^```",
        PAGE,
        re.M | re.S,
    )
}
# An editable installation finds its own package first; here it must not.
RUN = """
import sys, pytest
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.exit(pytest.main(sys.argv[1:]))
"""


# The promises that an example must keep: a file of tests, and which of them.
CONTRACTS = {
    "CORRUPTIONS": ("contracts/test_corruption_contract.py", "vignette"),
    "MAPS": ("contracts/test_map_contract.py", "power"),
    "METHODS": ("contracts/test_method_contract.py", "between"),
    # Statistics of a fixed size have the metrics that come with shiftcal only.
    "METRICS": ("contracts/test_metric_contract.py", "overconfidence and not exported"),
    "TRAINERS": ("adaptation/test_trainers.py", "mean-matching and not references"),
}


@pytest.mark.parametrize("table", CONTRACTS)
def test_an_example_in_its_place_keeps_the_contracts(table, tmp_path):
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    shutil.copy(kernels.__file__, tmp_path / "src" / "shiftcal")
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file, name, module, text = EXAMPLES[table]
    place = tmp_path / file
    before = place.read_text("utf-8") if place.exists() else ""
    place.write_text(f"{before}\n\n{text}", "utf-8")
    registry = tmp_path / "src" / "shiftcal" / "registry.py"
    before, start, after = registry.read_text().partition(f"\n{table} = Registry(\n")
    assert start
    if f'"{module}": "' in after:
        after = after.replace(f'"{module}": "', f'"{module}": "{name} ', 1)
    else:
        after = after.replace("    {\n", f'    {{\n        "{module}": "{name}",\n', 1)
    registry.write_text(before + start + after)
    contract, chosen = CONTRACTS[table]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            RUN,
            "-n0",
            "-p",
            "no:cacheprovider",
            "-k",
            chosen,
            f"tests/{contract}",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout  # 5 if there was nothing to run
