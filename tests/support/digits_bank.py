"""A real bank: scikit-learn's digits, a linear classifier, two kinds of harder images."""

from __future__ import annotations

import functools

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from shiftcal import Scores, SurrogateBank, SurrogateSet

CLASSES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def noisy(images, strength, *, seed):
    drawn = np.random.default_rng(seed).normal(0.0, strength, images.shape)
    return np.clip(images + drawn, 0, 16)


def faded(images, share):
    return images * (1 - share)


@functools.cache
def trained():
    """The classifier, and the digits it has not seen: calibration and target."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order], labels[order]
    model = LogisticRegression(C=10.0, max_iter=2000).fit(images[:400], labels[:400])
    return model, (images[400:1000], labels[400:1000]), (images[1000:], labels[1000:])


@functools.cache
def digits_bank():
    """The clean set, three severities of noise and two of fading, 600 rows each."""
    model, (images, labels), _ = trained()
    sets = [SurrogateSet(model.decision_function(images), labels, "clean", severity=0)]
    for severity, strength in enumerate((2.0, 4.0, 6.0), start=1):
        logits = model.decision_function(noisy(images, strength, seed=severity))
        sets.append(SurrogateSet(logits, labels, f"noise {severity}", "noise", severity))
    for severity, share in enumerate((0.5, 0.8), start=1):
        logits = model.decision_function(faded(images, share))
        sets.append(SurrogateSet(logits, labels, f"fading {severity}", "fading", severity))
    return SurrogateBank(sets, classes=CLASSES)


@functools.cache
def digits_target(*, labelled=True):
    """New digits with noise between the first two severities."""
    model, _, (images, labels) = trained()
    logits = model.decision_function(noisy(images, 3.0, seed=9))
    return Scores(logits, labels=labels if labelled else None, classes=CLASSES)
