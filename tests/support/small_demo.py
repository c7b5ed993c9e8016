"""The demo with fewer digits, corruptions and sets, so that it takes a second or two."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from shiftcal.demo import digits_subject


@cache
def small_subject():
    """The subject of the demo with a part of everything."""
    subject = digits_subject()
    few = np.arange(240)
    return replace(
        subject,
        calibration=subject.calibration.subset(few, name="few digits"),
        new=subject.new[:200],
        new_labels=subject.new_labels[:200],
        train=subject.train.subset(few, name="few digits trained on"),
        corruptions=("brightness", "gaussian_noise"),
        n_resamples=50,
    )
