"""Smooth calibration error of the predicted class (Błasiok and Nakkiran, 2023)."""

from __future__ import annotations

import numpy as np

from shiftcal.metrics.base import Facts, check_top1, metric
from shiftcal.numerics.smooth import smooth_error


@metric(Facts(reads="top1", calibration=True))
def smooth_ece(confidence: object, correct: object) -> float:
    """Smooth calibration error: ECE with a kernel in place of bins (Błasiok and Nakkiran, 2023).

    The residuals ``c - r`` are smoothed along the confidence with a Gaussian of bandwidth ``σ``
    reflected at 0 and 1; ``smECE_σ = ∫ |1/n sum_i K_σ(t, c_i) (c_i - r_i)| dt``, and the error is
    the one ``σ`` for which ``smECE_σ = σ``. There is nothing to choose, and a small change of the
    confidences changes it little, unlike any error made of bins.

    Computed on a grid of at least 64 points a bandwidth; relative error below 0.001.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    c, r = check_top1(confidence, correct)
    return smooth_error(c, np.subtract(c, r, dtype=np.float64) / len(c))
