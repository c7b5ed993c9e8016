"""Mixed targets: one calibration for every camera, site or batch; small groups lean on the rest."""

from __future__ import annotations

import copy
import math
import os
import warnings
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal import errors, persistence
from shiftcal.checks import check_flag, check_row_groups
from shiftcal.errors import InputError, InputWarning
from shiftcal.methods import Method
from shiftcal.methods.method import Selection, given_logits
from shiftcal.numerics.softmax import p_max, softmax
from shiftcal.persistence import Estimator
from shiftcal.types import Flag, Floats, Logits, Probs

__all__ = ["GroupChoice", "GroupedCalibration", "GroupedSelection"]

# Flags of methods that the target is unlike all of the bank.
OUTSIDE = ("outside-range", "outside-bank")
# Groups printed before the rest is counted only.
_SHOWN = 50


@dataclass(frozen=True)
class GroupChoice:
    """How one group is calibrated.

    Attributes:
        rows: Rows of it that were seen.
        weight: Of its own choice, from 0 to 1; the rest is that of the choice for all rows.
        temperature: The temperature that will be applied, if the maps are such.
        own: The choice of the method for these rows alone.
    """

    rows: int
    weight: float
    temperature: float | None
    own: Selection


@dataclass(frozen=True)
class GroupedSelection:
    """The outcome of ``adapt`` with groups.

    Attributes:
        everything: The choice for all rows together; groups of weight 0 and unseen ones get it.
        groups: The choice for every group, by name, in order of appearance.
        within: Standard deviation of the raw confidence of the rows of a group; ``None`` if no
            group has two rows.
        between: Standard deviation of the groups' true mean confidences.
        shrunk: Whether small groups lean on all rows; else every weight is 1.
        flags: Warnings about the groups as a whole.
    """

    everything: Selection
    groups: dict[str, GroupChoice]
    within: float | None
    between: float
    shrunk: bool
    flags: tuple[Flag, ...] = ()

    @property
    def borrowed(self) -> float | None:
        """Rows that every group borrows from the whole, ``s² / τ²``.

        A group of as many rows of its own has the weight one half. ``None`` where it is not known,
        infinite where groups do not differ, 0 where nothing is shrunk.
        """
        if not self.shrunk or len(self.groups) == 1:
            return 0.0
        if self.within is None:
            return None
        if self.between == 0:
            return math.inf
        return (self.within / self.between) ** 2

    @property
    def outside(self) -> tuple[str, ...]:
        """Groups that the method flags as unlike all of the bank."""
        pairs = self.groups.items()
        return tuple(name for name, choice in pairs if any(map(choice.own.has, OUTSIDE)))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {**asdict(self), "borrowed": self.borrowed, "outside": self.outside}

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """A header, and a row of text for every group."""
        header = ("group", "rows", "own T", "weight", "T", "own set", "flags")
        cells: list[tuple[str, ...]] = []
        for name, choice in self.groups.items():
            own, applied = (
                "-" if t is None else f"{t:.3f}"
                for t in (choice.own.temperature, choice.temperature)
            )
            flags = ", ".join(flag.code for flag in choice.own.flags)
            numbers = (f"{choice.rows:,}", own, f"{choice.weight:.2f}", applied)
            cells.append((name, *numbers, choice.own.set_name or "-", flags))
        return header, cells

    def __str__(self) -> str:
        header, rows = self.table()
        shown = [header, *rows[:_SHOWN]]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]
        if len(rows) > _SHOWN:
            lines.append(f"... and {len(rows) - _SHOWN:,} groups more")
        lines.append(f"all rows: {self.everything}")
        return "\n".join([*lines, *(f"{flag.code}: {flag.message}" for flag in self.flags)])

    def __repr__(self) -> str:
        return f"<{self.everything.method} selections of {len(self.groups)} groups>"


# A probability of 0 has no logarithm; what is below this is as good as nothing.
_TINY = 1e-300


def mixed_temperature(own: Selection, everything: Selection, weight: float) -> float | None:
    """The temperature that a group gets: ``1 / T = w / T_g + (1 − w) / T_all``."""
    if own.temperature is None or everything.temperature is None:
        return None
    if own.temperature == everything.temperature or weight in (0, 1):  # to the last digit
        return own.temperature if weight == 1 else everything.temperature
    return float(1 / (weight / own.temperature + (1 - weight) / everything.temperature))


