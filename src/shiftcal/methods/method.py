"""The contract of a method, what it chose, and the flags of that choice."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from shiftcal import errors, maps
from shiftcal import persistence as _persistence
from shiftcal.checks import check_choice, check_features, check_scores
from shiftcal.errors import FitWarning, InputError
from shiftcal.maps import Map
from shiftcal.numerics.blocks import LARGE, row_blocks
from shiftcal.numerics.softmax import softmax
from shiftcal.persistence import Estimator, clone
from shiftcal.scores import Scores, model_digest
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Flag, Floats, InputKind, Interval, Labels, Logits, Probs

if TYPE_CHECKING:
    from shiftcal.methods.rehearsal import Grouped
    from shiftcal.scoring.statistics import ScoreStatistics

_KINDS = ("logits", "probabilities")


def given_bank(bank: object, labels: object, *, input: str, name: str) -> SurrogateBank:
    """The bank that ``fit`` was given, in whichever form.

    Args:
        bank: A :class:`SurrogateBank`, the folder of one, labelled :class:`Scores`, or logits
            ``(n, k)`` with ``labels``.
        labels: ``(n,)``, only with logits.
        input: What the model gives, as whoever is fitted expects it.
        name: Whoever is fitted, for messages.

    Raises:
        InputError: If it is none of these, or of another kind than ``input`` says.
    """
    check_choice(input, _KINDS, name="input")
    if isinstance(bank, str | os.PathLike):
        bank = SurrogateBank.load(bank)
    parts: dict[str, Any] = {}
    if isinstance(bank, Scores):
        labels = bank.labels if labels is None else labels
        parts = {"features": bank.features, "classes": bank.classes}
    if not isinstance(bank, SurrogateBank):
        if labels is None:
            raise InputError(
                f"{name} is fitted on a SurrogateBank, the folder of one, labelled Scores, or "
                f"logits and labels; got {type(bank).__name__} and no labels."
            )
        return SurrogateBank.from_arrays([bank], labels, input=input, **parts)
    if labels is not None:
        raise InputError("labels go with logits; a SurrogateBank has its own. Leave them out.")
    if bank.input != input:
        raise InputError(
            f"the bank was made of {bank.input} and this {name} expects {input}. "
            f'Make it with input="{bank.input}".'
        )
    return bank


def given_logits(logits: object, *, input: str, k: int, classes: tuple[str, ...] | None) -> Logits:
    """The logits of a target, given as an array of kind ``input`` or as :class:`Scores`.

    Args:
        logits: ``(n, k)``.
        input: What the model gives.
        k: Number of classes of the bank.
        classes: Their names, if the bank has them.

    Raises:
        InputError: If they cannot be used, or are of other classes.
    """
    if isinstance(logits, Scores):
        found = logits.classes
        if found and classes and len(found) == len(classes) and found != classes:
            column = next(i for i in range(k) if found[i] != classes[i])
            raise InputError(
                f"scores must have the classes of the bank in their order; column {column} is "
                f"{found[column]!r} here and {classes[column]!r} there."
            )
        kind: InputKind = check_choice(input, _KINDS, name="input")
        scores = logits.as_kind(kind)
        if scores.k == k:
            return scores.logits()  # which checks once
        logits = scores.values
    return check_scores(logits, input=input, k=k)


@dataclass(frozen=True)
class Selection:
    """The outcome of ``adapt``. What a method does not have stays ``None`` or empty.

    Attributes:
        method: Name of the method.
        temperature: The temperature that will be applied, if the map is one.
        temperature_interval: Where the temperature that is right for the target may lie.
        n_target: Target rows looked at; ``None`` if the method looks at no target.
        mean_confidence: Mean raw p_max of those rows.
        index: Position of the chosen surrogate set, 0 for the clean one.
        n_sets: Number of sets in the bank.
        set_name: Name of the chosen set.
        corruption: Its corruption.
        severity: Its severity.
        distance: Name of the distance that chose.
        distances: Distance of the target to every set.
        margin: Distance to the runner-up minus distance to the chosen set.
        details: Further numbers of the method, by name.
        flags: What should be known before the confidences are trusted.
    """

    method: str
    temperature: float | None = None
    temperature_interval: Interval | None = None
    n_target: int | None = None
    mean_confidence: float | None = None
    index: int | None = None
    n_sets: int | None = None
    set_name: str | None = None
    corruption: str | None = None
    severity: int | None = None
    distance: str | None = None
    distances: tuple[float, ...] = ()
    margin: float | None = None
    details: dict[str, float] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()

    def has(self, code: str) -> bool:
        """Whether a flag of this code was raised."""
        return any(flag.code == code for flag in self.flags)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        parts = []
        if self.index is not None:
            parts.append(f"set {self.index + 1} of {self.n_sets} ({self.set_name})")
        if self.temperature is not None:
            ends = self.temperature_interval
            between = "" if ends is None else f" ({ends.low:.3g} to {ends.high:.3g})"
            parts.append(f"T = {self.temperature:.3g}{between}")
        if self.index is not None:
            outside = self.has("outside-range")
            parts.append("OUTSIDE the bank's range" if outside else "inside the bank's range")
        parts += [flag.code for flag in self.flags if flag.code != "outside-range"]
        return ", ".join(parts) or self.method

    def __repr__(self) -> str:
        return f"<{self.method} selection: {self}>"


# The mean of fewer rows depends on the draw more than on the shift, and p_max is too skewed for
# standard errors to mean what they say.
FEW_ROWS = 100


class Method(Estimator, ABC):
    """A calibration method: ``fit`` on a bank, ``adapt`` to a target, then row by row.

    A new method is a final subclass with a ``name``, a keyword-only ``__init__`` that takes at
    least ``input``, with ``_fit`` and ``_adapt``, with ``_apply`` if it is more than the chosen
    temperature, and with every learnt attribute annotated in the class body.
    Predicting a subset of rows gives the same rows, because all that depends on the target as a
    whole happens in ``adapt``.

    Attributes:
        uses_target: Whether ``adapt`` has to see a target before anything can be predicted.
        uses_bank: Whether it learns from all sets of the bank; else from the clean one only.
        uses_features: Whether features are needed (of source-train, calibration and target).
        uses_mixed: Whether scores of mixed target images are needed (``mixed=`` in ``adapt``); it
            has ``_adapt_mixed`` then.
        corrects: Whether ``predict_proba`` can change predictions; ``confidence`` is then that of
            the model's own prediction.
        n_classes_: Number of classes, from the columns of the bank.
        class_names_: Their names, if the bank has them.
        model_: A digest of the model and the preprocessing behind the bank, if known; scores
            of another model cannot be calibrated by it.
        selection_: What the last ``adapt`` chose; ``None`` before it.
    """

    kind: ClassVar[str] = "method"
    uses_target: ClassVar[bool] = False
    uses_bank: ClassVar[bool] = False
    uses_features: ClassVar[bool] = False
    uses_mixed: ClassVar[bool] = False
    corrects: ClassVar[bool] = False

    input: str
    n_classes_: int
    class_names_: tuple[str, ...] | None
    model_: str | None
    selection_: Selection | None

    @final
    def fit(self, bank: object, labels: object = None, *, source_features: object = None) -> Self:
        """Fit everything that does not depend on the target.

        Args:
            bank: A :class:`SurrogateBank`, or the folder of one; or a calibration set, which makes
                a bank of one set: labelled :class:`Scores`, or logits ``(n, k)`` with ``labels``.
            labels: ``(n,)``, only with logits.
            source_features: ``(m, d)`` features of the training samples, for methods that
                weigh by features.

        Raises:
            InputError: If the input cannot be used, or is of another kind than ``input`` says.
        """
        checked = given_bank(bank, labels, input=self.input, name=self.name)
        if self.uses_features and source_features is not None:
            source_features = check_features(source_features, name="source_features")
        return self._fit_checked(checked, source_features)  # type: ignore[arg-type]

    @final
    def _fit_checked(self, bank: SurrogateBank, source_features: Floats | None) -> Self:
        """The same with features that were checked already."""
        if self.uses_features and (source_features is None or bank.clean.features is None):
            missing = "source_features= in fit" if source_features is None else "those of the bank"
            raise InputError(self._needs_features(missing))
        self.__dict__.pop("n_classes_", None)  # a failed fit leaves it unfitted, not half fitted
        self.selection_ = None
        self._fit(bank, source_features)
        self.class_names_ = bank.classes
        self.model_ = model_digest(bank.origin)
        self.n_classes_ = bank.n_classes
        return self

    @final
    def adapt(self, logits: object, features: object = None, *, mixed: object = None) -> Selection:
        """Choose a calibration for an unlabelled target.

        Args:
            logits: ``(n, k)``, of the kind ``input`` says; or :class:`Scores` of either kind.
            features: ``(n, d)``, for methods that weigh by features; by default those of the
                :class:`Scores`.
            mixed: :class:`Scores` of mixed target images, as :func:`shiftcal.scoring.score_mixed`
                gives them, for methods that learn from those; other methods ignore them.

        Returns:
            The choice and its uncertainty; also stored as ``selection_``.
        """
        self._require_fitted()
        z = self._check_logits(logits)
        f = self._features_of(logits, features, n=len(z))
        if self.uses_mixed:
            self.selection_ = self._adapt_mixed(z, *self._check_mixed(mixed))
        else:
            self.selection_ = self._adapt(z, f)
        return self.selection_

    def _features_of(self, logits: object, features: object, *, n: int) -> Floats | None:
        """The features of a target, checked, if they are needed."""
        if not self.uses_features:
            return None
        if features is not None:
            return check_features(features, name="features", n=n)
        if not isinstance(logits, Scores) or logits.features is None:
            raise InputError(self._needs_features("features= of the target in adapt"))
        return logits._checked_features

    @final
    def adapt_moments(self, target: Grouped | ScoreStatistics) -> Selection:
        """Adapt to sums over the rows of a target, such as those of a window.

        The choice is that of :meth:`adapt` with the rows, to rounding.

        Args:
            target: Sums of the moments of raw softmax rows, with the squares of p_max; for SAC
                statistics are enough.

        Raises:
            InputError: If this method needs the rows, or they are of other classes.
        """
        self._require_fitted()
        if (why := self.needs_rows()) is not None:
            raise InputError(f"{self.name} cannot adapt to sums: {why}.")
        if target.k != self.n_classes_:
            raise InputError(
                f"sums must be of the {self.n_classes_} classes it was fitted with; these have "
                f"{target.k}."
            )
        self.selection_ = self._adapt_moments(target)
        return self.selection_

    def needs_rows(self) -> str | None:
        """Why sums of fixed size over the target's rows are not enough; ``None`` if they are."""
        return "it looks at every row of the target at once" if self.uses_target else None

    @final
    def predict_proba(self, logits: object) -> Probs:
        """Calibrated probabilities ``(n, k)``, float64, row by row; logits as for :meth:`adapt`."""
        return self._apply(self._check_target(logits))

    @final
    def in_blocks(self, logits: object) -> Iterator[tuple[slice, Probs]]:
        """Rows and their calibrated probabilities, some at a time, for data of any size."""
        z = self._check_target(logits)
        for rows in row_blocks(*z.shape, size=LARGE):
            yield rows, self._apply(z[rows])

    @final
    def confidence(self, logits: object) -> NDArray[np.float64]:
        """Calibrated confidence ``(n,)``: the probability of the model's own prediction."""
        return self._confidence(self._check_target(logits))

    def _confidence(self, z: Logits) -> NDArray[np.float64]:
        """The same for checked logits."""
        confidence = np.empty(len(z), dtype=np.float64)
        for rows in row_blocks(*z.shape, size=LARGE):
            confidence[rows] = self._apply(z[rows]).max(axis=1)
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

    def _adapt_moments(self, target: Any) -> Selection:
        """Decide for the sums of a target, where :meth:`needs_rows` gives no reason not to."""
        return self._adapt(np.empty((0, self.n_classes_)), None)  # of a method that looks at none

    def _adapt_mixed(self, logits: Logits, mixed: Logits, labels: Labels) -> Selection:
        """Decide for a checked target with its mixtures ``(m, k)`` and their labels ``(m,)``."""
        raise NotImplementedError

    def _apply(self, logits: Logits) -> Probs:
        """Probabilities for checked logits; by default at the temperature that was chosen."""
        assert self.selection_ is not None
        assert self.selection_.temperature is not None
        return softmax(logits, self.selection_.temperature)

    def _check_target(self, logits: object) -> Logits:
        self._require_fitted()
        if self.uses_target and self.selection_ is None:
            raise errors.NotFittedError(
                f"{self.name} has not seen a target yet; call adapt with unlabelled logits "
                "of the data to be calibrated first."
            )
        return self._check_logits(logits)

    def _check_logits(self, logits: object) -> Logits:
        return given_logits(logits, input=self.input, k=self.n_classes_, classes=self.class_names_)

    def _check_mixed(self, mixed: object) -> tuple[Logits, Labels]:
        if not isinstance(mixed, Scores) or mixed.labels is None:
            given = "nothing" if mixed is None else type(mixed).__name__
            raise InputError(
                f"{self.name} needs labelled Scores of mixed target images (mixed= in adapt), as "
                f"shiftcal.scoring.score_mixed makes them; got {given}."
            )
        return self._check_logits(mixed), mixed.labels

    def _needs_features(self, missing: str) -> str:
        return (
            f"{self.name} needs features of three sets: source-train (source_features= in fit), "
            "calibration (features of the bank's first set) and target (features= in adapt). "
            f"Missing: {missing}. SAC, STS and TS need no features."
        )


