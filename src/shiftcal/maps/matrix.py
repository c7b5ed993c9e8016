"""Matrix scaling with ODIR."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits
from shiftcal.maps._odir import Odir


@final
class Matrix(Odir):
    """Matrix scaling with ODIR: any linear map of the logits.

    ``p' = softmax(W x + b)`` with ``x_i = z_i - mean(z)``, the logits centred row by row: ``W z``
    itself would change with a constant that softmax ignores. Dirichlet calibration takes ``log p``
    for ``x``, which is ``z`` less its log-sum-exp, and so adds one degree of freedom a class, the
    row sum of ``W``: how that class answers to the log-sum-exp. Matrix scaling is Dirichlet
    calibration with all row sums of ``W`` equal, where the offset cancels. May change which class
    is predicted. (Guo et al. 2017; Kull et al. 2019)

    What is minimised is the mean negative log-likelihood plus::

        off_diagonal * sum_{i != j} W_ij^2 + intercept * sum_i b_i^2
            + ridge * (sum_ij (W_ij - [i = j] / T)^2 + sum_i b_i^2)

    with T the temperature of least negative log-likelihood: penalties lead to temperature
    scaling. The problem is convex and solved by L-BFGS. There are ``k (k + 1)`` numbers to fit:
    with 1000 classes a million, which works but takes minutes.

    Args:
        off_diagonal: Penalty on the off-diagonal weights. Kull et al. write
            ``lambda / (k (k - 1))`` for it and tune lambda by cross-validation.
        intercept: Penalty on the intercepts, ``mu / k`` with Kull et al.
        ridge: Pull of all weights towards temperature scaling. Kull et al. have none; then
            nothing holds the diagonal on a set that can be fitted without error.
        max_iter: Most steps of the solver; ``status_`` tells if they were too few.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        weight_: ``(k, k)`` W, a row for each class that comes out.
        intercept_: ``(k,)`` b.
    """

    @staticmethod
    def _features(logits: Logits) -> NDArray[np.float64]:
        z = logits.astype(np.float64)
        z -= z.mean(axis=1, keepdims=True)
        return z
