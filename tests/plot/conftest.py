"""Figures are closed after every test, and nothing of matplotlib's settings may have changed."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from digits_bank import digits_bank, digits_target
from matplotlib import pyplot as plt

import shiftcal as sc


@pytest.fixture(autouse=True)
def untouched_settings():
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="session")
def adapted():
    """SAC and Rehearsal, adapted to the digits with noise."""
    found = {}
    for name in ("sac", "rehearsal"):
        found[name] = sc.methods.get(name)().fit(digits_bank())
        found[name].adapt(digits_target())
    return found
