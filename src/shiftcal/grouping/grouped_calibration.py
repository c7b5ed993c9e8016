"""A method, adapted to every group of a target by itself."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal import _persistence
from shiftcal._checks import check_features, check_flag, check_row_groups
from shiftcal._estimator import Estimator
from shiftcal._types import Flag, Floats, Logits, Probs
from shiftcal.errors import FitError, InputError, InputWarning, NotFittedError
from shiftcal.grouping._mixing import calibrated, mixed_temperature
from shiftcal.grouping._selection import GroupChoice, GroupedSelection
from shiftcal.grouping._shrinkage import Spread, spread_of
from shiftcal.methods import Method
from shiftcal.methods._given import given_logits
from shiftcal.methods._selection import Selection
from shiftcal.numerics.softmax import p_max
from shiftcal.scores import Scores

# Elements of probabilities held at once while only the confidence is asked for.
_BLOCK = 1 << 20
# Groups named in a message.
_NAMED = 5


@final
class GroupedCalibration(Estimator):
    """One choice for every group of a mixed target; small groups lean on the choice for all rows.

    With ``p_g`` the probabilities that the method's choice for group ``g`` gives and ``p`` those
    of its choice for all rows, a row of the group gets ``softmax(w_g log p_g + (1 − w_g) log p)``.
    Of two temperatures that is one: ``1 / T = w_g / T_g + (1 − w_g) / T_all``. The weight is that
    of a random-effects model of the raw p_max, ``w_g = n_g τ² / (n_g τ² + s²)``: ``s²`` is the
    variance within groups, pooled, and ``τ²`` that of the true means of groups, by Paule and
    Mandel's equation. So every group borrows ``s² / τ²`` rows from the whole.

    A target of one group is calibrated as the method itself does it. Where groups differ in mean
    confidence, one of ever more rows gets its own choice. Where they differ in it by no more than
    chance, all get the choice for all rows, even if the method could tell them apart by something
    else; so do groups that ``adapt`` has not seen, with a warning.

    Args:
        method: A fitted method that adapts to a target, such as SAC or Rehearsal. It is left as
            it is.
        shrink: Whether small groups lean on the rest; else every weight is 1.

    Attributes:
        selections_: What the last ``adapt`` chose, for every group and for all rows.
        n_classes_: Number of classes, from the method.
    """

    kind: ClassVar[str] = "grouping"

    method: Method
    selections_: GroupedSelection
    n_classes_: int

    def __init__(self, method: Method, *, shrink: bool = True) -> None:
        self.method = method
        self.shrink = shrink

    def adapt(self, logits: object, groups: object, features: object = None) -> GroupedSelection:
        """Look at an unlabelled target and decide how each of its groups will be calibrated.

        Args:
            logits: ``(n, k)``, of the kind the method takes; or :class:`Scores` of either kind.
            groups: ``(n,)`` the group of every row: names, whole numbers or dates.
            features: ``(n, d)``, for methods that weigh by features; by default those of the
                :class:`Scores`.

        Returns:
            What was chosen for every group; also kept as ``selections_``.

        Raises:
            InputError: If the input cannot be used, or the method has nothing to choose.
        """
        method = self._checked_method()
        check_flag(self.shrink, name="shrink")
        z = _logits_for(method, logits)
        names, codes = check_row_groups(groups, n=len(z))
        f = _features_for(method, logits, features, n=len(z))
        everything = method._adapt(z, f)
        rows = np.bincount(codes)
        spread = spread_of(p_max(z), codes, rows)
        own = [everything]
        if len(names) > 1:
            members = _members(codes, len(names))
            own = [
                _own(method, z[g], None if f is None else f[g], name=name)
                for name, g in zip(names, members, strict=True)
            ]
        shrunk = self.shrink and len(names) > 1
        weights = spread.weights(rows) if shrunk else np.ones(len(names))
        self.selections_ = GroupedSelection(
            everything,
            {
                name: GroupChoice(int(n), float(w), mixed_temperature(s, everything, w), s)
                for name, n, w, s in zip(names, rows, weights, own, strict=True)
            },
            within=None if spread.within is None else math.sqrt(spread.within),
            between=math.sqrt(spread.between),
            shrunk=self.shrink,
            flags=tuple(_flags(spread, len(names))) if shrunk else (),
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
        z, names, codes = self._checked_rows(logits, groups)
        return self._apply(z, names, codes)

    def confidence(self, logits: object, groups: object) -> NDArray[np.float64]:
        """Calibrated probability of the most probable class ``(n,)``, in little memory."""
        z, names, codes = self._checked_rows(logits, groups)
        confidence = np.empty(len(z), dtype=np.float64)
        step = max(1, _BLOCK // z.shape[1])
        for start in range(0, len(z), step):
            part = slice(start, start + step)
            confidence[part] = self._apply(z[part], names, codes[part]).max(axis=1)
        return confidence

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the method and all choices to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        _persistence.save(self, path)

    def after_load(self) -> None:
        """Refuse what a file gave, each part of its type, if it cannot be applied."""
        self._checked_method()
        for name, choice in self.selections_.groups.items() if hasattr(self, "n_classes_") else ():
            t = choice.temperature
            if not 0 <= choice.weight <= 1 or not (t is None or 0 < t < math.inf):
                raise InputError(
                    f"group {name!r} has the weight {choice.weight!r} and the temperature {t!r}"
                )

    def _apply(self, z: Logits, names: tuple[str, ...], codes: NDArray[np.intp]) -> Probs:
        probs = np.empty(z.shape, dtype=np.float64)
        chosen = self.selections_
        for name, rows in zip(names, _members(codes, len(names)), strict=True):
            if len(rows):
                choice = chosen.groups.get(name)
                probs[rows] = calibrated(self.method, choice, chosen.everything, z[rows])
        return probs

    def _checked_rows(
        self, logits: object, groups: object
    ) -> tuple[Logits, tuple[str, ...], NDArray[np.intp]]:
        self._require_fitted()
        z = _logits_for(self._checked_method(), logits)
        names, codes = check_row_groups(groups, n=len(z))
        known = np.array([name in self.selections_.groups for name in names])
        if unseen := [name for name, there in zip(names, known, strict=True) if not there]:
            n = int(np.count_nonzero(~known[codes]))
            some = ", ".join(map(repr, unseen[:_NAMED])) + ", ..." * (len(unseen) > _NAMED)
            warnings.warn(
                f"{n} of {len(z)} rows are of groups that adapt has not seen ({some}): they are "
                "calibrated as all rows together were. Adapt anew with rows of those groups.",
                InputWarning,
                stacklevel=3,
            )
        return z, names, codes

    def _checked_method(self) -> Method:
        method = self.method
        if not isinstance(method, Method):
            given = f"the class {method.__name__}" if isinstance(method, type) else repr(method)
            raise InputError(
                f"method must be a fitted method, such as SAC().fit(bank); got {given[:60]}."
            )
        if not method.uses_target:
            raise InputError(
                f"{method.name()} calibrates every target alike, so that there is nothing to "
                "choose for a group. Take a method that adapts, such as sac or rehearsal; or call "
                f"{method.name()} itself."
            )
        if method.uses_mixed:
            raise InputError(
                f"{method.name()} learns from mixed images of a target and cannot be adapted to "
                "groups here. Make a target of every group, mix its images alone, and adapt to "
                "each; or take sac or rehearsal."
            )
        method._require_fitted()
        return method

    def _require_fitted(self) -> None:
        if not hasattr(self, "n_classes_"):
            raise NotFittedError(
                "this GroupedCalibration has not seen a target yet; call adapt with unlabelled "
                "logits and their groups first."
            )


def _logits_for(method: Method, logits: object) -> Logits:
    return given_logits(
        logits, input=method.input, k=method.n_classes_, classes=method.class_names_
    )


def _features_for(method: Method, logits: object, features: object, *, n: int) -> Floats | None:
    if not method.uses_features:
        return None
    if features is None and isinstance(logits, Scores):
        features = logits.features
    if features is None:
        raise InputError(method._needs_features("features= of the target in adapt"))
    return check_features(features, name="features", n=n)


def _members(codes: NDArray[np.intp], n_groups: int) -> list[NDArray[np.intp]]:
    """The rows of every group, in their order."""
    ends = np.cumsum(np.bincount(codes, minlength=n_groups))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _own(method: Method, z: Logits, features: Floats | None, *, name: str) -> Selection:
    try:
        return method._adapt(z, features)
    except (InputError, FitError) as error:
        raise type(error)(f"group {name!r}, of {len(z)} rows: {error}") from error


def _flags(spread: Spread, n_groups: int) -> Iterator[Flag]:
    if spread.within is None:
        yield Flag(
            "one-row-groups",
            f"each of the {n_groups} groups has one row, so that nothing tells how groups differ "
            "from how rows do: all get the choice for all rows. Take groups of several rows.",
        )
    elif spread.between == 0:
        yield Flag(
            "no-difference",
            f"the {n_groups} groups differ in mean confidence by no more than chance: all get the "
            "choice for all rows.",
        )