def calibrated(
    method: Method, choice: GroupChoice | None, everything: Selection, logits: Logits
) -> Probs:
    """Probabilities of the rows of one group.

    Args:
        method: Fitted.
        choice: Of the group; ``None`` if it has none.
        everything: What was chosen for all rows.
        logits: ``(n, k)``, checked.
    """
    if choice is None or choice.weight == 0:
        return _by(method, everything, logits)
    if choice.weight == 1:
        return _by(method, choice.own, logits)
    if choice.temperature is not None:
        return softmax(logits, choice.temperature)
    own, other = (
        np.log(np.maximum(_by(method, selection, logits), _TINY))
        for selection in (choice.own, everything)
    )
    return softmax(choice.weight * own + (1 - choice.weight) * other)


def _by(method: Method, selection: Selection, logits: Logits) -> Probs:
    adapted = copy.copy(method)
    adapted.selection_ = selection
    return adapted._apply(logits)


def spread_of(
    confidence: Floats, codes: NDArray[np.intp], rows: NDArray[np.intp]
) -> tuple[float | None, float]:
    """Variances of a one-way random-effects model, ``c_gi = μ + u_g + e_gi``.

    Args:
        confidence: ``(n,)``.
        codes: ``(n,)`` the number of every row's group.
        rows: ``(g,)`` rows of every group, all positive.

    Returns:
        The variance of the rows of a group, pooled (``None`` if no group has two rows), and that
        of the groups' true means.
    """
    n, g = len(codes), len(rows)
    means = np.bincount(codes, weights=confidence, minlength=g) / rows
    if g == n:
        return None, 0.0
    within = float(np.square(confidence - means[codes]).sum() / (n - g))
    return within, between_variance(means, within / rows)


def between_variance(values: Floats, variances: Floats) -> float:
    """The variance ``τ²`` of true values, of which noisy ones are seen: Paule and Mandel's.

    It solves ``Σ_g (y_g − ȳ)² / (τ² + v_g) = G − 1`` with ``ȳ`` the mean weighted by
    ``1 / (τ² + v_g)``: with it the values differ as much as they are expected to. Where they
    differ by less than the noise alone explains, it is 0. (Paule and Mandel 1982)

    Args:
        values: ``(g,)``.
        variances: ``(g,)`` of their noise, none negative.
    """
    from scipy.optimize import brentq

    if len(values) < 2:
        return 0.0
    # The equation has its root below, since the weighted mean makes the sum least of all.
    most = float(np.var(values, ddof=1))
    if not variances.all():
        return most

    def excess(between: float) -> float:
        weights = 1 / (between + variances)
        centre = weights @ values / weights.sum()
        return float(weights @ np.square(values - centre)) - (len(values) - 1)

    if most == 0 or excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, most, xtol=1e-15, rtol=1e-12))


# Groups named in a message.
_NAMED = 5


