"""Dirichlet calibration with ODIR."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits
from shiftcal.maps._odir import Odir
from shiftcal.numerics.softmax import log_softmax


@final
class Dirichlet(Odir):
    """Dirichlet calibration with ODIR: any linear map of the log-probabilities.

    ``p' = softmax(W log p + b)`` with ``p = softmax(z)``; the right family if the probabilities
    of every class follow a Dirichlet distribution. Matrix scaling is the part of it in which all
    row sums of ``W`` are equal. May change which class is predicted. (Kull et al. 2019)

    Fitted as :class:`~shiftcal.maps.matrix.Matrix` is, with the same penalties, settings and
    learnt attributes.
    """

    @staticmethod
    def _features(logits: Logits) -> NDArray[np.float64]:
        return log_softmax(logits)
