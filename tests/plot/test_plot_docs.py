"""The pictures on the page of plots are what the code above them draws."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"


def drawn_by():
    """The version of matplotlib that the project is developed with."""
    (found,) = re.findall(r"^matplotlib==(\S+)", (ROOT / "constraints.txt").read_text(), re.M)
    return found


def test_the_pictures_are_what_the_code_above_them_draws(tmp_path):
    spec = importlib.util.spec_from_file_location("plots", FIGURES / "plots.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    names = script.draw(tmp_path)
    assert len(names) == 5
    assert sorted(names) == sorted(path.name for path in FIGURES.glob("plot-*"))
    for name in names:
        made, committed = (Image.open(folder / name).convert("L") for folder in (tmp_path, FIGURES))
        assert (FIGURES / name).stat().st_size < 60_000
        assert made.size == committed.size, "run docs/figures/plots.py"
        if mpl.__version__ == drawn_by():  # others put letters and axes a few pixels elsewhere
            apart = np.abs(np.asarray(made, float) - np.asarray(committed, float))
            assert apart.mean() < 2, "run docs/figures/plots.py"
