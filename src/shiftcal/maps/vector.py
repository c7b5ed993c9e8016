"""Vector scaling."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count, check_not_negative
from shiftcal._types import Labels, Logits, Probs, Weights
from shiftcal.maps.base import Map
from shiftcal.numerics.linear.softmax import linear_softmax
from shiftcal.numerics.linear.solver import solve_linear
from shiftcal.numerics.softmax import log_softmax


@final
class Vector(Map):
    """Vector scaling: a weight and an intercept for every class.

    ``p' = softmax(w * s + b)``, class by class, with ``s = log softmax(z)`` in place of the logits
    ``z``, since ``w * z`` would change with a constant that softmax ignores. ``w`` and ``b`` are
    those of least mean negative log-likelihood plus
    ``ridge * (sum (w_i - 1 / T)^2 + sum b_i^2)``, T being the temperature of least negative
    log-likelihood: where the set has little to say, the map is temperature scaling. The problem
    is convex and solved by L-BFGS. May change which class is predicted. (Guo et al. 2017, who
    have no ridge)

    Args:
        ridge: Pull towards temperature scaling. With 0, classes with few rows or without mistakes
            get weights that mean nothing, and sets that can be fitted without error have no
            optimum. The default costs next to nothing with 500 rows a class and helps with fewer.
        max_iter: Most steps of the solver; ``status_`` tells if they were too few.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        weight_: ``(k,)`` w.
        intercept_: ``(k,)`` b.
    """

    preserves_accuracy: ClassVar[bool] = False

    weight_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def __init__(
        self, *, ridge: float = 0.003, max_iter: int = 1000, input: str = "logits"
    ) -> None:
        self.ridge = ridge
        self.max_iter = max_iter
        self.input = input

    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        ridge = check_not_negative(self.ridge, name="ridge")
        self.weight_, self.intercept_, self.status_ = solve_linear(
            log_softmax(logits),
            labels,
            weights,
            weight_penalty=np.full(logits.shape[1], ridge),
            intercept_penalty=ridge,
            max_iter=check_count(self.max_iter, name="max_iter"),
        )

    def _apply(self, logits: Logits) -> Probs:
        return linear_softmax(log_softmax(logits), self.weight_, self.intercept_)