def fit_map(
    template: str | Map,
    logits: Logits,
    labels: Labels,
    *,
    where: str,
    flat_is_fine: bool = False,
    stacklevel: int = 4,
) -> Any:
    """A fresh map of the kind ``template`` says, fitted; its warnings name the set.

    Args:
        template: Name of a map, or an unfitted map with the settings wanted.
        logits: ``(n, k)``, checked.
        labels: ``(n,)``, checked.
        where: What is being calibrated, for messages.
        flat_is_fine: Do not warn if the fit ended at the largest temperature.
        stacklevel: Of warnings; 1 here, 2 ``_fit``, 3 ``Method.fit``, 4 the caller's line.
    """
    fresh: Map = maps.get(template)() if isinstance(template, str) else template
    if not isinstance(fresh, Map) or fresh.input != "logits":
        raise InputError(
            'map must be the name of a calibration map, or an unfitted one with input="logits", '
            f"such as maps.Temperature(t_range=(0.1, 10)); got {template!r}. Names: "
            f"{', '.join(maps.names())}. The method's own input= says what the model gives."
        )
    fresh = clone(fresh).fit_checked(logits, labels, None)
    fine = ("converged", "at-upper-bound") if flat_is_fine else ("converged",)
    if fresh.status_.code not in fine:
        # Method.fit is two calls, itself and _fit_checked.
        warnings.warn(f"{where}: {fresh.status_.message}", FitWarning, stacklevel=stacklevel + 1)
    return fresh


