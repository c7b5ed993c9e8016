"""What matrix scaling and Dirichlet calibration share."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count, check_not_negative
from shiftcal._types import Labels, Logits, Probs, Weights
from shiftcal.maps.base import Map
from shiftcal.numerics.linear.softmax import linear_softmax
from shiftcal.numerics.linear.solver import solve_linear


class Odir(Map):
    """``softmax(W x + b)`` with off-diagonal and intercept regularisation (ODIR).

    :class:`~shiftcal.maps.matrix.Matrix` explains the settings. Kull et al. (2019) divide the sum
    over the weights by ``k (k - 1)`` and that over the intercepts by ``k``; then the penalty of a
    weight fades as classes are added, and a factor that suits 10 classes leaves 100 over-fitted.

    A subclass says what ``x`` is.
    """

    preserves_accuracy: ClassVar[bool] = False

    weight_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def __init__(
        self,
        *,
        off_diagonal: float = 1.0,
        intercept: float = 0.01,
        ridge: float = 0.003,
        max_iter: int = 1000,
        input: str = "logits",
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.ridge = ridge
        self.max_iter = max_iter
        self.input = input

    @final
    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        off_diagonal = check_not_negative(self.off_diagonal, name="off_diagonal")
        intercept = check_not_negative(self.intercept, name="intercept")
        ridge = check_not_negative(self.ridge, name="ridge")
        k = logits.shape[1]
        self.weight_, self.intercept_, self.status_ = solve_linear(
            self._features(logits),
            labels,
            weights,
            weight_penalty=np.where(np.eye(k, dtype=bool), ridge, off_diagonal + ridge),
            intercept_penalty=intercept + ridge,
            max_iter=check_count(self.max_iter, name="max_iter"),
        )

    @final
    def _apply(self, logits: Logits) -> Probs:
        return linear_softmax(self._features(logits), self.weight_, self.intercept_)

    @staticmethod
    @abstractmethod
    def _features(logits: Logits) -> NDArray[np.float64]:
        """What ``W`` multiplies, ``(n, k)``, the same for logits that differ by a row constant."""
