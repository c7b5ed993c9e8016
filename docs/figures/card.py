"""Write the example of a calibration card, docs/card-example.md and the JSON beside it.

A linear classifier of scikit-learn's digits, a bank of three corruptions, and new digits under a
fourth. Takes some seconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shiftcal as sc
from shiftcal import cards, models

EXAMPLE = Path(__file__).resolve().parents[1] / "card-example.md"
TITLE = "Example: digits, read by a linear classifier"
NOTES = (
    "This card was made by docs/figures/card.py, of data that comes with scikit-learn: a linear "
    "classifier of 400 digits, calibrated on 700 others, and used on 697 new ones under a "
    "corruption that the bank does not have. It shows what a card looks like; one target is no "
    "evidence for a method."
)
CORRUPTIONS = ("gaussian_noise", "impulse_noise", "defocus_blur")


def digits():
    """The digits as pictures of 16 x 16 pixels, uint8, in a fixed random order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    grey = np.rint(data.images[order] * (255 / 16)).astype(np.uint8)
    large = grey.repeat(2, axis=1).repeat(2, axis=2)
    return np.repeat(large[..., None], 3, axis=3), data.target[order]


def make() -> cards.CalibrationCard:
    """The card."""
    images, labels = digits()
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))
    classifier.fit((images[:400] / 255).reshape(400, -1), labels[:400])
    model = models.SklearnModel(classifier)
    bank = sc.SurrogateBank.synthesize(
        model, images[400:1100], labels[400:1100], corruption=list(CORRUPTIONS), severities=(3, 5)
    )
    new = sc.corrupt(images[1100:], "shot_noise", severity=5, seed=1)
    target = sc.score(model, new, labels=labels[1100:])
    return cards.make_card("rehearsal", bank, target, title=TITLE, notes=NOTES)


if __name__ == "__main__":
    make().save(EXAMPLE)
