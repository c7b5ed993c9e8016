"""The contract of a calibration map."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from typing import ClassVar, Self, final

from shiftcal import _persistence
from shiftcal._checks import GUARD_FROM, check_labels, check_scores, check_weights
from shiftcal._estimator import Estimator
from shiftcal._types import FitStatus, Labels, Logits, Probs, Weights
from shiftcal.errors import FitWarning


class Map(Estimator, ABC):
    """A supervised calibration map: fitted on labelled logits, applied row by row.

    A new map is one file in this package: a final subclass with a keyword-only ``__init__`` that
    takes at least ``input``, with ``_fit`` and ``_apply``, and with every learnt attribute
    annotated in the class body. Guarantees every map gives, checked by the contract tests: rows
    sum to one; a constant added to a row of logits changes nothing; the order and number of rows
    predicted together change nothing; a weight of two equals a row given twice.

    Attributes:
        preserves_accuracy: Whether the predicted class is the model's, for every row.
        is_temperature: Whether it is softmax of the logits over ``temperature_``, nothing more.
        status_: How the fit ended; anything but converged is also a :class:`FitWarning`.
        n_classes_: Number of columns of the logits it was fitted on.
    """

    kind: ClassVar[str] = "map"
    preserves_accuracy: ClassVar[bool]
    is_temperature: ClassVar[bool] = False

    input: str
    status_: FitStatus
    n_classes_: int

    @final
    def fit(self, logits: object, labels: object, sample_weight: object = None) -> Self:
        """Fit on labelled logits.

        Args:
            logits: ``(n, k)``, or probabilities if ``input="probabilities"``.
            labels: ``(n,)`` class indices. Classes that never occur are allowed.
            sample_weight: ``(n,)`` non-negative weights.

        Raises:
            InputError: If the arrays cannot be used.
            FitError: If no map of this kind can be fitted to them.
        """
        z = check_scores(logits, input=self.input)
        n, k = z.shape
        y = check_labels(labels, n=n, k=k)
        w = check_weights(sample_weight, n=n)
        self.fit_checked(z, y, w)
        if not self.status_.converged:
            warnings.warn(self.status_.message, FitWarning, stacklevel=2)
        return self

    @final
    def fit_checked(self, logits: Logits, labels: Labels, weights: Weights | None) -> Self:
        """Fit on arrays that were checked already; says nothing, look at ``status_``."""
        self.__dict__.pop("n_classes_", None)  # a failed fit leaves it unfitted, not half fitted
        self.status_ = FitStatus("converged")
        self._fit(logits, labels, weights)
        self.n_classes_ = int(logits.shape[1])
        return self

    @final
    def predict_proba(self, logits: object) -> Probs:
        """Calibrated probabilities ``(n, k)``, float64, row by row."""
        self._require_fitted()
        z = check_scores(logits, input=self.input, k=self.n_classes_, guard_from=GUARD_FROM)
        return self.apply_checked(z)

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        _persistence.save(self, path)

    @final
    def apply_checked(self, logits: Logits) -> Probs:
        """Probabilities for logits that were checked already."""
        return self._apply(logits)

    @abstractmethod
    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        """Learn from checked arrays; set every declared attribute, and ``status_`` if not well."""

    @abstractmethod
    def _apply(self, logits: Logits) -> Probs:
        """Probabilities for checked logits."""
