"""A scikit-learn classifier with its calibration behind it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Literal, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, assert_all_finite, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from shiftcal import maps, methods
from shiftcal.checks import check_choice, check_count, check_fraction
from shiftcal.errors import FitWarning, InputError, InputWarning, NotFittedError
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import Selection
from shiftcal.models.sklearn import which_scores
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.types import InputKind, Labels, Probs

_PROBS = "predict_proba"


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose ``predict_proba`` is calibrated, also under shift.

    ``fit`` fits the classifier on one part of the rows and the calibration on the rest; with
    ``corruption`` it builds a bank from the rest, for :class:`~shiftcal.SAC`,
    :class:`~shiftcal.Rehearsal` and the like. A fitted classifier is not fitted again: all rows
    calibrate it, so they must not be its training rows. With a fitted classifier and a fitted
    calibration no ``fit`` is needed.

    A method that looks at a target sees it in :meth:`adapt`, or, with ``adapt_to="batch"``, in
    every call of ``predict_proba``. ``clone`` keeps a fitted classifier and copies it, except in
    scikit-learn's ``FrozenEstimator``.

    Args:
        estimator: The classifier, or a pipeline that ends in one.
        calibration: A method or map, fitted or not, or the name of one.
        scores: What is calibrated: ``"decision_function"`` or ``"predict_proba"``. By default
            ``predict_proba`` for a calibration with ``input="probabilities"``, and for others the
            decision function, or, of a classifier that has none, logarithms of probabilities.
        corruption: For methods that learn from a bank, what makes rows (or texts) harder: a name,
            several in a list, or a function, as for :meth:`shiftcal.SurrogateBank.from_inputs`.
        severities: Which ones; default: all.
        holdout: Fraction of the rows of every class that ``fit`` keeps for the calibration, if it
            fits the classifier.
        cv: Instead of ``holdout``: number of folds, or a splitter of scikit-learn. Every row
            calibrates, scored by a classifier that was not fitted on it, and the classifier is
            fitted on all rows.
        adapt_to: ``"batch"``: ``predict_proba`` adapts to the rows it is given, 100 or more;
            a row's result then depends on the others. Default: to what :meth:`adapt` saw last.
        seed: Of the holdout and the corruptions.

    Attributes:
        estimator_: The fitted classifier.
        calibration_: The fitted calibration.
        bank_: The :class:`~shiftcal.SurrogateBank` that ``fit`` built, if there is a corruption.
        classes_: ``(k,)`` labels, in the order of the columns of ``predict_proba``.
        n_features_in_: Number of features, if the classifier knows it.
        feature_names_in_: Their names, if the classifier knows them.
    """

    def __init__(
        self,
        estimator: Any,
        calibration: Method | Map | str = "ts",
        *,
        scores: str | None = None,
        corruption: object = None,
        severities: Sequence[int] | int | None = None,
        holdout: float = 0.25,
        cv: Any = None,
        adapt_to: Literal["batch"] | None = None,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.scores = scores
        self.corruption = corruption
        self.severities = severities
        self.holdout = holdout
        self.cv = cv
        self.adapt_to = adapt_to
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
        self._check_adapt_to()
        if isinstance(fresh, Method) and fresh.uses_bank and self.corruption is None:
            warnings.warn(
                f"{fresh.name} learns from the sets of a bank, and these rows are one set without "
                'shift. Name what makes rows harder, such as corruption=["noise", "drift"], or fit '
                "it on SurrogateBank.from_inputs(classifier, X, y) and pass it fitted.",
                FitWarning,
                stacklevel=2,
            )
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, y)  # coordinates, and what only looks like an array, have no rows
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        fitted, folds = self._fold_classifiers(X, y)
        places = {label: place for place, label in enumerate(np.asarray(fitted.classes_).tolist())}
        unknown = [label for label in y.tolist() if label not in places]
        if unknown:
            raise InputError(f"y must hold classes the classifier knows; got {unknown[0]!r}.")
        indices = np.array([places[label] for label in y.tolist()], dtype=np.intp)
        banks = []
        for classifier, rows in folds:
            if not np.array_equal(classifier.classes_, fitted.classes_):
                raise InputError(
                    f"cv must leave rows of every class in every fold; one was fitted on "
                    f"{len(classifier.classes_)} of {len(places)} classes. Use fewer folds."
                )
            banks.append(self._bank_of(classifier, fresh, _safe_indexing(X, rows), indices[rows]))
        bank = _joined(banks)
        if isinstance(fresh, Map):
            values = Scores(bank.clean.logits).as_kind(_kind(fresh)).values
            self.calibration_: Method | Map = fresh.fit(values, bank.clean.labels)
        else:
            self.calibration_ = fresh.fit(bank)
        self.__dict__.pop("bank_", None)
        if len(bank) > 1:
            self.bank_ = bank
        self.estimator_ = fitted
        return self

    def _fold_classifiers(
        self, X: Any, y: NDArray[Any]
    ) -> tuple[Any, list[tuple[Any, NDArray[np.intp]]]]:
        """The classifier for new rows; and classifiers, each with rows it was not fitted on."""
        if _is_fitted(self.estimator):
            return self.estimator, [(self.estimator, np.arange(len(y)))]
        check_fraction(self.holdout, name="holdout")
        check_count(self.seed, name="seed", least=0)
        splits = [_held_out_rows(y, self.holdout, self.seed)]
        if self.cv is not None:
            splits = check_cv(self.cv, y, classifier=True).split(X, y)
        folds = [
            (clone(self.estimator).fit(_safe_indexing(X, kept), y[kept]), held)
            for kept, held in splits
        ]
        return folds[0][0] if self.cv is None else clone(self.estimator).fit(X, y), folds

    def _bank_of(self, fitted: Any, fresh: Method | Map, X: Any, labels: Labels) -> SurrogateBank:
        kind = _kind(fresh)

        def scores(rows: Any) -> NDArray[Any]:
            return self._scores_for(fitted, fresh, rows).as_kind(kind).values

        if self.corruption is None or isinstance(fresh, Map) or not fresh.uses_bank:
            return SurrogateBank.from_arrays([scores(X)], labels, input=kind)
        if not hasattr(X, "iloc") and not issparse(X) and not isinstance(X[0], str):
            X = np.asarray(X)
            if X.dtype == object:  # numbers, as scikit-learn reads them, or a mixture
                with suppress(TypeError, ValueError):
                    X = X.astype(np.float64)
        return SurrogateBank.from_inputs(
            scores,
            X,
            labels,
            corruption=self.corruption,
            severities=self.severities,
            seed=self.seed,
            input=kind,
        )

    def adapt(self, X: Any, features: object = None) -> Selection:
        """Adapt the method to unlabelled rows of a target; returns its choice.

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
        self._check_adapt_to()
        if self.adapt_to == "batch" and calibration.uses_target:
            calibration = deepcopy(calibration)
            for flag in calibration.adapt(scores).flags:
                if flag.code == "few-rows":
                    warnings.warn(f"adapted to this batch: {flag.message}", InputWarning, 2)
        if calibration.uses_target and calibration.selection_ is None:
            raise NotFittedError(
                f"{calibration.name} has not seen a target yet; call adapt(X) with unlabelled rows"
                ', or set adapt_to="batch".'
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

    def _check_adapt_to(self) -> None:
        if self.adapt_to is not None:
            check_choice(self.adapt_to, ("batch",), name="adapt_to")

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
            tags.input_tags.sparse &= self.corruption is None
            if inner.classifier_tags is not None:
                tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


def _joined(banks: Sequence[SurrogateBank]) -> SurrogateBank:
    """The rows of all folds in one bank, set by set."""
    if len(banks) == 1:
        return banks[0]
    sets = [
        SurrogateSet(
            np.concatenate([part.logits for part in parts]),
            np.concatenate([part.labels for part in parts]),
            parts[0].name,
            parts[0].corruption,
            parts[0].severity,
        )
        for parts in zip(*banks, strict=True)
    ]
    return SurrogateBank(sets, input=banks[0].input, origin=banks[0].origin)


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