def fit_maps(template: str | Map, bank: SurrogateBank) -> tuple[Any, ...]:
    """A map fitted on each set of a bank, as :func:`fit_map` does."""
    fitted = []
    for j, s in enumerate(bank, start=1):  # a loop, so that warnings point at the caller
        where = f"set {j} of {len(bank)} ({s.name})"
        fitted.append(fit_map(template, s.logits, s.labels, where=where, stacklevel=5))
    return tuple(fitted)


def warn_of_one_set(method: Method, bank: SurrogateBank, fitted: Map) -> None:
    """Say that a method that learns from shifted sets was given none."""
    if len(bank) == 1:
        same = "TS" if fitted.name == "temperature" else "its calibration map alone"
        # 1 here, 2 _fit, 3 and 4 Method.fit, 5 the caller's line
        warnings.warn(
            f"{method.name} was fitted on one set, where it equals {same}: it has seen no shift. "
            "Add corrupted copies of the calibration data to the bank "
            "(SurrogateBank.synthesize, or shiftcal bank).",
            FitWarning,
            stacklevel=5,
        )


def temperature_of(fitted: Map) -> float | None:
    """The one temperature a map applies, or ``None`` if it is not of that kind."""
    return getattr(fitted, "temperature_", None) if fitted.is_temperature else None


def nearest_first(ladder: Sequence[SetSummary], distances: Sequence[float]) -> list[int]:
    """Positions of the sets by distance; of equal ones the least severe, then the first."""

    def key(j: int) -> tuple[float, int, int]:
        severity = ladder[j].severity
        return distances[j], j if severity is None else severity, j

    return sorted(range(len(ladder)), key=key)


def few_rows(n: int) -> Iterator[Flag]:
    """A flag if so few target rows were looked at that chance has a part in the choice."""
    if n < FEW_ROWS:
        yield Flag(
            "few-rows",
            f"with {n} target rows the mean confidence is uncertain, and so is the choice. Use "
            f"{FEW_ROWS} or more.",
        )
