"""Maps with an intercept learn how often the model is wrong about the classes themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from shiftcal import maps


def drawn(n: int, offsets, *, seed: int):
    """Logits, labels, and the true log-probabilities ``0.5 log p + offset``."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.standard_normal((n, len(offsets)))
    truth = log_softmax(0.5 * log_softmax(logits, axis=1) + offsets, axis=1)
    labels = (np.exp(truth).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return logits, labels.clip(max=len(offsets) - 1), truth


@pytest.mark.parametrize("name", ["vector", "matrix", "dirichlet"])
def test_an_offset_of_every_class_is_learnt(name):
    offsets = np.random.default_rng(1).standard_normal(10)
    fitted = maps.get(name)().fit(*drawn(5000, offsets, seed=2)[:2])
    logits, labels, truth = drawn(20_000, offsets, seed=3)
    rows = np.arange(len(labels))
    best = -truth[rows, labels].mean()
    ours = -np.log(fitted.predict_proba(logits)[rows, labels]).mean()
    alone = maps.Temperature().fit(*drawn(5000, offsets, seed=2)[:2]).predict_proba(logits)
    without = -np.log(alone[rows, labels]).mean()
    # the penalty costs a little, and temperature cannot learn offsets at all
    assert ours - best < 0.2 * (without - best)
    assert np.corrcoef(fitted.intercept_, offsets)[0, 1] > 0.9
