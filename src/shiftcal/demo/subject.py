"""What is demonstrated on: a model, images it was not trained on, and what befalls new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shiftcal._types import Images, Labels
from shiftcal.corruptions import corrupt
from shiftcal.datasets import ImageSet
from shiftcal.models import Model

# So many of the images of a mixture are corrupted: every second one.
_EVERY = 2


@dataclass(frozen=True)
class Target:
    """New data that arrives.

    Attributes:
        name: Of its files.
        title: What it is, in words.
        corruption: What befell it; none of those in the bank.
        severity: How hard, 1 to 5.
        mixture: Whether every second image was spared.
    """

    name: str
    title: str
    corruption: str
    severity: int
    mixture: bool = False

    def images(self, new: Images, *, table: str) -> Images:
        """The new images as they arrive.

        Args:
            new: ``(n, height, width, 3)``, or without the last axis, as they would be.
            table: Whose strengths, as for :func:`shiftcal.corrupt`.
        """
        struck = corrupt(new, self.corruption, severity=self.severity, table=table)
        if self.mixture:
            struck = np.array(struck)
            struck[::_EVERY] = new[::_EVERY]
        return struck


@dataclass(frozen=True, eq=False)
class Subject:
    """A model with its images, and the plan of a demonstration.

    Attributes:
        data: ``"digits"`` or ``"cifar10"``: what a folder of results is known by.
        things: What the images show, such as ``"digits"``.
        model: With the features of its last layer but one.
        made: How the model came about, in a few words.
        calibration: Labelled images that it was not trained on.
        new: Others, of which the targets are made, ``(n, height, width[, 3])``.
        new_labels: Theirs, which judge at the end and serve nothing else.
        train: Images that it was trained on, for methods that weigh by features; ``None`` if they
            are not there.
        corruptions: Those of the bank.
        table: Whose strengths, as for :func:`shiftcal.corrupt`.
        targets: What arrives; the first is the one that the report is about.
        remark: What should be known of the choice of these.
        n_resamples: Bootstrap draws behind every interval of ECE.
    """

    data: str
    things: str
    model: Model
    made: str
    calibration: ImageSet
    new: Images
    new_labels: Labels
    train: ImageSet | None
    corruptions: tuple[str, ...]
    table: str
    targets: tuple[Target, Target, Target]
    remark: str
    n_resamples: int = 400
