"""A scikit-learn classifier with its calibration behind it."""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, assert_all_finite, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from shiftcal import maps, methods
from shiftcal.checks import check_choice, check_count, check_fraction
from shiftcal.errors import FitWarning, InputError, NotFittedError
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import Selection
from shiftcal.models.sklearn import which_scores
from shiftcal.scores import Scores
from shiftcal.types import InputKind, Probs

_PROBS = "predict_proba"


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A fitted classifier whose ``predict_proba`` is calibrated.

    With a fitted classifier and calibration it can be used at once. ``fit`` with a fitted
    classifier fits the calibration on all rows, which must not be those of its training; with an
    unfitted one it fits a copy on a part of the rows, and the calibration on the others. ``adapt``
    shows unlabelled rows to a method that adapts to a target. Fit a method that learns from a bank
    on one first: plain rows hold no shift to learn from.

    ``clone`` keeps a fitted classifier and copies it, except in scikit-learn's ``FrozenEstimator``.

    Args:
        estimator: The classifier, or a pipeline that ends in one.
        calibration: A method or map, fitted or not, or the name of one.
        scores: What is calibrated: ``"decision_function"`` or ``"predict_proba"``. By default
            ``predict_proba`` for a calibration with ``input="probabilities"``, and for others the
            decision function, or, of a classifier that has none, logarithms of probabilities.
        holdout: Fraction of the rows of every class that ``fit`` keeps for the calibration, if it
            fits the classifier.
        seed: Of their draw.

    Attributes:
        estimator_: The fitted classifier.
        calibration_: The fitted calibration.
        classes_: ``(k,)`` labels, in the order of the columns of ``predict_proba``.
        n_features_in_: Number of features, if the classifier says so.
        feature_names_in_: Their names, if the classifier knows them.
    """

    def __init__(
        self,
        estimator: Any,
        calibration: Method | Map | str = "ts",
        *,
        scores: str | None = None,
        holdout: float = 0.25,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.scores = scores
        self.holdout = holdout
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the calibration, and before it the classifier if it is not fitted.

        Args:
            X: ``(n, d)``, whatever the classifier takes.
            y: ``(n,)`` labels.

        Raises:
            InputError: If they cannot be used, or there are too few to hold some out.
        """
        fresh = _unfitted(self.calibration)
        if isinstance(fresh, Method) and fresh.uses_bank:
            warnings.warn(
                f"{fresh.name} learns from the sets of a bank, and these rows are one set without "
                "shift. Fit it on SurrogateBank.from_inputs(classifier, X, y) and pass it fitted.",
                FitWarning,
                stacklevel=2,
            )
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, y)  # coordinates, and what only looks like an array, have no rows
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        fitted = self.estimator
        if not _is_fitted(fitted):
            check_fraction(self.holdout, name="holdout")
            check_count(self.seed, name="seed", least=0)
            kept, held = _held_out_rows(y, self.holdout, self.seed)
            fitted = clone(self.estimator).fit(_safe_indexing(X, kept), y[kept])
            X, y = _safe_indexing(X, held), y[held]
        scores = self._scores_for(fitted, fresh, X)
        places = {label: place for place, label in enumerate(np.asarray(fitted.classes_).tolist())}
        unknown = [label for label in y.tolist() if label not in places]
        if unknown:
            raise InputError(f"y must hold classes the classifier knows; got {unknown[0]!r}.")
        indices = np.array([places[label] for label in y.tolist()], dtype=np.intp)
        self.calibration_ = fresh.fit(scores.as_kind(_kind(fresh)).values, indices)
        self.estimator_ = fitted
        return self

    def adapt(self, X: Any, features: object = None) -> Selection:
        """Show unlabelled rows of a target to the method; what it chose.

        The calibration that was given is not changed: a copy of it is adapted.

        Args:
            X: ``(n, d)``, as for ``fit``.
            features: As for the ``adapt`` of a method, for those that weigh by features.

        Raises:
            InputError: If the calibration is a map, which looks at no target.
        """
        fitted, calibration = self._ready()
        if not isinstance(calibration, Method):
            raise InputError(f"a method adapts to a target; {calibration.name!r} is a map.")
        adapted = deepcopy(calibration)
        chosen = adapted.adapt(self._scores_for(fitted, adapted, X), features)
        self.estimator_, self.calibration_ = fitted, adapted
        return chosen

    def predict_proba(self, X: Any) -> Probs:
        """Calibrated probabilities ``(n, k)``, columns in the order of ``classes_``."""
        fitted, calibration = self._ready()
        scores = self._scores_for(fitted, calibration, X)
        if isinstance(calibration, Map):
            return calibration.predict_proba(scores.as_kind(_kind(calibration)).values)
        if calibration.uses_target and calibration.selection_ is None:
            raise NotFittedError(
                f"{calibration.name} has not seen a target yet; call adapt(X) with unlabelled rows."
            )
        return calibration.predict_proba(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class ``(n,)`` by ``predict_proba``."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels in the order of the columns."""
        return np.asarray(self._ready()[0].classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of features the classifier was fitted with."""
        return int(self._ready()[0].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features the classifier was fitted with."""
        return np.asarray(self._ready()[0].feature_names_in_)

    def _ready(self) -> tuple[Any, Method | Map]:
        fitted = getattr(self, "estimator_", self.estimator)
        calibration = getattr(self, "calibration_", self.calibration)
        if not _is_fitted(fitted) or not _is_fitted_calibration(calibration):
            raise NotFittedError("this CalibratedClassifier is not fitted yet; call fit first.")
        return fitted, calibration

    def _scores_for(self, fitted: Any, calibration: Method | Map, X: Any) -> Scores:
        k = len(fitted.classes_)
        if k < 2:
            raise InputError(
                "estimator must know two classes at least; it was fitted on one class."
            )
        name = self.scores
        if name is None and calibration.input == "probabilities" and hasattr(fitted, _PROBS):
            name = _PROBS
        name = which_scores(fitted, name)
        given = np.asarray(getattr(fitted, name)(X))
        values = np.column_stack([np.zeros_like(given), given]) if given.ndim == 1 else given
        if values.shape[1:] != (k,):
            raise InputError(f"{name} must have a column for each of {k} classes: {given.shape}.")
        names = tuple(str(label) for label in fitted.classes_)
        known = getattr(calibration, "class_names_", None)
        # Other names for the same classes are nothing to object to; another order of them is.
        same = known is not None and sorted(known) == sorted(names)
        kind: InputKind = "probabilities" if name == _PROBS else "logits"
        return Scores(values, kind, classes=names if same else None)

    def __sklearn_is_fitted__(self) -> bool:
        try:
            self._ready()
        except NotFittedError:
            return False
        return True

    def __sklearn_clone__(self) -> Self:
        kept = {name: clone(one, safe=False) for name, one in self.get_params(deep=False).items()}
        if _is_fitted(self.estimator) and not _is_fitted(kept["estimator"]):
            kept["estimator"] = deepcopy(self.estimator)
        if _is_fitted_calibration(self.calibration):
            kept["calibration"] = deepcopy(self.calibration)
        return type(self)(**kept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = self.estimator.__sklearn_tags__()
            tags.input_tags = inner.input_tags
            if inner.classifier_tags is not None:
                tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


def _held_out_rows(
    y: NDArray[Any], part: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to fit on, which include every class, and rows to calibrate on, both ascending."""
    rng = np.random.default_rng(seed)
    _, inverse = np.unique(y, return_inverse=True)
    held = np.zeros(len(y), dtype=bool)
    for label in range(inverse.max() + 1):
        rows = np.flatnonzero(inverse == label)
        count = min(max(1, round(part * len(rows))), len(rows) - 1)
        held[rng.permutation(rows)[:count]] = True
    if not held.any():
        raise InputError(
            "y must have a class with at least two rows, to fit on one and calibrate on another; "
            f"got n_samples={len(y)}, all of different classes."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def _is_fitted(estimator: Any) -> bool:
    return getattr(estimator, "classes_", None) is not None


def _is_fitted_calibration(calibration: object) -> TypeGuard[Method | Map]:
    return isinstance(calibration, Method | Map) and hasattr(calibration, "n_classes_")


def _unfitted(calibration: object) -> Method | Map:
    """A fresh calibration with the settings of the one given, or of the name given."""
    if isinstance(calibration, str):
        kind = maps if calibration in maps.names() else methods
        fresh: Method | Map = kind.get(calibration)()
        return fresh
    if not isinstance(calibration, Method | Map):
        name = type(calibration).__name__
        raise InputError(f"calibration must be a method or a map, or the name of one; got {name}.")
    return clone(calibration)


def _kind(calibration: Method | Map) -> InputKind:
    return check_choice(calibration.input, ("logits", "probabilities"), name="input")
