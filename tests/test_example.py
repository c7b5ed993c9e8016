"""The example in the package."""

from __future__ import annotations

import numpy as np
import pytest

import shiftcal as sc


def test_the_example_is_what_it_says_and_shows_the_effect():
    bank, targets = sc.load_example()
    assert len(bank) == 25
    assert len({one.corruption for one in bank}) == 9
    assert not set(targets) & {one.corruption for one in bank}
    assert len(targets) == 9
    # ResNet-20 has an accuracy of 0.9173 on all test images, of which these are 2,000.
    clean = np.concatenate([bank.clean.logits, targets["clean"].values])
    labels = np.concatenate([bank.clean.labels, targets["clean"].labels])
    assert (clean.argmax(axis=1) == labels).mean() == pytest.approx(0.9173, abs=0.015)
    methods = [sc.Vanilla().fit(bank), sc.TS().fit(bank), sc.Rehearsal().fit(bank)]
    errors = []
    for target in targets.values():
        assert (target.n, target.k, target.classes[3]) == (1000, 10, "cat")
        correct = target.values.argmax(axis=1) == target.labels
        for method in methods:
            method.adapt(target)
            errors.append(sc.ece(method.confidence(target), correct))
    raw, ts, rehearsal = np.reshape(errors, (9, 3)).mean(axis=0)
    assert raw > 0.2
    assert ts < raw / 1.5
    assert rehearsal < ts / 2.5