@final
class GroupedCalibration(Estimator):
    """One calibration per group of a mixed target; small groups borrow from the one for all rows.

    With ``p_g`` the probabilities that the method's choice for group ``g`` gives and ``p`` those
    of its choice for all rows, a row of the group gets ``softmax(w_g log p_g + (1 − w_g) log p)``.
    Of two temperatures that is one: ``1 / T = w_g / T_g + (1 − w_g) / T_all``. The weight is that
    of a random-effects model of the raw p_max, ``w_g = n_g τ² / (n_g τ² + s²)``: ``s²`` is the
    variance within groups, pooled, and ``τ²`` that of the true means of groups, by Paule and
    Mandel's equation. So every group borrows ``s² / τ²`` rows from the whole.

    With one group the result is that of the method. If groups differ in mean confidence, large
    ones get their own choice. If they differ by no more than chance, all get the choice for all
    rows, even if the method could distinguish them by something else. Groups that ``adapt`` has
    not seen get it too, with a warning.

    Args:
        method: A fitted method that adapts to a target, such as SAC or Rehearsal; not changed.
        shrink: Whether small groups borrow from the rest; otherwise every weight is 1.

    Attributes:
        selections_: The choices of the last ``adapt``, for every group and for all rows.
        n_classes_: Number of classes, from the method.
    """

    name: ClassVar[str] = "grouped-calibration"
    kind: ClassVar[str] = "grouping"

    method: Method
    selections_: GroupedSelection
    n_classes_: int

    def __init__(self, method: Method, *, shrink: bool = True) -> None:
        self.method = method
        self.shrink = shrink

    def adapt(self, logits: object, groups: object, features: object = None) -> GroupedSelection:
        """Choose a calibration for every group of an unlabelled target.

        Args:
            logits: ``(n, k)``, of the kind the method takes; or :class:`Scores` of either kind.
            groups: ``(n,)`` the group of every row: names, whole numbers or dates.
            features: ``(n, d)``, for methods that weigh by features. Default: those of the
                :class:`Scores`.

        Returns:
            The choice for every group; also stored as ``selections_``.

        Raises:
            InputError: If the input cannot be used, or the method has nothing to choose.
        """
        method = self._checked_method()
        check_flag(self.shrink, name="shrink")
        z = _logits_for(method, logits)
        names, codes = check_row_groups(groups, n=len(z))
        f = method._features_of(logits, features, n=len(z))
        everything = method._adapt(z, f)
        rows = np.bincount(codes)
        within, between = spread_of(p_max(z), codes, rows)
        own = [everything]
        if len(names) > 1:
            members = _members(codes, len(names))
            own = [method._adapt(z[g], None if f is None else f[g]) for g in members]
        weights, flags = np.ones(len(names)), tuple[Flag, ...]()
        if self.shrink and len(names) > 1:
            if within is None or between == 0:
                weights = np.zeros(len(names))
                code, why = "no-difference", "differ in mean confidence by no more than chance"
                if within is None:
                    code, why = "one-row-groups", "have one row each, so differences say nothing"
                message = f"the {len(names)} groups {why}: all get the choice for all rows."
                flags = (Flag(code, message),)
            else:
                weights = rows * between / (rows * between + within)
        self.selections_ = GroupedSelection(
            everything,
            {
                name: GroupChoice(int(n), float(w), mixed_temperature(s, everything, w), s)
                for name, n, w, s in zip(names, rows, weights, own, strict=True)
            },
            within=None if within is None else math.sqrt(within),
            between=math.sqrt(between),
            shrunk=self.shrink,
            flags=flags,
        )
        self.n_classes_ = method.n_classes_
        return self.selections_

    def predict_proba(self, logits: object, groups: object) -> Probs:
        """Calibrated probabilities ``(n, k)``, float64, row by row.

        Rows of a group that :meth:`adapt` has not seen are calibrated as all rows together, and
        an :class:`~shiftcal.errors.InputWarning` names the groups.

        Args:
            logits: As for :meth:`adapt`.
            groups: As for :meth:`adapt`; any number of them.
        """
        self._require_fitted()
        method, chosen = self._checked_method(), self.selections_
        z = _logits_for(method, logits)
        names, codes = check_row_groups(groups, n=len(z))
        rows = _members(codes, len(names))
        if unseen := [j for j, name in enumerate(names) if name not in chosen.groups]:
            some = ", ".join(repr(names[j]) for j in unseen[:_NAMED])
            some += ", ..." * (len(unseen) > _NAMED)
            warnings.warn(
                f"{sum(len(rows[j]) for j in unseen)} of {len(z)} rows are of groups that adapt "
                f"has not seen ({some}): they are calibrated as all rows together. Call adapt "
                "with rows of those groups.",
                InputWarning,
                stacklevel=2,
            )
        probs = np.empty(z.shape, dtype=np.float64)
        for name, members in zip(names, rows, strict=True):
            choice = chosen.groups.get(name)
            probs[members] = calibrated(method, choice, chosen.everything, z[members])
        return probs

    def confidence(self, logits: object, groups: object) -> NDArray[np.float64]:
        """Calibrated probability of the most probable class ``(n,)``."""
        return np.asarray(self.predict_proba(logits, groups).max(axis=1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the method and all choices to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        persistence.save(self, path)

    def _checked_method(self) -> Method:
        method = self.method
        if not isinstance(method, Method):
            raise InputError(
                f"method must be a fitted method, such as SAC().fit(bank); got {method!r:.60}."
            )
        if not method.uses_target or method.uses_mixed:
            raise InputError(
                f"{method.name} cannot be adapted to groups: a method must choose by the target's "
                "outputs or features, such as sac or rehearsal."
            )
        method._require_fitted()
        return method

    def _require_fitted(self) -> None:
        if not hasattr(self, "n_classes_"):
            raise errors.NotFittedError("this grouping has seen no target yet; call adapt.")


def _logits_for(method: Method, logits: object) -> Logits:
    return given_logits(
        logits, input=method.input, k=method.n_classes_, classes=method.class_names_
    )


def _members(codes: NDArray[np.intp], n_groups: int) -> list[NDArray[np.intp]]:
    """The rows of every group, in their order."""
    ends = np.cumsum(np.bincount(codes, minlength=n_groups))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])
