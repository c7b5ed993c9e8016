"""The demonstration with fewer digits, corruptions and sets, so that it takes a second or two."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np

from shiftcal.demo import digits_subject, run_demo
from shiftcal.scoring.run import Reporting


@cache
def whole_subject():
    """The subject as it is."""
    return digits_subject()


def small_subject(**changes):
    """The same with a part of everything."""
    subject = whole_subject()
    few = np.arange(240)
    return replace(
        subject,
        calibration=subject.calibration.subset(few, name="few digits"),
        new=subject.new[:200],
        new_labels=subject.new_labels[:200],
        train=subject.train.subset(few, name="few digits trained on"),
        corruptions=("brightness", "gaussian_noise"),
        n_resamples=50,
        **changes,
    )


class Steps:
    """Keeps the descriptions of steps; raises ``error`` in step number ``at``."""

    def __init__(self, error=None, at=0):
        self.steps = []
        self.error, self.at = error, at

    @contextmanager
    def __call__(self, description, *, own_bar=False):
        self.steps.append(description)
        if len(self.steps) == self.at:
            raise self.error
        yield


def demonstrate(folder, subject=None, step=None):
    """Run the small demonstration in a folder."""
    made = small_subject() if subject is None else subject
    return run_demo(
        lambda: made,
        "digits",
        folder,
        step=step or Steps(),
        reporting=Reporting(shown=False),
        command="shiftcal demo",
    )
