"""The project as it is released: its extras, its example, and what of it can be imported."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Those for users; "all" is made of them.
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - {"all", "dev"})
# One script for each: it works where the extra is installed.
SERVED = ROOT / "tests" / "packaging" / "served"


def requirements(extra: str) -> list[str]:
    """What an extra asks for, as ``name>=version``."""
    return PROJECT["optional-dependencies"][extra]


def check_example_of_readme(environment) -> None:
    """The Python example of the README runs and prints what it says."""
    text = (ROOT / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    selection, ece = environment.call("-c", code).stdout.splitlines()
    assert selection.startswith("set 2 of 3 (fading, severity 1), T = ")
    assert float(ece) < 0.05


def names_without_extra(environment) -> dict[str, str]:
    """Public names that cannot be had, each with the extra that brings it.

    Every other public name of every public module could be imported.
    """
    told = environment.call(ROOT / "tests" / "support" / "public_names.py").stdout
    outcomes = json.loads(told)
    assert len(outcomes) > 300
    wanting = {name: text for name, text in outcomes.items() if text}
    message = re.compile(r"MissingExtra: .*\. Run: pip install 'shiftcal\[(\w+)\]'")
    unclear = {name: text for name, text in wanting.items() if not message.fullmatch(text)}
    assert unclear == {}
    return {name: message.fullmatch(text)[1] for name, text in wanting.items()}
