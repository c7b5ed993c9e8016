"""A few numbers that move when a method or a map does, cheap enough for a test.

They come from the digits and the corruptions of examples/digits.py, but from a model that needs no
training and is the same on every machine: a logit is a likeness to the mean image of a class.
``digits.py`` stores them with its results; a test asks whether they still hold.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_digits

import shiftcal as sc

# Makes the model so sure that it needs a temperature well above 1, as a network does.
SCALE = 8.0
TRAIN, CAL = slice(0, 600), slice(600, 1198)
NEW = slice(1198, None)


def measure(example):
    """What every method chose, and how every map did inside SAC, on dead pixels.

    Args:
        example: The module ``examples/digits.py``.
    """
    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    means = np.stack([images[TRAIN][labels[TRAIN] == k].mean(axis=0) for k in range(10)])
    target = example.kill_pixels(images[NEW], 0.15)
    ladder = (images[CAL], *(example.add_noise(images[CAL], a) for a in example.NOISE_LADDER))
    bank = sc.SurrogateBank.from_arrays(
        [likeness(step, means) for step in ladder],
        labels[CAL],
        corruption="noise",
        features=images[CAL],
    )
    logits = likeness(target, means)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.errors.FitWarning)
        return {
            "methods": {
                name: choice(sc.methods.get(name)(), bank, images[TRAIN], logits, target)
                for name in sc.methods.names()
                if not sc.methods.get(name).uses_mixed  # there is no model that takes images
            },
            "maps": {name: outcome(name, bank, logits, labels[NEW]) for name in sc.maps.names()},
        }


def likeness(images, means):
    """Minus half the squared distance to every mean, up to a constant of the row, scaled."""
    return SCALE * (images @ means.T - (means**2).sum(axis=1) / 2)


def choice(method, bank, source_features, logits, features):
    """The set, the temperature and the flags a method ends with."""
    selection = method.fit(bank, source_features=source_features).adapt(logits, features)
    return {
        "index": selection.index,
        "temperature": selection.temperature,
        "flags": " ".join(flag.code for flag in selection.flags),
    }


def outcome(name, bank, logits, labels):
    """ECE and NLL of SAC with this map inside."""
    sac = sc.SAC(map=name).fit(bank)
    sac.adapt(logits)
    probs = sac.predict_proba(logits)
    correct = probs.argmax(axis=1) == labels
    return {"ece": sc.ece(probs.max(axis=1), correct), "nll": sc.nll(probs, labels)}
