"""Maps and methods fitted once."""

from __future__ import annotations

import functools

import pytest
from map_data import draw_logits as draw
from map_data import quiet_fit

from shiftcal import SurrogateBank, maps, methods


@functools.cache
def fitted_map(name, k=5, **settings):
    """A fitted map; not to be changed."""
    if name in ("matrix", "dirichlet") and k > 5:
        settings = {"max_iter": 5, **settings}  # any numbers will do, and more take seconds
    return quiet_fit(maps.get(name)(**settings), *draw(1500, k, temperature=1.8, seed=1))


@pytest.fixture(scope="session")
def fit_map():
    return fitted_map


@pytest.fixture(scope="session")
def ladder():
    """A bank of three sets, and a target between the last two."""
    sets = [draw(800, 5, temperature=t, seed=2)[0] / t**1.5 for t in (1.5, 2.5, 4.0)]
    labels = draw(800, 5, temperature=1.5, seed=2)[1]
    target = draw(600, 5, temperature=3.0, seed=3)[0] / 3.0**1.5
    return SurrogateBank.from_arrays(sets, labels), target


@pytest.fixture
def sac(ladder):
    bank, target = ladder
    made = quiet_fit(methods.get("sac")(), bank)
    made.adapt(target)
    return made
