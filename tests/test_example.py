"""The example in the package."""

from __future__ import annotations

import numpy as np
import pytest

import shiftcal as sc


def test_the_example_is_what_it_says():  # the test of the demo has its effect
    bank, targets = sc.load_example()
    assert len(bank) == 25
    assert len({one.corruption for one in bank}) == 9
    assert not set(targets) & {one.corruption for one in bank}
    assert len(targets) == 9
    # ResNet-20 has an accuracy of 0.9173 on all test images, of which these are 2,000.
    clean = np.concatenate([bank.clean.logits, targets["clean"].values])
    labels = np.concatenate([bank.clean.labels, targets["clean"].labels])
    assert (clean.argmax(axis=1) == labels).mean() == pytest.approx(0.9173, abs=0.015)
    for target in targets.values():
        assert (target.n, target.k, target.classes[3]) == (1000, 10, "cat")
