"""Every method that the given data allows, fitted on the bank and adapted to the target."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from shiftcal import methods
from shiftcal._types import Floats
from shiftcal.errors import FitWarning, InputError, InputWarning, ShiftcalError
from shiftcal.estimates import AccuracyEstimate
from shiftcal.estimates.rehearsed import Rehearsed
from shiftcal.methods import Method
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.report.html.parts import Judging
from shiftcal.scores import Scores
from shiftcal.surrogates import SurrogateBank

# As tables show them: from the least to the most informed; others follow by name.
_FIRST = ("vanilla", "ts", "cpcs", "transcal", "sts", "sac", "rehearsal")


@dataclass
class Fitted:
    """What could be fitted.

    Attributes:
        main: Name of the method the report is about.
        methods: Adapted to the target, in the order of a table.
        missing: Method to the reason why it is not there.
        estimate: The target's accuracy.
        said: Method to the warnings of its fit.
    """

    main: str
    methods: dict[str, Method] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    estimate: AccuracyEstimate | None = None
    said: dict[str, list[str]] = field(default_factory=dict)


def fit_all(
    main: str | Method,
    bank: SurrogateBank,
    target: Scores,
    *,
    source_features: Floats | None,
    judging: Judging,
) -> Fitted:
    """All methods, and the estimate, on one bank and one target.

    Args:
        main: The method the report is about, by name or unfitted; what keeps it from being
            fitted is an error, what keeps another a note.
        bank: To fit on.
        target: To adapt to; its labels are not looked at.
        source_features: Of training samples, for methods that weigh by features.
        judging: Its seed and level are those of methods that have such settings.

    Raises:
        InputError: If the main method cannot be used.
    """
    chosen = _made(main, bank, judging)
    found = Fitted(chosen.name())
    for name in _names():
        method = chosen if name == chosen.name() else _made(name, bank, judging)
        try:
            with _heard(found.said.setdefault(name, []), again=method is chosen):
                _fit(method, bank, target, source_features)
        except ShiftcalError as error:
            if method is chosen:
                raise
            found.missing[name] = str(error)
        else:
            found.methods[name] = method
    with _heard([], again=False):  # the method of the same rehearsals has said it
        found.estimate = _estimate(found, bank, target, judging)
    return found


def _names() -> list[str]:
    def key(name: str) -> tuple[int, str]:
        return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)

    return sorted(methods.names(), key=key)


def _made(method: str | Method, bank: SurrogateBank, judging: Judging) -> Method:
    if isinstance(method, Method):
        kept: Method = clone(method)
        return kept.set_params(input=bank.input)
    cls = methods.get(method)
    known = cls._get_param_names()
    options: dict[str, Any] = {"seed": judging.seed, "level": judging.level}
    made: Method = cls(input=bank.input, **{k: v for k, v in options.items() if k in known})
    return made


def _fit(method: Method, bank: SurrogateBank, target: Scores, source: Floats | None) -> None:
    if method.uses_mixed:
        raise InputError(
            f"{method.name()} needs the model run over mixed target images, which scores "
            "cannot tell."
        )
    if method.uses_features:
        given = {
            "the training samples": source,
            "the clean set": bank.clean.features,
            "the target": target.features,
        }
        lacking = [whose for whose, features in given.items() if features is None]
        if lacking:
            raise InputError(f"{method.name()} needs features of {' and '.join(lacking)}.")
    method.fit(bank, source_features=source)
    method.adapt(target)


def _estimate(
    found: Fitted, bank: SurrogateBank, target: Scores, judging: Judging
) -> AccuracyEstimate | None:
    """By the rehearsals of the method of that name, which are what takes the time."""
    method = found.methods.get("rehearsal")
    try:
        if isinstance(method, Rehearsal):
            estimator = Rehearsed.of(method)
        else:
            estimator = Rehearsed(seed=judging.seed, input=bank.input).fit(bank)
        return estimator.estimate(target, level=judging.level)
    except ShiftcalError as error:
        found.missing["the estimated accuracy"] = str(error)
        return None


@contextmanager
def _heard(said: list[str], *, again: bool) -> Iterator[None]:
    """Collect our warnings, each once; all are given again afterwards, ours only if so asked."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in (FitWarning, InputWarning):
            warnings.simplefilter("always", kind)
        yield
    for one in {str(warning.message): warning for warning in caught}.values():
        ours = issubclass(one.category, (FitWarning, InputWarning))
        if ours:
            said.append(str(one.message))
        if again or not ours:
            # 1 here, 2 contextlib, 3 fit_all, 4 make_facts, 5 the caller's line
            warnings.warn(one.message, one.category, stacklevel=5)
