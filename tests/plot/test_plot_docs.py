"""The pictures on the page of plots are what the code above them draws."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"


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
        if mpl.__version__.startswith(f"{script.DRAWN_WITH}."):
            apart = np.abs(np.asarray(made, float) - np.asarray(committed, float))
            assert apart.mean() < 2, "run docs/figures/plots.py"
