"""The contract of a method."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from shiftcal import _persistence, maps
from shiftcal._checks import check_features
from shiftcal._estimator import Estimator
from shiftcal._types import Floats, Labels, Logits, Probs
from shiftcal.errors import FitWarning, InputError, NotFittedError
from shiftcal.maps import Map
from shiftcal.methods._given import given_bank, given_logits
from shiftcal.methods._selection import Selection
from shiftcal.rehearsals import Grouped
from shiftcal.scores import Scores
from shiftcal.scores._origin import model_digest
from shiftcal.surrogates import SurrogateBank

# Elements of probabilities held at once while only the confidence is asked for.
_BLOCK = 1 << 20


class Method(Estimator, ABC):
    """A calibration method: ``fit`` on a bank, ``adapt`` to a target, then row by row.

    A new method is one file in this package: a final subclass with a keyword-only ``__init__``
    that takes at least ``input``, with ``_fit``, ``_adapt`` and ``_apply``, and with every learnt
    attribute annotated in the class body. Predicting a subset of rows gives the same rows,
    because all that depends on the target as a whole happens in ``adapt``.

    Attributes:
        uses_target: Whether ``adapt`` has to see a target before anything can be predicted.
        uses_bank: Whether it learns from all sets of the bank; else from the clean one only.
        uses_features: Whether features are needed (of source-train, calibration and target).
        uses_mixed: Whether scores of mixed target images are needed (``mixed=`` in ``adapt``); it
            has ``_adapt_mixed`` then.
        n_classes_: Number of classes, from the columns of the bank.
        class_names_: Their names, if the bank has them.
        model_: A digest of the model and the preprocessing behind the bank, if it says so; scores
            of another are calibrated for nothing.
        selection_: What the last ``adapt`` chose; ``None`` before it.
    """

    kind: ClassVar[str] = "method"
    uses_target: ClassVar[bool] = False
    uses_bank: ClassVar[bool] = False
    uses_features: ClassVar[bool] = False
    uses_mixed: ClassVar[bool] = False

    input: str
    n_classes_: int
    class_names_: tuple[str, ...] | None
    model_: str | None
    selection_: Selection | None

    @final
    def fit(self, bank: object, labels: object = None, *, source_features: object = None) -> Self:
        """Learn what can be learnt before the target is seen.

        Args:
            bank: A :class:`SurrogateBank`, or the folder of one; or logits ``(n, k)`` of a
                calibration set, with ``labels``, which make a bank of one set.
            labels: ``(n,)``, only with logits.
            source_features: ``(m, d)`` features of the training samples, for methods that
                weigh by features.

        Raises:
            InputError: If the input cannot be used, or is of another kind than ``input`` says.
        """
        checked = given_bank(bank, labels, input=self.input, name=self.name())
        features = self._check_source_features(checked, source_features)
        self.__dict__.pop("n_classes_", None)  # a failed fit leaves it unfitted, not half fitted
        self.selection_ = None
        self._fit(checked, features)
        self.class_names_ = checked.classes
        self.model_ = model_digest(checked.origin)
        self.n_classes_ = checked.n_classes
        return self

    @final
    def adapt(self, logits: object, features: object = None, *, mixed: object = None) -> Selection:
        """Look at an unlabelled target and decide how it will be calibrated.

        Args:
            logits: ``(n, k)``, of the kind ``input`` says; or :class:`Scores` of either kind.
            features: ``(n, d)``, for methods that weigh by features; by default those of the
                :class:`Scores`.
            mixed: :class:`Scores` of mixed target images, as :func:`shiftcal.scoring.score_mixed`
                gives them, for methods that learn from those; other methods ignore them.

        Returns:
            What was chosen and how sure it is; also kept as ``selection_``.
        """
        self._require_fitted()
        z = self._check_logits(logits)
        f = None
        if features is None and isinstance(logits, Scores):
            features = logits.features
        if self.uses_features:
            if features is None:
                raise InputError(self._needs_features("features= of the target in adapt"))
            f = check_features(features, name="features", n=len(z))
        if self.uses_mixed:
            self.selection_ = self._adapt_mixed(z, *self._check_mixed(mixed))
        else:
            self.selection_ = self._adapt(z, f)
        return self.selection_

    @final
    def adapt_moments(self, target: Grouped) -> Selection:
        """Adapt to a target of which only sums over its rows are there, such as those of a window.

        The choice is that of :meth:`adapt` with the rows, to rounding.

        Args:
            target: Sums of the moments of raw softmax rows, with the squares of p_max.

        Raises:
            InputError: If this method needs the rows, or they are of other classes.
        """
        self._require_fitted()
        if (why := self.needs_rows()) is not None:
            raise InputError(f"{self.name()} cannot adapt to sums: {why}.")
        if target.sums.shape[1] != 2 + 2 * self.n_classes_:
            raise InputError(
                f"sums must have the {2 + 2 * self.n_classes_} columns of {self.n_classes_} "
                f"classes; got {target.sums.shape[1]}."
            )
        self.selection_ = self._adapt_moments(target)
        return self.selection_

    def needs_rows(self) -> str | None:
        """Why sums of fixed size over the target's rows are not enough; ``None`` if they are."""
        return "it looks at every row of the target at once"

    @final
    def predict_proba(self, logits: object) -> Probs:
        """Calibrated probabilities ``(n, k)``, float64, row by row; logits as for :meth:`adapt`."""
        return self._apply(self._check_target(logits))

    @final
    def confidence(self, logits: object) -> NDArray[np.float64]:
        """Calibrated probability of the most probable class ``(n,)``, in little memory."""
        z = self._check_target(logits)
        confidence = np.empty(len(z), dtype=np.float64)
        rows = max(1, _BLOCK // z.shape[1])
        for start in range(0, len(z), rows):
            confidence[start : start + rows] = self._apply(z[start : start + rows]).max(axis=1)
        return confidence

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted method to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        _persistence.save(self, path)

    @abstractmethod
    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        """Learn from a checked bank; set every declared attribute."""

    @abstractmethod
    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        """Decide for a checked target."""

    def _adapt_moments(self, target: Grouped) -> Selection:
        """Decide for the sums of a target, where :meth:`needs_rows` gives no reason not to."""
        raise NotImplementedError

    def _adapt_mixed(self, logits: Logits, mixed: Logits, labels: Labels) -> Selection:
        """Decide for a checked target with its mixtures ``(m, k)`` and their labels ``(m,)``."""
        raise NotImplementedError

    @abstractmethod
    def _apply(self, logits: Logits) -> Probs:
        """Probabilities for checked logits."""

    def _check_target(self, logits: object) -> Logits:
        self._require_fitted()
        if self.uses_target and self.selection_ is None:
            raise NotFittedError(
                f"{self.name()} has not seen a target yet; call adapt with unlabelled logits "
                "of the data to be calibrated first."
            )
        return self._check_logits(logits)

    def _check_logits(self, logits: object) -> Logits:
        return given_logits(logits, input=self.input, k=self.n_classes_, classes=self.class_names_)

    def _check_mixed(self, mixed: object) -> tuple[Logits, Labels]:
        if not isinstance(mixed, Scores) or mixed.labels is None:
            given = "nothing" if mixed is None else type(mixed).__name__
            raise InputError(
                f"{self.name()} needs labelled Scores of mixed target images (mixed= in adapt); "
                f"got {given}. shiftcal.scoring.score_mixed makes them of a model and images."
            )
        return self._check_logits(mixed), mixed.labels

    def _check_source_features(self, bank: SurrogateBank, source_features: object) -> Floats | None:
        if not self.uses_features:
            return None
        if source_features is None:
            raise InputError(self._needs_features("source_features= in fit"))
        if bank.clean.features is None:
            raise InputError(self._needs_features("features of the bank's first set"))
        return check_features(source_features, name="source_features")

    def _needs_features(self, missing: str) -> str:
        return (
            f"{self.name()} needs features of three sets: source-train (source_features= in fit), "
            "calibration (features of the bank's first set) and target (features= in adapt). "
            f"Missing: {missing}. SAC, STS and TS need no features."
        )


def fit_map(template: str | Map, logits: Logits, labels: Labels, *, where: str) -> Map:
    """A fresh map of the kind ``template`` says, fitted; its warnings name the set.

    Args:
        template: Name of a map, or an unfitted map with the settings wanted.
        logits: ``(n, k)``, checked.
        labels: ``(n,)``, checked.
        where: What is being calibrated, for messages.
    """
    fresh = _fresh(template).fit_checked(logits, labels, None)
    if not fresh.status_.converged:
        # 1 here, 2 _fit, 3 Method.fit, 4 the caller's line
        warnings.warn(f"{where}: {fresh.status_.message}", FitWarning, stacklevel=4)
    return fresh


def _fresh(template: str | Map) -> Map:
    if isinstance(template, str):
        return maps.get(template)()
    if not isinstance(template, Map):
        given = f"the class {template.__name__}" if isinstance(template, type) else repr(template)
        raise InputError(
            f"map must be the name of a calibration map or an unfitted one; got {given}. "
            f"Names: {', '.join(maps.names())}. With settings: maps.Temperature(t_range=(0.1, 10))."
        )
    if template.input != "logits":
        raise InputError(
            'a map inside a method is always given logits; make it with input="logits" '
            "and say what the model gives with the method's own input=."
        )
    return clone(template)


def temperature_of(fitted: Map) -> float | None:
    """The one temperature a map applies, or ``None`` if it is not of that kind."""
    return getattr(fitted, "temperature_", None) if fitted.is_temperature else None
